package app

import (
	"cmp"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/connect"
	"github.com/weir-metrics/weir/client/evaluatecmd"
	"github.com/weir-metrics/weir/client/explaincmd"
	"github.com/weir-metrics/weir/client/replaycmd"
	"github.com/weir-metrics/weir/client/resizecmd"
	"github.com/weir-metrics/weir/client/topcmd"
)

// newTop and newExplain return the commands that ask a running weir: the one at
// --server, or else the one on this machine, which is looked for at local.

func newTop(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := topcmd.NewCommand(topcmd.Options{Connect: func() (connect.Lister, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) }})
	addServer(cmd, &server, local)
	return cmd
}

func newExplain(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := explaincmd.NewCommand(explaincmd.Options{Connect: func() (explaincmd.Asker, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) }})
	addServer(cmd, &server, local)
	return cmd
}

func addServer(cmd *cobra.Command, server *string, local string) {
	cmd.PersistentFlags().StringVar(server, "server", "",
		"URL of the weir to ask (default: $WEIR_SERVER, or else the one on this machine, http://"+local+")")
}

// connectTo returns the weir at server, or the one on this machine.
func connectTo(server, local string) (*connect.Weir, error) {
	if server != "" {
		return connect.Direct(server, false)
	}
	return connect.Direct("http://"+local, true)
}

// newAutoscaler returns the commands that ask what an autoscaler's manifest would do.
func newAutoscaler(getenv func(string) string, local string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "autoscaler",
		Short: "Say what an autoscaler's manifest would do, now or over time",
		Long: `Say what the manifest of a HorizontalPodAutoscaler or an Autoscaler would do:
"evaluate" on the live metrics of a running weir, "replay" over a recording or a
Prometheus. What an autoscaler of the cluster decides and why, "weir explain
autoscaler" and "weir explain hpa" say. None of them changes anything.`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEvaluate(getenv, local), replaycmd.NewCommand(replaycmd.Options{Pipeline: pipeline}))
	return cmd
}

// newEvaluate returns the command that asks a running weir what a manifest would do.
func newEvaluate(getenv func(string) string, local string) *cobra.Command {
	var server string
	cmd := evaluatecmd.NewCommand(evaluatecmd.Options{
		Connect: func() (evaluatecmd.Evaluator, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) },
	})
	addServer(cmd, &server, local)
	return cmd
}

// newResize returns the commands about requests that fit. Pods are changed with the
// caller's kubeconfig: a weir has no right to.
func newResize(getenv func(string) string, local string) *cobra.Command {
	var server, kubeconfig, inContext string
	cmd := resizecmd.NewCommand(resizecmd.Options{
		Connect: func() (resizecmd.Asker, error) { return connectTo(cmp.Or(server, getenv("WEIR_SERVER")), local) },
		Cluster: func() (kubernetes.Interface, error) {
			config, err := connect.Kubeconfig(kubeconfig, inContext).ClientConfig()
			if err != nil {
				return nil, connect.NoCluster(err, "Name a kubeconfig with --kubeconfig=FILE: pods are read and changed there.")
			}
			config.UserAgent = "weir"
			return kubernetes.NewForConfig(config)
		},
	})
	addServer(cmd, &server, local)
	cmd.PersistentFlags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the cluster (default: as kubectl's)")
	cmd.PersistentFlags().StringVar(&inContext, "context", "", "context of the kubeconfig")
	return cmd
}
