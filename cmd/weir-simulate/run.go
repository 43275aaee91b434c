package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/seed"
)

// run serves until ctx ends. It writes addresses to out and errors to complaints. If ready is not
// nil, it is called once everything listens.
func run(ctx context.Context, f flags, out, complaints io.Writer, ready func(kubelets, truth net.Addr)) (err error) {
	log := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(complaints), zap.InfoLevel))
	if f.fleet.Faults, err = f.readFaults(); err != nil {
		return err
	}
	if f.fleet.Churn, err = parseChurn(f.churn); err != nil {
		return err
	}
	if err := files(cmp.Or(f.connections, f.fleet.Nodes)); err != nil {
		return err
	}
	f.fleet.Start = time.Now()
	fleet, err := simulator.New(f.fleet)
	if err != nil {
		return err
	}
	options := simulator.ServerOptions{Fleet: fleet, Grace: f.shutdownGrace, Log: zap.NewStdLog(log)}
	if !f.insecureHTTP {
		if options.Authority, err = simulator.NewAuthority(time.Now()); err != nil {
			return err
		}
	}
	var listen net.ListenConfig
	kubelets, err := listen.Listen(ctx, "tcp4", ":"+strconv.Itoa(f.port))
	if err != nil {
		return fmt.Errorf("listen for kubelets: %w", err)
	}
	defer kubelets.Close() // where serving does not
	server := simulator.NewServer(options)
	parts := []func(context.Context) error{func(ctx context.Context) error { return server.Serve(ctx, kubelets) }}
	var truth net.Listener
	var truthAddr net.Addr
	if f.truth != "" {
		if truth, err = listen.Listen(ctx, "tcp", f.truth); err != nil {
			return fmt.Errorf("listen for truth: %w", err)
		}
		defer truth.Close()
		truthAddr = truth.Addr()
		parts = append(parts, func(ctx context.Context) error { return server.ServeTruth(ctx, truth) })
	}
	port := kubelets.Addr().(*net.TCPAddr).Port
	seeder, err := f.prepare(fleet, options.Authority, port, log)
	if err != nil {
		return err
	}
	if seeder != nil {
		parts = append(parts, seeder.Run)
	}
	api, err := f.openAPI(ctx, fleet, options.Authority, port, options.Log)
	if err != nil {
		return err
	}
	if api != nil {
		parts = append(parts, func(ctx context.Context) error { return api.serve(ctx, f.shutdownGrace) })
	}
	describe(out, f, fleet, port, truth, api)

	// Whichever ends first ends the others.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	errs := make([]error, len(parts))
	for i, run := range parts {
		wait.Go(func() {
			defer cancel()
			errs[i] = run(ctx)
		})
	}
	if ready != nil {
		ready(kubelets.Addr(), truthAddr)
	}
	wait.Wait()
	return errors.Join(errs...)
}

// prepare writes the files that others read, and makes the seeder if one is
// wanted.
func (f *flags) prepare(fleet *simulator.Fleet, authority *simulator.Authority, port int, log *zap.Logger) (*seed.Seeder, error) {
	if f.caFile != "" {
		if authority == nil {
			return nil, errors.New("--ca-file without TLS: leave out --insecure-http")
		}
		if err := os.WriteFile(f.caFile, authority.PEM(), 0o644); err != nil {
			return nil, fmt.Errorf("write CA: %w", err)
		}
	}
	if f.targetsFile != "" {
		if err := os.WriteFile(f.targetsFile, fleet.TargetsFile(port), 0o644); err != nil {
			return nil, fmt.Errorf("write targets: %w", err)
		}
	}
	if f.kubeconfig == "" {
		return nil, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst, config.UserAgent = 200, 400, "weir-simulate"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return seed.New(seed.Options{Client: client, Fleet: fleet, Port: port, Interval: f.seedInterval, Log: log}), nil
}

// describe describes what is served, and what to type to read it.
func describe(out io.Writer, f flags, fleet *simulator.Fleet, port int, truth net.Listener, api *api) {
	nodes := fleet.Nodes()
	first, last := nodes[0], nodes[len(nodes)-1]
	fmt.Fprintf(out, "serving %d nodes × %d pods × %d containers, %s to %s at %v to %v port %d, with %d faults from %s\n",
		len(nodes), f.fleet.Pods, f.fleet.Containers, first.Name, last.Name, first.Address, last.Address, port,
		len(f.fleet.Faults), fleet.Start().UTC().Format(time.RFC3339))
	if truth != nil {
		fmt.Fprintf(out, "truth at http://%v/truth?from=NS&to=NS\n", truth.Addr())
	}
	if api != nil {
		fmt.Fprintf(out, "API server at %v\n", api.listener.Addr())
		if f.kubeconfigFile != "" {
			tls := "ca=" + f.caFile
			switch {
			case f.insecureHTTP:
				tls = "scheme=http"
			case f.caFile == "":
				tls = "insecure-tls=true"
			}
			fmt.Fprintf(out, "weir server --kubeconfig %s '--source=kubelet:?%s'\n", f.kubeconfigFile, tls)
			return
		}
	}
	fmt.Fprintf(out, "weir server '--source=%s'\n", fleet.Source(port, f.targetsFile, f.caFile, f.insecureHTTP))
}
