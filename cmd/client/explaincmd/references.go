package explaincmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/usererror"
	"github.com/weir-metrics/weir/metric"
)

// one returns the only argument.
func one(noun string, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", cli.Usage(fmt.Errorf("which %s? Name one", noun))
	case len(args) > 1:
		return "", cli.Usage(fmt.Errorf("one %s at a time: got %d names", noun, len(args)))
	case args[0] == "":
		return "", cli.Usage(errors.New("a name cannot be empty"))
	}
	return args[0], nil
}

// checkAll checks that a list of all namespaces names nothing else.
func (a *asking) checkAll(args []string) error {
	if len(args) > 0 || a.namespace != "" {
		return cli.Usage(errors.New("-A lists all namespaces: leave it out, or the name and -n"))
	}
	return nil
}

// listedNamespace returns the namespace of a list: that of the flag or the kubeconfig, or empty for all.
func (a *asking) listedNamespace() (metric.Namespace, error) {
	if a.namespace != "" || a.Namespace == nil {
		return metric.Namespace(a.namespace), nil
	}
	namespace, err := a.Namespace()
	return metric.Namespace(namespace), err
}

// objectRef parses NAMESPACE/NAME, or NAME with the namespace of the flag or the kubeconfig.
func (a *asking) objectRef(noun string, args []string) (metric.PodRef, error) {
	text, err := one(noun, args)
	if err != nil {
		return metric.PodRef{}, err
	}
	if noun == "pod" && strings.Count(text, "/") > 1 {
		return metric.PodRef{}, cli.Usage(fmt.Errorf("%q is not NAMESPACE/NAME: explain container explains a container", text))
	}
	namespace, name, err := cli.ParseRef(text, a.namespace, a.Namespace)
	return metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(name)}, err
}

// containerRef parses NAMESPACE/POD/NAME, NAMESPACE/POD NAME or POD NAME.
func (a *asking) containerRef(args []string) (metric.PodRef, string, error) {
	text := strings.Join(args, "/")
	cut := strings.LastIndexByte(text, '/')
	switch {
	case len(args) == 0 || len(args) > 2 || cut < 0 || strings.Count(text, "/") > 2:
		return metric.PodRef{}, "", cli.Usage(fmt.Errorf("%q is not a container: write NAMESPACE/POD/NAME, or POD NAME with -n", strings.Join(args, " ")))
	case cut == len(text)-1:
		return metric.PodRef{}, "", cli.Usage(errors.New("a name cannot be empty"))
	}
	namespace, pod, err := cli.ParseRef(text[:cut], a.namespace, a.Namespace)
	if usererror.IsUsage(err) && len(args) == 1 && strings.Count(text, "/") == 1 { // it can be NAMESPACE/POD, too
		err = cli.Usage(fmt.Errorf("%q has no container: write NAMESPACE/POD/NAME, or POD NAME with -n; explain pod explains all of a pod", text))
	}
	return metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(pod)}, text[cut+1:], err
}

// suggestPods adds pods with similar names to an error about an unknown pod. It asks with the
// user's rights, so that it suggests nothing that the user may not see.
func suggestPods(ctx context.Context, w Asker, ref metric.PodRef, err error) error {
	if !cli.Unknown(err) {
		return err
	}
	full := func(it *usage.Item) string { return string(it.Namespace) + "/" + string(it.Pod) }
	if others, failed := cli.ListNames(ctx, w, usage.Pods, usage.Query{Name: string(ref.Name)}, full); failed == nil && len(others) > 0 {
		return cli.Hintf(err, "There is %s.", humanize.List(others, mostOthers))
	}
	names, _ := cli.ListNames(ctx, w, usage.Pods, usage.Query{Namespace: string(ref.Namespace)}, podName)
	longer := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, string(ref.Name)+"-") })
	if len(longer) > 0 { // the name of a workload
		return cli.Hintf(err, "Pods in %s whose names begin with it: %s.", ref.Namespace, humanize.List(longer, mostOthers))
	}
	if near, ok := cli.Closest(string(ref.Name), names); ok {
		return cli.Hintf(err, "Did you mean %s/%s?", ref.Namespace, near)
	}
	return err
}

// mostOthers is the maximum number of names that an error suggests.
const mostOthers = 3

// suggestNodes adds nodes with similar names to an error about an unknown node.
func suggestNodes(ctx context.Context, w Asker, name string, err error) error {
	if !cli.Unknown(err) {
		return err
	}
	names, _ := cli.ListNames(ctx, w, usage.Nodes, usage.Query{}, nodeName)
	if near, ok := cli.Closest(name, names); ok {
		return cli.Hintf(err, "Did you mean %s?", near)
	}
	return err
}

// onlyNode returns the node with this name, or the only node if name is empty.
func onlyNode(ctx context.Context, w Asker, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	names, err := cli.ListNames(ctx, w, usage.Nodes, usage.Query{}, nodeName)
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", cli.Hintf(errors.New("weir knows no node yet"), "Ask again in a few seconds, or name one with --node.")
	case len(names) > 1:
		return "", cli.Usage(fmt.Errorf("which node? Name one with --node: there are %s", humanize.List(names, mostOthers)))
	}
	return names[0], nil
}
