package model

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/api/rights"
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
func parsePath(escaped string) (route, *requestError) {
	switch strings.TrimSuffix(escaped, "/") {
	case exportPath:
		return route{action: showExport}, nil
	case schemaPath:
		return route{action: showSchema}, nil
	}
	for _, root := range []struct {
		path  string
		parse func([]string) (route, *requestError)
	}{{modelRoot, parseModel}, {usageRoot, parseUsage}} {
		rest, ok := strings.CutPrefix(escaped, root.path)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		segments, ok := splitPath(rest)
		if !ok {
			return route{}, notFound("the path has an empty or badly escaped part; a name with a slash is written with %%2F")
		}
		return root.parse(segments)
	}
	if escaped == historicalRoot || strings.HasPrefix(escaped, historicalRoot+"/") {
		return route{}, notFound("weir has no %s: it keeps some minutes, which %s serves; older points are in the store that weir's metrics are written to",
			historicalRoot, modelRoot)
	}
	return route{}, notFound("nothing is served at this path")
}

// splitPath takes a path below a root apart; a slash at the end is allowed.
func splitPath(path string) (segments []string, ok bool) {
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
func parseModel(s []string) (route, *requestError) {
	if len(s) == 0 {
		return route{action: listRoot}, nil
	}
	switch s[0] {
	case "metrics":
		return parseMetrics(metric.Entity{Kind: metric.Cluster}, s)
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
	return notFoundBelow("metrics, nodes, namespaces and debug/allkeys", modelRoot)
}

// parseNode reads what follows a node's name.
func parseNode(node metric.Entity, s []string) (route, *requestError) {
	const there = "metrics, freecontainers and pods"
	if len(s) == 0 {
		return notFoundBelow(there, "a node")
	}
	switch s[0] {
	case "metrics":
		return parseMetrics(node, s)
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
		return parseEntityMetrics(e, s[2:])
	}
	return notFoundBelow(there, "a node")
}

// parseNamespace reads what follows a namespace's name.
func parseNamespace(ns metric.Entity, s []string) (route, *requestError) {
	const there = "metrics, pods and pod-list"
	if len(s) == 0 {
		return notFoundBelow(there, "a namespace")
	}
	switch s[0] {
	case "metrics":
		return parseMetrics(ns, s)
	case "pods":
		if len(s) == 1 {
			return route{action: listPods, entity: ns}, nil
		}
		pod := metric.Entity{Kind: metric.Pod, Namespace: ns.Namespace, Pod: metric.PodName(s[1])}
		if len(s) == 2 || s[2] != "containers" {
			return parseEntityMetrics(pod, s[2:])
		}
		if len(s) == 3 {
			return route{action: listContainers, entity: pod}, nil
		}
		container := pod
		container.Kind, container.Name = metric.Container, s[3]
		return parseEntityMetrics(container, s[4:])
	case "pod-list":
		if len(s) < 4 || s[2] != "metrics" {
			return notFoundBelow("POD,POD,.../metrics/METRIC", "pod-list")
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
	return notFoundBelow(there, "a namespace")
}

// parseEntityMetrics reads "metrics" or "metrics/NAME" after the name of an entity.
func parseEntityMetrics(e metric.Entity, s []string) (route, *requestError) {
	switch {
	case len(s) > 0 && s[0] == "metrics":
		return parseMetrics(e, s)
	case e.Kind == metric.Pod:
		return notFoundBelow("metrics and containers", "a pod")
	}
	return notFoundBelow("metrics", "a container")
}

// parseMetrics reads "metrics" or "metrics/NAME"; the name has slashes of its own.
func parseMetrics(e metric.Entity, s []string) (route, *requestError) {
	if len(s) == 1 {
		return route{action: listNames, entity: e}, nil
	}
	return route{action: showPoints, entity: e, metric: strings.Join(s[1:], "/")}, nil
}

// parseUsage reads what follows /apis/metrics/v1alpha1.
func parseUsage(s []string) (route, *requestError) {
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
	return notFoundBelow("nodes, nodes/NAME, pods, namespaces/NAME/pods and namespaces/NAME/pods/NAME", usageRoot)
}

// notFoundBelow says what there is where a path went on to what there is not.
func notFoundBelow(there, under string) (route, *requestError) {
	return route{}, notFound("nothing is served at this path; below %s: %s", under, there)
}

// Scope is what an answer shows, for the review of who may see it. The zero
// Scope shows nothing that was measured: the list of subpaths, the schema.
type Scope struct {
	// Namespace is set if the numbers shown are of exactly one namespace.
	Namespace metric.Namespace
	// Nodes says that numbers of nodes and of what runs on them beside pods are
	// shown.
	Nodes bool
	// All says that numbers of every namespace and node may be shown.
	All bool
}

// ScopeOf returns what the answer to a request shows. A path that is not
// understood is said to show all, so that a mistake here refuses rather than
// reveals.
func ScopeOf(r *http.Request) Scope {
	route, _ := parsePath(r.URL.EscapedPath())
	switch route.action {
	case listRoot, showSchema:
		return Scope{}
	case listNodes, listSystem, showNodesUsage, showNodeUsage:
		return Scope{Nodes: true}
	case listPods, listContainers, showPodList, showPodsUsage, showPodUsage:
		return Scope{Namespace: route.entity.Namespace}
	case listNames, showPoints:
		switch route.entity.Kind {
		case metric.Node, metric.System:
			return Scope{Nodes: true}
		case metric.Namespaced, metric.Pod, metric.Container:
			return Scope{Namespace: route.entity.Namespace}
		}
	}
	return Scope{All: true}
}

// entityNames returns the names a list is of, sorted.
func (q *request) entityNames() []string {
	var kind metric.Kind
	name := func(e metric.Entity) string { return e.Name }
	switch q.action {
	case listNodes:
		kind, name = metric.Node, func(e metric.Entity) string { return string(e.Node) }
	case listNamespaces:
		kind, name = metric.Namespaced, func(e metric.Entity) string { return string(e.Namespace) }
	case listPods:
		kind, name = metric.Pod, func(e metric.Entity) string { return string(e.Pod) }
	case listNodePods:
		kind, name = metric.Pod, func(e metric.Entity) string { return e.PodRef().String() }
	case listSystem:
		kind = metric.System
	case listContainers:
		names := []string{}
		_, containers := q.view.Pod(q.entity.PodRef())
		for _, c := range containers {
			names = append(names, c.Entity.Name)
		}
		return names
	}
	names := []string{}
	q.view.Each(kind, func(s *metric.Sample) bool {
		e := s.Entity
		if (q.entity.Node == "" || e.Node == q.entity.Node) && (q.entity.Namespace == "" || e.Namespace == q.entity.Namespace) {
			names = append(names, name(e))
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names) // parts go by the name of what they belong to
}

// allKeys returns Heapster's keys of everything that is measured, sorted.
func (q *request) allKeys() []string {
	keys := []string{}
	for kind := range metric.NumKinds {
		q.view.Each(metric.Kind(kind), func(s *metric.Sample) bool {
			keys = append(keys, entityKey(s.Entity))
			return true
		})
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// entityKey returns Heapster's key of an entity.
func entityKey(e metric.Entity) string {
	switch e.Kind {
	case metric.Cluster:
		return "cluster"
	case metric.Node:
		return "node:" + string(e.Node)
	case metric.System:
		return "node:" + string(e.Node) + "/container:" + e.Name
	}
	k := "namespace:" + string(e.Namespace)
	if e.Pod != "" {
		k += "/pod:" + string(e.Pod)
	}
	if e.Name != "" {
		k += "/container:" + e.Name
	}
	return k
}

// Rights returns what the caller of r needs.
func Rights(r *http.Request) []rights.Right {
	shown := ScopeOf(r)
	switch {
	case shown.All:
		return rights.Everything()
	case shown.Nodes:
		return []rights.Right{rights.ListNodes()}
	case shown.Namespace != "":
		return []rights.Right{rights.ListPods(string(shown.Namespace))}
	}
	return nil
}
