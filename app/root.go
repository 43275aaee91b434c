// Package app is the program weir: its commands, their flags, and the parts that they start.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/app/httpserver"
	"github.com/weir-metrics/weir/app/version"
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

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which weir this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("--output", output, "", "json"); err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(version.Get())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Get())
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json; a line if empty")
	return cmd
}

// newTopics returns pages of help that belong to no command.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		newSecureTopic(),
		{
			Use:   "sources",
			Short: "Where samples come from: --source=NAME[:CONFIG][?OPTIONS]",
			Long: `A source is written NAME[:CONFIG][?OPTIONS], with options as in a URL:
  --source='kubelet:?endpoint=summary&resolution=60s'
Several may be given; of what two of them report, the fresher is served.
Every source that reads has the option resolution, the time between two reads.

` + stageHelp(sources),
		},
		{
			Use:   "history",
			Short: "What knows the time before weir's memory: --history=prometheus:URL",
			Long:  historyHelp,
		},
		{
			Use:   "sinks",
			Short: "Where results go: --sink=NAME[:CONFIG][?OPTIONS]",
			Long:  "memory and prometheus are always there; name them for their options only.\n\n" + stageHelp(sinks),
		},
	}
}
