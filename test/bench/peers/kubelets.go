//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/seed"
)

// state is the state that the process of the kubelets prints, one JSON object
// on each line.
type state struct {
	Port   int  `json:"port"`
	Seeded bool `json:"seeded"`
}

// newKubelets returns the command that serves the kubelets and keeps the API
// server up to date with them. It is like weir-simulate, but as fast as the API
// server allows, and with the faults of a Shape.
func newKubelets() *cobra.Command {
	var shape, ca, kubeconfig string
	c := &cobra.Command{
		Use: "kubelets", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s Shape
			if err := json.Unmarshal([]byte(shape), &s); err != nil {
				return fmt.Errorf("read --shape: %w", err)
			}
			return serveKubelets(cmd.Context(), s, ca, kubeconfig, json.NewEncoder(cmd.OutOrStdout()))
		},
	}
	c.Flags().StringVar(&shape, "shape", "{}", "the cluster, in JSON")
	c.Flags().StringVar(&ca, "ca-file", "", "write the kubelets' authority here")
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "API server to seed")
	return c
}

func serveKubelets(ctx context.Context, s Shape, ca, kubeconfig string, out *json.Encoder) error {
	fleet, err := s.fleet()
	if err != nil {
		return err
	}
	authority, err := simulator.NewAuthority(s.Start)
	if err != nil {
		return err
	}
	if err := os.WriteFile(ca, authority.PEM(), 0o644); err != nil {
		return fmt.Errorf("write authority: %w", err)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp4", ":0") // every node has its own address
	if err != nil {
		return fmt.Errorf("listen for kubelets: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	seeder, err := newSeeder(fleet, kubeconfig, port)
	if err != nil {
		l.Close()
		return err
	}
	if err := out.Encode(state{Port: port}); err != nil {
		l.Close()
		return fmt.Errorf("say the port: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- simulator.NewServer(simulator.ServerOptions{Fleet: fleet, Authority: authority, Now: wholeMilliseconds}).Serve(ctx, l)
	}()
	err = seeder.Sync(ctx)
	if err == nil {
		err = out.Encode(state{Port: port, Seeded: true})
	}
	if err == nil && s.Churn > 0 {
		err = seeder.Run(ctx)
	}
	if err != nil {
		cancel()
	}
	return errors.Join(err, <-served)
}

// wholeMilliseconds is the clock of the kubelets. Resource metrics have
// timestamps in milliseconds, and in one millisecond a container can use much
// of what it uses in a resolution. With this clock, each value is exactly that
// of its timestamp.
func wholeMilliseconds() time.Time { return time.Now().Truncate(time.Millisecond) }

// newSeeder returns a seeder without a rate limit in its client. Nodes report
// every five minutes, as kubelets do if nothing has changed. Changes are
// written after a second.
func newSeeder(fleet *simulator.Fleet, kubeconfig string, port int) (*seed.Seeder, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.ContentType, config.AcceptContentTypes = -1, runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	log, err := zap.NewDevelopment()
	if err != nil {
		return nil, fmt.Errorf("make log: %w", err)
	}
	return seed.New(seed.Options{Client: client, Fleet: fleet, Port: port, Heartbeat: 5 * time.Minute, Interval: time.Second, Workers: 32, Log: log}), nil
}
