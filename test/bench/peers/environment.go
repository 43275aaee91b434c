//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/test/bench/process"
	"github.com/weir-metrics/weir/test/cluster/harness"
	"github.com/weir-metrics/weir/test/simulator"
)

// environment is the cluster that both programs measure: a control plane,
// kubelets, and the fleet with the true usage.
type environment struct {
	options    Options
	dir        string // of logs, certificates and kubeconfigs
	weir       string
	cluster    *harness.Cluster
	kubelets   *process.Process
	ca         string // path of the kubelets' CA
	kubeconfig string
	admin      []tls.Certificate // the client certificate of requests
	port       int               // of the kubelets
	fleet      *simulator.Fleet
	logf       func(format string, args ...any)
}

// newEnvironment starts the control plane and the kubelets, and returns when
// the API server has every pod. The caller must call close, also after an
// error.
func newEnvironment(ctx context.Context, o Options, dir string, logf func(string, ...any)) (*environment, error) {
	w := &environment{options: o, dir: dir, logf: logf, ca: filepath.Join(dir, "kubelets.pem"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	var err error
	if w.weir, err = filepath.Abs(o.Weir); err != nil {
		return w, fmt.Errorf("find weir: %w", err)
	}
	if _, err := os.Stat(w.weir); err != nil {
		return w, cli.Hintf(fmt.Errorf("find weir: %w", err), "Build it with make build, or name another with --weir.")
	}
	if err := w.startControlPlane(ctx); err != nil {
		return w, err
	}
	if w.fleet, err = o.Shape.fleet(); err != nil {
		return w, err
	}
	return w, w.startKubelets(ctx)
}

func (w *environment) startControlPlane(ctx context.Context) error {
	var err error
	w.cluster, err = harness.Start(ctx, harness.Options{
		Name: "bench-" + strconv.Itoa(os.Getpid()), Dir: filepath.Join(w.dir, "clusters"), ControlPlane: true,
		APIServerArgs: []string{"--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000"},
	})
	if err != nil {
		return err
	}
	w.logf("etcd and kube-apiserver run")
	if err := w.cluster.WriteKubeconfig(w.kubeconfig, "bench", "system:masters"); err != nil {
		return err
	}
	config, err := w.cluster.RESTConfig()
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	w.admin = []tls.Certificate{pair}
	return nil
}

func (w *environment) startKubelets(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	shape, err := json.Marshal(w.options.Shape)
	if err != nil {
		return fmt.Errorf("write shape: %w", err)
	}
	if w.kubelets, err = process.Start(w.dir, "kubelets", nil, self, "kubelets", "--shape="+string(shape), "--ca-file="+w.ca, "--kubeconfig="+w.kubeconfig); err != nil {
		return err
	}
	config, err := w.cluster.RESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	total, began, said := w.options.Shape.Nodes*w.options.Shape.Pods, time.Now(), time.Now()
	err = w.kubelets.Until(ctx, "every pod at the API server", time.Second, time.Hour, func() (bool, error) {
		var s state
		if w.kubelets.Said(&s) == nil && s.Seeded {
			w.port = s.Port
			return true, nil
		}
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			w.logf("%d of %d pods seeded", count(ctx, client), total)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	w.logf("%d nodes and %d pods seeded in %.0fs", w.options.Shape.Nodes, total, time.Since(began).Seconds())
	return nil
}

// count returns the number of pods in the API server, for progress messages. It
// returns 0 if the API server does not answer.
func count(ctx context.Context, client kubernetes.Interface) int64 {
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	}
	return n
}

// close ends everything that newEnvironment started.
func (w *environment) close() error {
	if w.kubelets != nil {
		w.kubelets.Stop()
	}
	if w.cluster == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // independent of the caller's context
	defer cancel()
	return w.cluster.Down(ctx)
}
