// Package app is the program weir: its commands and their flags, and the parts of a running weir.
// It connects the parts; their code is in their own rooms.
//
// A command reads flags into a config, compiles it to a plan (what to do, with all defaults filled
// in, nothing open), opens the plan as a weirProcess (a list of parts), and runs the parts until a
// signal ends it. Features, such as the eviction guard, are in their own rooms; open has the order in
// which they open. docs/extending.md shows how to add a source, a sink, a processor, an API or a
// feature.
//
//	root.go           the command weir, version, pages of help
//	run.go            weir run, and the common code of run, server and agent; reload.go the
//	                  settings that change while it runs
//	server.go         weir server; metricsserver.go its flags that metrics-server has
//	agent.go          weir agent
//	plan.go           config and plan; flaggroups.go flags by title in a long help
//	features.go       the features that flags turn on
//	process.go        open: what opens in which order; the pipeline and the local server
//	stages.go         the tables of sources and sinks, the pipeline's processors
//	apis.go           the table of APIs: paths, rights, discovery, handlers
//	secure.go         the secured server and its flags
//	kubelets.go       sources of a cluster's kubelets; host_linux.go this machine's
//	node.go           what an agent knows of its own machine
//	memorytuning.go   the garbage collector's settings; binarypages_linux.go the binary's
//	clientcommands.go commands that ask a running weir, or replay a past time
//
// Only run, server and agent are implemented here. All other commands are in the folders of client.
package app

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/app/configfile"
	"github.com/weir-metrics/weir/cmd/app/httpserver"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/cmd/client/checkcmd"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/importcmd"
	"github.com/weir-metrics/weir/cmd/client/inspectcmd"
	"github.com/weir-metrics/weir/cmd/client/recordingcmd"
	"github.com/weir-metrics/weir/cmd/flags/historyflag"
)

// Main runs the command of args until it ends or receives a signal, and returns the exit status. A
// second signal ends the process at once.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, NewCommand(os.Getenv, httpserver.DefaultAddress), args, os.Stdout, os.Stderr)
}

// NewCommand returns weir with all its commands. getenv reads the environment. local is the address
// of a weir on this machine.
func NewCommand(getenv func(string) string, local string) *cobra.Command {
	root := &cobra.Command{
		Use: "weir", Version: version.Get().String(),
		Short: "Measure what nodes, pods and containers use, and serve it",
		Long: `weir measures what nodes, pods and containers use, remembers it for a while,
and serves it. It shows why a number is missing instead of inventing one.

Begin with "weir run", which measures this machine, and in another terminal
"weir top cgroups"; "weir explain missing" shows what has no number and why. In a
pod of a cluster, "weir server" serves what kubectl top and autoscalers read.`,
		Args:              cli.Subcommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetHelpCommand(cli.NewHelp())
	root.AddCommand(newRun(), newServer(getenv), newAgent(getenv), version.NewCommand())
	root.AddCommand(newClientCommands(getenv, local)...)
	check := checkcmd.NewCommand()
	check.AddCommand(configfile.NewCheck(newRun, func() *cobra.Command { return newServer(getenv) }, func() *cobra.Command { return newAgent(getenv) }))
	root.AddCommand(check, importcmd.NewCommand(), inspectcmd.NewCommand(getenv), recordingcmd.NewCommand())
	root.AddCommand(newTopics()...)
	return root
}

// newTopics returns the pages of help that belong to no command.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		newSecureTopic(),
		{
			Use:   "sources",
			Short: "Where samples come from: --source=NAME[:CONFIG][?OPTIONS]",
			Long: `A source is written NAME[:CONFIG][?OPTIONS], with options as in a URL:
  --source='kubelet:?endpoint=summary&resolution=60s'
Several may be given; of what two of them report, one is served: the one of this round, else the preferred source.
Every source that reads has the option resolution, the time between two reads.

` + stageHelp(sources),
		},
		{
			Use:   "history",
			Short: "Numbers older than weir's memory: --history=prometheus:URL",
			Long:  historyflag.Help,
		},
		{
			Use:   "sinks",
			Short: "Where results go: --sink=NAME[:CONFIG][?OPTIONS]",
			Long:  "memory and prometheus are always there; name them for their options only.\n\n" + stageHelp(sinks),
		},
	}
}
