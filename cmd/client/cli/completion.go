package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Lister lists usage. *Weir implements it.
type Lister interface {
	List(ctx context.Context, r usage.Resource, q usage.Query) (*usage.List, error)
}

// ListNames returns the names of the items of a list.
func ListNames(ctx context.Context, w Lister, r usage.Resource, q usage.Query, name func(*usage.Item) string) ([]string, error) {
	q.Metrics = []string{} // only names are needed
	list, err := w.List(ctx, r, q)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, name(&list.Items[i]))
	}
	return names, nil
}

// CompletionTimeout is how long a shell waits for names after a key press.
const CompletionTimeout = 3 * time.Second

// Complete returns the names of the items of a list for a shell, sorted and without repetitions. It
// leaves out names that a shell would interpret. After an error it returns no names, because the
// user did not run a command.
func Complete[W Lister](
	cmd *cobra.Command, connect func() (W, error), r usage.Resource, q usage.Query, name func(*usage.Item) string,
) []string {
	w, err := connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
	defer cancel()
	names, _ := ListNames(ctx, w, r, q, name)
	names = slices.DeleteFunc(names, func(name string) bool { return !humanize.IsShellWord(name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// CompleteNode completes the name of a node.
func CompleteNode[W Lister](connect func() (W, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		node := func(it *usage.Item) string { return string(it.Node) }
		return Complete(cmd, connect, usage.Nodes, usage.Query{Name: word + "*"}, node), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNamespace completes the name of a namespace that has pods.
func CompleteNamespace[W Lister](connect func() (W, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		namespace := func(it *usage.Item) string { return string(it.Namespace) }
		return Complete(cmd, connect, usage.Pods, usage.Query{Namespace: word + "*"}, namespace), cobra.ShellCompDirectiveNoFileComp
	}
}
