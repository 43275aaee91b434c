package explaincmd

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/client/connect"
)

// Names are asked for by their beginning, and where there is one by namespace: who
// may read one namespace gets names there.

// completePods offers NAMESPACE/NAME, or the names of the namespace that is meant.
func (a *asking) completePods(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.podNames(cmd, word, "")
}

// completeContainers offers NAMESPACE/POD/NAME step by step, and POD NAME.
func (a *asking) completeContainers(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	switch pod, name, begun := cutLast(word); {
	case len(args) == 1:
		return a.containerNames(cmd, args[0], "", word), cobra.ShellCompDirectiveNoFileComp
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case begun && strings.Contains(pod, "/"):
		return a.containerNames(cmd, pod, pod+"/", name), cobra.ShellCompDirectiveNoFileComp
	}
	return a.podNames(cmd, word, "/")
}

func cutLast(word string) (before, after string, found bool) {
	i := strings.LastIndexByte(word, '/')
	if i < 0 {
		return "", word, false
	}
	return word[:i], word[i+1:], true
}

// podNames offers the pods of the namespace that is begun or meant; without one,
// namespaces. The end of a pod's name is what may follow it.
func (a *asking) podNames(cmd *cobra.Command, word, end string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if end != "" {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	if namespace, name, ok := strings.Cut(word, "/"); ok {
		return a.names(cmd, usage.Pods, usage.Query{Namespace: namespace, Name: name + "*"}, func(it *usage.Item) string {
			return namespace + "/" + string(it.Pod) + end
		}), directive
	}
	if namespace := a.meant(); namespace != "" {
		names := a.names(cmd, usage.Pods, usage.Query{Namespace: namespace, Name: word + "*"}, func(it *usage.Item) string { return string(it.Pod) })
		if len(names) > 0 || a.namespace != "" {
			return names, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return a.names(cmd, usage.Pods, usage.Query{Namespace: word + "*"}, func(it *usage.Item) string {
		return string(it.Namespace) + "/"
	}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// containerNames offers the containers of a pod, each after start.
func (a *asking) containerNames(cmd *cobra.Command, pod, start, begun string) []string {
	ref, err := a.podRef([]string{pod})
	if err != nil {
		return nil
	}
	q := usage.Query{Namespace: string(ref.Namespace), Pod: string(ref.Name), Name: begun + "*"}
	return a.names(cmd, usage.Containers, q, func(it *usage.Item) string { return start + it.Container })
}

// meant is the namespace of names that have none; empty if none is known.
func (a *asking) meant() string {
	if a.namespace != "" || a.Namespace == nil {
		return a.namespace
	}
	namespace, err := a.Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// completeNodes offers nodes.
func (a *asking) completeNodes(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.names(cmd, usage.Nodes, usage.Query{Name: word + "*"}, func(it *usage.Item) string { return string(it.Node) }), cobra.ShellCompDirectiveNoFileComp
}

// completeInNamespace offers namespaces with the slash before a name: weir has no
// list of autoscalers to name them from.
func (a *asking) completeInNamespace(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || a.namespace != "" || strings.Contains(word, "/") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.names(cmd, usage.Pods, usage.Query{Namespace: word + "*"}, func(it *usage.Item) string {
		return string(it.Namespace) + "/"
	}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeNamespaces offers namespaces.
func (a *asking) completeNamespaces(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.namespaces(cmd, nil, word)
}

// namespaces offers namespaces to a flag, whatever else there is.
func (a *asking) namespaces(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, usage.Pods, usage.Query{Namespace: word + "*"}, func(it *usage.Item) string { return string(it.Namespace) }), cobra.ShellCompDirectiveNoFileComp
}

func (a *asking) names(cmd *cobra.Command, r usage.Resource, q usage.Query, name func(*usage.Item) string) []string {
	w, err := a.Connect()
	if err != nil {
		return nil
	}
	return connect.Names(cmd.Context(), w, r, q, name)
}
