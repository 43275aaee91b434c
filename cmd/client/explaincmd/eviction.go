package explaincmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/cmd/client/cli"
	eviction "github.com/weir-metrics/weir/eviction/evictionreport"
)

func (a *asking) eviction() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "eviction [--node NODE]",
		Aliases: []string{"evictions"},
		Short:   "Explain how near a node is to evicting pods, and who would go next",
		Long: `Explain how near a node is to evicting pods: each signal and how far it is from each
threshold, who would go next for it and why, what was done lately, and what wakes the
agent that looks after it. Without --node it is the only node of the weir that is
asked, as this machine is of its own.

A pod's memory is that of its cgroup, which the kernel limits and the kubelet ranks pods
by. It is more than the sum of the containers, which kubectl top shows.`,
		Example: a.examples("eviction", "eviction --node n1 --all", "eviction --node n1 -o json"),
	}
	text := func(w io.Writer, r *eviction.EvictionReport) error {
		return r.WriteText(w, eviction.TextOptions{All: all, Colour: cli.TerminalOf(w).Colour})
	}
	cmd.Flags().BoolVar(&all, "all", false, "all pods in the order in which they would go, and all that was done lately")
	return nodeReport(a, cmd, Asker.Eviction, text, func(r *eviction.EvictionReport) any { return nodeapi.NewEvictionExplanation(r) })
}
