package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/app/version"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/connect"
	"github.com/weir-metrics/weir/client/explaincmd"
	"github.com/weir-metrics/weir/client/topcmd"
)

// newRoot returns the whole command. getenv reads the environment.
func newRoot(getenv func(string) string) *cobra.Command {
	where := location{getenv: getenv}
	root := &cobra.Command{
		Use:   "kubectl-weir",
		Short: "Ask weir what nodes, pods and containers use, and why a number is missing",
		Long: `Ask weir what nodes, pods and containers use, and why a number is missing.

The weir of the cluster is reached through the API server, with the rights of your
kubeconfig. --server names another.`,
		// kubectl runs plugins by file name, but people type "kubectl weir".
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl weir"},
		Args:              cli.Subcommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	where.addFlags(root.PersistentFlags())
	root.AddCommand(
		topcmd.NewCommand(topcmd.Options{
			Connect:   func() (connect.Lister, error) { return where.connect() },
			Namespace: where.namespace,
		}),
		explaincmd.NewCommand(explaincmd.Options{
			Connect:   func() (explaincmd.Asker, error) { return where.connect() },
			Namespace: where.namespace,
			Program:   "kubectl weir",
		}),
		newAutoscaler(&where),
		newResize(&where),
		&cobra.Command{
			Use:   "version",
			Short: "Say which weir this is",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Get())
				return err
			},
		},
	)
	return root
}
