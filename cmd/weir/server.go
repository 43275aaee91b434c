package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/internal/cli"
)

// serverResolution is the time between two reads of a node: what metrics-server
// does, and about as often as a kubelet looks itself.
const serverResolution = 15 * time.Second

func newServer() *cobra.Command {
	c := newConfig(serverResolution, "kubelet", "host")
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Measure a cluster, or a list of kubelets",
		Long: `Measure the nodes of a cluster through their kubelets, and serve what was measured.

Sources are named as Heapster's were: NAME[:CONFIG][?OPTIONS].`,
		Example: `  weir server --source=kubelet: --in-cluster
  weir server --source=kubelet:?endpoint=summary --kubeconfig=$HOME/.kube/config
  weir server --source='kubelet:?targets=127.0.0.2:10250,127.0.0.3:10250&insecure-tls=true'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(c.sources.Stages) == 0 {
				return cli.Hintf(errors.New("no source: nothing says where samples come from"),
					"For the nodes of a cluster:   weir server --source=kubelet: --kubeconfig=FILE (or --in-cluster)\n"+
						"For kubelets without one:     weir server --source='kubelet:?targets=HOST:PORT,...'\n"+
						"For this machine alone:       weir run")
			}
			p, err := c.compile("")
			if err != nil {
				return err
			}
			return start(cmd, c, p)
		},
	}
	c.addFlags(cmd.Flags())
	c.addClusterFlags(cmd.Flags())
	return cmd
}

// noCluster explains why the API server cannot be asked.
func noCluster(err error) error {
	return cli.Hintf(err, "Name a cluster with --kubeconfig=FILE, use --in-cluster in a pod of it, or give the source a list of targets.")
}
