// Package app is the program weir: its commands, their flags, and the parts that they start.
package app

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/app/httpserver"
	"github.com/weir-metrics/weir/client/cli"
)

// Main runs the command of args until it ends or the process is told to end, and returns
// the exit status. A second signal ends the process at once.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, NewCommand(os.Getenv, httpserver.DefaultAddress), args, os.Stdout, os.Stderr)
}

// NewCommand returns weir with all its commands. getenv reads the environment, local is where
// a weir on this machine is looked for.
func NewCommand(getenv func(string) string, local string) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Measure what nodes, pods and containers use, and serve it",
		Long: `weir measures what nodes, pods and containers use, remembers it for a while,
and serves it. It says why a number is missing instead of inventing one.

Begin with "weir run", which measures this machine, and in another terminal
"weir top cgroups"; "weir explain missing" says what has no number and why. In a
pod of a cluster, "weir server" serves what kubectl top and autoscalers read.`,
		Args:              cli.Subcommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(newRun(), newServer(getenv), newAgent(getenv), newTop(getenv, local), newExplain(getenv, local), newAutoscaler(getenv, local), newResize(getenv, local), newCheck(), newInspect(getenv), newRecording(), newVersion())
	root.AddCommand(newTopics()...)
	return root
}
