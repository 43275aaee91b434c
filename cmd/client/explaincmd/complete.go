package explaincmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

// Completion sends the prefix that the user has typed, and the namespace if it is known, so that
// users who may read one namespace get its names.

func nodeName(it *usage.Item) string { return string(it.Node) }
func podName(it *usage.Item) string  { return string(it.Pod) }

// firstArgument completes only the first argument of a command, with c.
func firstArgument(c cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, args, word)
	}
}

// completePods completes NAMESPACE/NAME, or the name of a pod of the default namespace.
func (a *asking) completePods(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return a.podNames(cmd, word, "")
}

// completeContainers completes NAMESPACE/POD/NAME step by step, and POD NAME.
func (a *asking) completeContainers(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	cut := strings.LastIndexByte(word, '/') + 1
	switch pod := word[:max(cut-1, 0)]; {
	case len(args) == 1:
		return a.containerNames(cmd, args[0], "", word), cobra.ShellCompDirectiveNoFileComp
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case strings.Contains(pod, "/"):
		return a.containerNames(cmd, pod, word[:cut], word[cut:]), cobra.ShellCompDirectiveNoFileComp
	}
	return a.podNames(cmd, word, "/")
}

// podNames completes the name of a pod of the namespace in word, or of the default namespace.
// Without either it completes the namespace. It appends end to each pod's name.
func (a *asking) podNames(cmd *cobra.Command, word, end string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if end != "" {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	if namespace, name, ok := strings.Cut(word, "/"); ok {
		return cli.Complete(cmd, a.Connect, usage.Pods, usage.Query{Namespace: namespace, Name: name + "*"}, func(it *usage.Item) string {
			return namespace + "/" + string(it.Pod) + end
		}), directive
	}
	namespace := a.namespace
	if namespace == "" && a.Namespace != nil {
		namespace, _ = a.Namespace()
	}
	if namespace != "" {
		names := cli.Complete(cmd, a.Connect, usage.Pods, usage.Query{Namespace: namespace, Name: word + "*"}, podName)
		if len(names) > 0 || a.namespace != "" {
			return names, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return a.namespacesWithSlash(cmd, word)
}

// containerNames completes the name of a container of a pod, and puts start before each name.
func (a *asking) containerNames(cmd *cobra.Command, pod, start, word string) []string {
	ref, err := a.objectRef("pod", []string{pod})
	if err != nil {
		return nil
	}
	q := usage.Query{Namespace: string(ref.Namespace), Pod: string(ref.Name), Name: word + "*"}
	return cli.Complete(cmd, a.Connect, usage.Containers, q, func(it *usage.Item) string { return start + it.Container })
}

// completeWorkloads completes NAMESPACE/KIND/NAME, or KIND/NAME in the namespace of the flag, from the
// workloads of the pods.
func (a *asking) completeWorkloads(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	namespace, start := a.namespace, ""
	if namespace == "" {
		var ok bool
		if namespace, _, ok = strings.Cut(word, "/"); !ok {
			return a.namespacesWithSlash(cmd, word)
		}
		start = namespace + "/"
	}
	names := cli.Complete(cmd, a.Connect, usage.Pods, usage.Query{Namespace: namespace}, func(it *usage.Item) string {
		if it.Workload.Name == "" {
			return ""
		}
		return start + strings.ToLower(it.Workload.Kind) + "/" + it.Workload.Name
	})
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) })
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeScalers completes only the namespace and the slash: weir has no list of autoscalers.
func (a *asking) completeScalers(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	if a.namespace != "" || strings.Contains(word, "/") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.namespacesWithSlash(cmd, word)
}

func (a *asking) namespacesWithSlash(cmd *cobra.Command, word string) ([]string, cobra.ShellCompDirective) {
	names := cli.Complete(cmd, a.Connect, usage.Pods, usage.Query{Namespace: word + "*"}, func(it *usage.Item) string {
		return string(it.Namespace) + "/"
	})
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeCgroups completes the path of a cgroup that belongs to no pod.
func (a *asking) completeCgroups(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return cli.Complete(cmd, a.Connect, usage.Cgroups, usage.Query{Name: word + "*"}, func(it *usage.Item) string { return string(it.Cgroup) }), cobra.ShellCompDirectiveNoFileComp
}
