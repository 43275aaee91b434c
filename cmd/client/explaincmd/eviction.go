package explaincmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/cmd/client/cli"
	eviction "github.com/weir-metrics/weir/eviction/evictionreport"
)

func (a *asking) eviction() *cobra.Command {
	var name string
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
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage(fmt.Errorf("unexpected argument %q; use --node to name a node", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := func(ctx context.Context, w Asker) (*eviction.EvictionReport, error) {
				name, err := onlyNode(ctx, w, name)
				if err != nil {
					return nil, err
				}
				r, err := w.Eviction(ctx, name)
				return r, suggestNodes(ctx, w, name, err)
			}
			text := func(r *eviction.EvictionReport) error {
				w := cmd.OutOrStdout()
				return r.WriteText(w, eviction.TextOptions{All: all, Colour: cli.TerminalOf(w).Colour})
			}
			return answer(a, cmd, ask, text, func(r *eviction.EvictionReport) any { return nodeapi.NewEvictionExplanation(r) }, func(*eviction.EvictionReport) bool { return false })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&name, "node", "", "the node; needed where weir knows several")
	cmd.Flags().BoolVar(&all, "all", false, "all pods in the order in which they would go, and all that was done lately")
	cli.CompleteFlag(cmd, "node", cli.CompleteNode(a.Connect))
	return cmd
}
