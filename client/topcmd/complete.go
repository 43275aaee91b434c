package topcmd

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/client/connect"
)

// completer offers a shell what may stand where word was begun, after args.
type completer = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// completeName completes the name of what a resource's subcommand shows.
func (f *flags) completeName(r usage.Resource, o Options) completer {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		q, err := f.query(r, []string{word + "*"}, o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd, o, r, q, columnName(r)), cobra.ShellCompDirectiveNoFileComp
	}
}

// columnName returns the name by which an item of a resource is asked for.
func columnName(r usage.Resource) func(*usage.Item) string {
	return func(it *usage.Item) string {
		switch r {
		case usage.Nodes:
			return string(it.Node)
		case usage.Pods:
			return string(it.Pod)
		case usage.Containers:
			return it.Container
		}
		return string(it.Cgroup)
	}
}

// completing completes a flag with the names that items of a resource have, of
// every namespace.
func (f *flags) completing(o Options, r usage.Resource, name func(*usage.Item) string) completer {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		var begun []string
		for _, n := range names(cmd, o, r, usage.Query{}, name) {
			if strings.HasPrefix(n, word) {
				begun = append(begun, n)
			}
		}
		return begun, cobra.ShellCompDirectiveNoFileComp
	}
}

func names(cmd *cobra.Command, o Options, r usage.Resource, q usage.Query, name func(*usage.Item) string) []string {
	w, err := o.Connect()
	if err != nil {
		return nil
	}
	return connect.Names(cmd.Context(), w, r, q, name)
}
