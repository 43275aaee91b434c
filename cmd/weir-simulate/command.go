package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/test/simulator"
)

const help = `Serves the endpoints of many kubelets on one port. Each node has a loopback
address of its own, 127.1.0.1 and on; the address that is asked selects the node that
answers.

What every container uses is an exact, non-linear function of time, so the true
rate over any window is known: ask --truth for it. Faults happen as they
are configured; simulator/README.md has their language.`

const examples = `  # 200 nodes of 30 pods; print how weir reads them.
  weir-simulate --nodes 200 --ca-file ca.pem --targets-file targets.txt

  # One node hangs after a minute, another sends garbage, a container restarts.
  weir-simulate --nodes 3 --ca-file ca.pem \
    --fault 'hang node=node-0002 at=1m' \
    --fault 'garbage node=node-0003' \
    --fault 'restart pod=*-store-0-0 container=app at=30s'

  # What was really used in a window (nanoseconds since 1970).
  weir-simulate --truth 127.0.0.1:9900 --insecure-http &
  curl 'http://127.0.0.1:9900/truth?from=1795227284000000000&to=1795227299000000000'

  # Nodes and pods in a real API server, too.
  weir-simulate --nodes 20 --ca-file ca.pem --seed-kubeconfig ~/.kube/config

  # 5,000 nodes and an API server that has them; a hundredth of the pods is replaced a minute.
  weir-simulate --nodes 5000 --ca-file ca.pem --api-server 127.0.0.1:6444 --kubeconfig-file kubeconfig --churn 1%/m
  weir server --kubeconfig kubeconfig '--source=kubelet:?ca=ca.pem'`

// flags are the command line as given.
type flags struct {
	fleet          simulator.Options
	port           int
	connections    int
	insecureHTTP   bool
	faultsFile     string
	faults         []string
	truth          string
	caFile         string
	targetsFile    string
	kubeconfig     string
	apiServer      string
	kubeconfigFile string
	autoscalers    bool
	churn          string
	seedInterval   time.Duration
	shutdownGrace  time.Duration
}

func newCommand() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:     "weir-simulate",
		Short:   "Simulated kubelets with exactly known usage, and faults on demand",
		Long:    help,
		Example: examples,
		Version: version.Get().String(),
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), f, c.OutOrStdout(), c.ErrOrStderr(), nil)
		},
	}
	fs := c.Flags()
	fs.IntVar(&f.fleet.Nodes, "nodes", 3, "number of nodes")
	fs.IntVar(&f.fleet.Pods, "pods", 30, "number of pods on each node")
	fs.IntVar(&f.fleet.Containers, "containers", 2, "number of containers in each pod")
	fs.IntVar(&f.fleet.Cores, "cores", 8, "cores of each node")
	fs.Uint64Var(&f.fleet.Seed, "seed", 1, "chooses names, IDs and every counter")
	fs.BoolVar(&f.fleet.Fresh, "fresh", false, "samples as old as the request, not as the last housekeeping")
	fs.BoolVar(&f.fleet.NamesAreAddresses, "name-by-address", false, "name each node by its address, so that a range names them all")
	fs.IntVar(&f.port, "listen-port", 10250, "port of all kubelets; 0 takes a free one")
	fs.IntVar(&f.connections, "connections", 0, "how many of its readers' connections are open at once; 0 is one for each node")
	fs.BoolVar(&f.insecureHTTP, "insecure-http", false, "serve HTTP without TLS")
	fs.StringVar(&f.caFile, "ca-file", "", "write the certificate here that clients verify nodes with")
	fs.StringVar(&f.targetsFile, "targets-file", "", "write NAME=HOST:PORT of every node here")
	fs.StringVar(&f.faultsFile, "faults", "", "read faults from this file, one a line")
	fs.StringArrayVar(&f.faults, "fault", nil, "a fault, as in 'restart pod=web-* at=30s' (repeatable)")
	fs.StringVar(&f.truth, "truth", "", "serve what was really used at this address: /truth?from=NS&to=NS, /truth/at?t=NS")
	fs.StringVar(&f.kubeconfig, "seed-kubeconfig", "", "write nodes and pods to the API server of this kubeconfig, and keep them true")
	fs.StringVar(&f.apiServer, "api-server", "", "answer as an API server at this HOST:PORT: nodes and pods to list and watch, Leases, reviews that allow everything")
	fs.StringVar(&f.kubeconfigFile, "kubeconfig-file", "", "write the kubeconfig of --api-server's clients here")
	fs.BoolVar(&f.autoscalers, "autoscalers", false, "--api-server has a HorizontalPodAutoscaler of each Deployment, at half of the CPU that is requested")
	fs.StringVar(&f.churn, "churn", "", "how many of the pods are replaced, as in 1%/m: a hundredth a minute")
	fs.DurationVar(&f.seedInterval, "seed-interval", 2*time.Second, "time between two updates of the API server")
	fs.DurationVar(&f.shutdownGrace, "shutdown-grace", 2*time.Second, "how long requests may go on after SIGTERM")
	return c
}

// parseChurn reads the share of pods that is replaced in a minute: 1%/m is 0.01.
func parseChurn(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	amount, ok := strings.CutSuffix(text, "%/m")
	percent, err := strconv.ParseFloat(amount, 64)
	if !ok || err != nil || !(percent >= 0 && percent <= 100) {
		return 0, fmt.Errorf("--churn %q: want a percentage a minute, as in 1%%/m", text)
	}
	return percent / 100, nil
}

// readFaults returns the faults of the file, then those of the command line.
func (f *flags) readFaults() ([]simulator.Fault, error) {
	var all []simulator.Fault
	if f.faultsFile != "" {
		file, err := os.Open(f.faultsFile)
		if err != nil {
			return nil, fmt.Errorf("open faults: %w", err)
		}
		defer file.Close()
		if all, err = simulator.ReadFaults(file); err != nil {
			return nil, fmt.Errorf("%s: %w", f.faultsFile, err)
		}
	}
	for _, text := range f.faults {
		fault, err := simulator.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("--fault %q: %w", text, err)
		}
		all = append(all, fault)
	}
	return all, nil
}
