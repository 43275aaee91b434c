package explaincmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/connect"
	"github.com/weir-metrics/weir/client/suggest"
	"github.com/weir-metrics/weir/metric"
)

// podRef reads NAMESPACE/NAME, or NAME with the namespace said elsewhere.
func (a *asking) podRef(args []string) (metric.PodRef, error) {
	name, err := one("pod", args)
	if err != nil {
		return metric.PodRef{}, err
	}
	parts := strings.Split(name, "/")
	if len(parts) > 2 {
		return metric.PodRef{}, cli.Usage(fmt.Errorf("%q is no NAMESPACE/NAME: a container is explained by explain container", name))
	}
	return a.ref(parts)
}

// containerRef reads NAMESPACE/POD/NAME, with the last slash perhaps a space, and
// the namespace perhaps said elsewhere.
func (a *asking) containerRef(args []string) (metric.PodRef, string, error) {
	parts := strings.Split(strings.Join(args, "/"), "/")
	if len(args) == 0 || len(args) > 2 || len(parts) < 2 || len(parts) > 3 {
		return metric.PodRef{}, "", cli.Usage(fmt.Errorf("%q is no container: write NAMESPACE/POD/NAME, or POD NAME with -n", strings.Join(args, " ")))
	}
	last := len(parts) - 1
	if parts[last] == "" {
		return metric.PodRef{}, "", cli.Usage(errors.New("a name cannot be empty"))
	}
	ref, err := a.ref(parts[:last])
	return ref, parts[last], err
}

// ref returns the pod of one or two names.
func (a *asking) ref(names []string) (metric.PodRef, error) {
	namespace := a.namespace
	if len(names) == 2 {
		if namespace != "" && namespace != names[0] {
			return metric.PodRef{}, cli.Usage(fmt.Errorf("namespace %s or %s? -n says one, %s another", namespace, names[0], strings.Join(names, "/")))
		}
		namespace = names[0]
	}
	if namespace == "" && len(names) == 1 && a.Namespace != nil {
		var err error
		if namespace, err = a.Namespace(); err != nil {
			return metric.PodRef{}, err
		}
	}
	name := names[len(names)-1]
	switch {
	case name == "" || len(names) == 2 && names[0] == "":
		return metric.PodRef{}, cli.Usage(errors.New("a name cannot be empty"))
	case namespace == "":
		return metric.PodRef{}, cli.Usage(fmt.Errorf("in which namespace is %s? Write NAMESPACE/%[1]s, or add -n NAMESPACE", name))
	}
	return metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(name)}, nil
}

// orMeant adds to an error about a pod that weir does not know the pod that was
// perhaps meant. It asks with the caller's rights: what he may not see is not
// suggested.
func (a *asking) orMeant(ctx context.Context, w Asker, ref metric.PodRef, err error) error {
	if !connect.Unknown(err) {
		return err
	}
	none := []string{} // no metrics are needed
	if list, failed := w.List(ctx, usage.Pods, usage.Query{Name: string(ref.Name), Metrics: none}); failed == nil && len(list.Items) > 0 {
		var others []string
		for _, it := range list.Items {
			others = append(others, fmt.Sprintf("%s/%s", it.Namespace, it.Pod))
		}
		return cli.Hintf(err, "There is %s.", orList(others))
	}
	list, failed := w.List(ctx, usage.Pods, usage.Query{Namespace: string(ref.Namespace), Metrics: none})
	if failed != nil {
		return err
	}
	var names []string
	for _, it := range list.Items {
		names = append(names, string(it.Pod))
	}
	if near, ok := suggest.Closest(string(ref.Name), names); ok {
		return cli.Hintf(err, "Did you mean %s/%s?", ref.Namespace, near)
	}
	return err
}

// orMeantNode is the same for a node.
func orMeantNode(ctx context.Context, w Asker, name string, err error) error {
	if !connect.Unknown(err) {
		return err
	}
	list, failed := w.List(ctx, usage.Nodes, usage.Query{Metrics: []string{}})
	if failed != nil {
		return err
	}
	var names []string
	for _, it := range list.Items {
		names = append(names, string(it.Node))
	}
	if near, ok := suggest.Closest(name, names); ok {
		return cli.Hintf(err, "Did you mean %s?", near)
	}
	return err
}

// orList writes some names, and how many more there are.
func orList(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, " and ")
}
