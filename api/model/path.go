package model

import (
	"net/url"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// The roots of what is served.
const (
	modelRoot      = "/api/v1/model"
	historicalRoot = "/api/v1/historical"
	exportPath     = "/api/v1/metric-export"
	schemaPath     = "/api/v1/metric-export-schema"
	usageRoot      = "/apis/metrics/v1alpha1"
)

// Paths returns where a Handler belongs. One that ends in a slash stands for
// everything below it.
func Paths() []string {
	return []string{
		modelRoot, modelRoot + "/",
		historicalRoot, historicalRoot + "/",
		exportPath, schemaPath,
		usageRoot, usageRoot + "/",
	}
}

// maxPods bounds a pod-list, so that no request costs more than reading a
// large namespace once.
const maxPods = 10000

// action is what a path asks for.
type action uint8

const (
	noAction         action = iota // the path is not understood
	listRoot                       // what lies below /api/v1/model
	listNodes                      // names
	listNodePods                   // namespace/name of the pods on a node
	listSystem                     // names of a node's system containers
	listNamespaces                 // names
	listPods                       // names, of a namespace
	listContainers                 // names, of a pod
	listNames                      // of an entity's metrics
	listKeys                       // of everything
	showPoints                     // of an entity's metric
	showPodList                    // of several pods' metric
	showExport                     // of nodes and containers
	showSchema                     // of the export
	showNodesUsage                 // v1alpha1, of all nodes
	showNodeUsage                  // v1alpha1, of one
	showAllPodsUsage               // v1alpha1, of all pods
	showPodsUsage                  // v1alpha1, of a namespace's
	showPodUsage                   // v1alpha1, of one
)

// route is a path that was understood.
type route struct {
	action action
	entity metric.Entity // what it is about
	metric string        // as the client calls it
	pods   []metric.PodName
}

// parsePath reads a path as it came, with its escapes: a name may hold an
// escaped slash.
func parsePath(escaped string) (route, *problem) {
	switch strings.TrimSuffix(escaped, "/") {
	case exportPath:
		return route{action: showExport}, nil
	case schemaPath:
		return route{action: showSchema}, nil
	}
	for _, root := range []struct {
		path  string
		parse func([]string) (route, *problem)
	}{{modelRoot, parseModel}, {usageRoot, parseUsage}} {
		rest, ok := strings.CutPrefix(escaped, root.path)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		segments, ok := split(rest)
		if !ok {
			return route{}, notFound("the path has an empty or badly escaped part; a name with a slash is written with %%2F")
		}
		return root.parse(segments)
	}
	if escaped == historicalRoot || strings.HasPrefix(escaped, historicalRoot+"/") {
		return route{}, notFound("weir has no %s: it keeps some minutes, which %s serves; what is older lies in the store that weir's metrics are written to",
			historicalRoot, modelRoot)
	}
	return route{}, notFound("nothing is served at this path")
}

// split takes a path below a root apart; a slash at the end is allowed.
func split(path string) (segments []string, ok bool) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return nil, true
	}
	for s := range strings.SplitSeq(path, "/") {
		name, err := url.PathUnescape(s)
		if err != nil || name == "" {
			return nil, false
		}
		segments = append(segments, name)
	}
	return segments, true
}

// parseModel reads what follows /api/v1/model.
func parseModel(s []string) (route, *problem) {
	if len(s) == 0 {
		return route{action: listRoot}, nil
	}
	switch s[0] {
	case "metrics":
		return metrics(metric.Entity{Kind: metric.Cluster}, s)
	case "nodes":
		if len(s) == 1 {
			return route{action: listNodes}, nil
		}
		return parseNode(metric.Entity{Kind: metric.Node, Node: metric.NodeName(s[1])}, s[2:])
	case "namespaces":
		if len(s) == 1 {
			return route{action: listNamespaces}, nil
		}
		return parseNamespace(metric.Entity{Kind: metric.Namespaced, Namespace: metric.Namespace(s[1])}, s[2:])
	case "debug":
		if len(s) == 2 && s[1] == "allkeys" {
			return route{action: listKeys}, nil
		}
	}
	return beyond("metrics, nodes, namespaces and debug/allkeys", modelRoot)
}

// parseNode reads what follows a node's name.
func parseNode(node metric.Entity, s []string) (route, *problem) {
	const there = "metrics, freecontainers and pods"
	if len(s) == 0 {
		return beyond(there, "a node")
	}
	switch s[0] {
	case "metrics":
		return metrics(node, s)
	case "pods":
		if len(s) == 1 {
			return route{action: listNodePods, entity: node}, nil
		}
		return route{}, notFound("a node has only the list of its pods: each is served under %s/namespaces/NAMESPACE/pods/POD", modelRoot)
	case "freecontainers":
		if len(s) == 1 {
			return route{action: listSystem, entity: node}, nil
		}
		e := metric.Entity{Kind: metric.System, Node: node.Node, Name: s[1]}
		return below(e, s[2:])
	}
	return beyond(there, "a node")
}

// parseNamespace reads what follows a namespace's name.
func parseNamespace(ns metric.Entity, s []string) (route, *problem) {
	const there = "metrics, pods and pod-list"
	if len(s) == 0 {
		return beyond(there, "a namespace")
	}
	switch s[0] {
	case "metrics":
		return metrics(ns, s)
	case "pods":
		if len(s) == 1 {
			return route{action: listPods, entity: ns}, nil
		}
		pod := metric.Entity{Kind: metric.Pod, Namespace: ns.Namespace, Pod: metric.PodName(s[1])}
		if len(s) == 2 || s[2] != "containers" {
			return below(pod, s[2:])
		}
		if len(s) == 3 {
			return route{action: listContainers, entity: pod}, nil
		}
		container := pod
		container.Kind, container.Name = metric.Container, s[3]
		return below(container, s[4:])
	case "pod-list":
		if len(s) < 4 || s[2] != "metrics" {
			return beyond("POD,POD,.../metrics/METRIC", "pod-list")
		}
		if n := strings.Count(s[1], ",") + 1; n > maxPods {
			return route{}, badRequest("the pod-list names %d pods, at most %d are served at once: ask in several requests", n, maxPods)
		}
		r := route{action: showPodList, entity: ns, metric: strings.Join(s[3:], "/")}
		for name := range strings.SplitSeq(s[1], ",") {
			r.pods = append(r.pods, metric.PodName(name))
		}
		return r, nil
	}
	return beyond(there, "a namespace")
}

// below reads "metrics" or "metrics/NAME" after the name of an entity.
func below(e metric.Entity, s []string) (route, *problem) {
	switch {
	case len(s) > 0 && s[0] == "metrics":
		return metrics(e, s)
	case e.Kind == metric.Pod:
		return beyond("metrics and containers", "a pod")
	}
	return beyond("metrics", "a container")
}

// metrics reads "metrics" or "metrics/NAME"; the name has slashes of its own.
func metrics(e metric.Entity, s []string) (route, *problem) {
	if len(s) == 1 {
		return route{action: listNames, entity: e}, nil
	}
	return route{action: showPoints, entity: e, metric: strings.Join(s[1:], "/")}, nil
}

// parseUsage reads what follows /apis/metrics/v1alpha1.
func parseUsage(s []string) (route, *problem) {
	switch {
	case len(s) == 1 && s[0] == "nodes":
		return route{action: showNodesUsage}, nil
	case len(s) == 2 && s[0] == "nodes":
		return route{action: showNodeUsage, entity: metric.Entity{Kind: metric.Node, Node: metric.NodeName(s[1])}}, nil
	case len(s) == 1 && s[0] == "pods":
		return route{action: showAllPodsUsage}, nil
	case len(s) >= 3 && len(s) <= 4 && s[0] == "namespaces" && s[2] == "pods":
		e := metric.Entity{Kind: metric.Namespaced, Namespace: metric.Namespace(s[1])}
		if len(s) == 3 {
			return route{action: showPodsUsage, entity: e}, nil
		}
		e.Kind, e.Pod = metric.Pod, metric.PodName(s[3])
		return route{action: showPodUsage, entity: e}, nil
	}
	return beyond("nodes, nodes/NAME, pods, namespaces/NAME/pods and namespaces/NAME/pods/NAME", usageRoot)
}

// beyond says what there is where a path went on to what there is not.
func beyond(there, under string) (route, *problem) {
	return route{}, notFound("nothing is served at this path; below %s: %s", under, there)
}
