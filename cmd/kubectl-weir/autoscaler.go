package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/evaluatecmd"
)

// newAutoscaler returns the command that asks what an autoscaler's manifest would do.
func newAutoscaler(where *location) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "autoscaler",
		Short: "Say what an autoscaler's manifest would do",
		Args:  cli.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(evaluatecmd.NewCommand(evaluatecmd.Options{
		Connect:   func() (evaluatecmd.Evaluator, error) { return where.connect() },
		Namespace: where.namespace,
		Program:   "kubectl weir",
	}))
	return cmd
}
