package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/connect"
	"github.com/weir-metrics/weir/cmd/client/doctorcmd"
	"github.com/weir-metrics/weir/cmd/client/evaluatecmd"
	"github.com/weir-metrics/weir/cmd/client/explaincmd"
	"github.com/weir-metrics/weir/cmd/client/resizecmd"
	"github.com/weir-metrics/weir/cmd/client/topcmd"
)

// program is what people type: kubectl runs plugins by file name.
const program = "kubectl weir"

// newRoot returns the whole command. getenv reads the environment.
func newRoot(getenv func(string) string) *cobra.Command {
	where := connect.Location{Getenv: getenv}
	root := &cobra.Command{
		Use:   "kubectl-weir",
		Short: "Ask weir what nodes, pods and containers use, and why a number is missing",
		Long: `Ask weir what nodes, pods and containers use, and why a number is missing.

The weir of the cluster is reached through the API server, with the rights of your
kubeconfig. --server names another.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Args:              cli.Subcommand,
		Version:           version.Get().String(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	where.AddServerFlag(root.PersistentFlags())
	where.AddClusterFlags(root.PersistentFlags())
	autoscaler := cli.Group("autoscaler", "Say what an autoscaler's manifest would do", "", evaluatecmd.NewCommand(evaluatecmd.Options{
		Connect: func() (evaluatecmd.Evaluator, error) { return where.Connect() }, Namespace: where.Namespace, Program: program,
	}))
	root.AddCommand(
		topcmd.NewCommand(topcmd.Options{
			Connect: func() (connect.Lister, error) { return where.Connect() }, Namespace: where.Namespace,
		}),
		explaincmd.NewCommand(explaincmd.Options{
			Connect: func() (explaincmd.Asker, error) { return where.Connect() }, Namespace: where.Namespace, Program: program,
		}),
		resizecmd.NewCommand(resizecmd.Options{
			Connect: func() (resizecmd.Asker, error) { return where.Connect() }, Cluster: where.Cluster,
			Namespace: where.Namespace, Program: program,
		}),
		doctorcmd.NewCommand(doctorcmd.Options{
			Connect: func() (doctorcmd.Asker, error) { return where.Connect() }, Cluster: where.Cluster, Program: program,
		}),
		autoscaler,
		version.NewCommand(),
	)
	return root
}
