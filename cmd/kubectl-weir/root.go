package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

// program is what people type: kubectl runs plugins by file name.
const program = "kubectl weir"

// newRoot returns the whole command. getenv reads the environment.
func newRoot(getenv func(string) string) *cobra.Command {
	where := cli.Location{Getenv: getenv}
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
	commands := client.New(&where, &where, program, nil)
	root.SetHelpCommand(cli.NewHelp())
	root.AddCommand(
		commands.Top, commands.Explain, commands.Resize, commands.Doctor,
		cli.Group("autoscaler", "Show what an autoscaler's manifest would do", "", commands.Evaluate),
		version.NewCommand(),
	)
	return root
}
