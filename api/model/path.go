package model

import (
	"net/url"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// The roots of the paths that are served.
const (
	modelRoot      = "/api/v1/model"
	historicalRoot = "/api/v1/historical"
	exportPath     = "/api/v1/metric-export"
	schemaPath     = "/api/v1/metric-export-schema"
	usageRoot      = "/apis/metrics/v1alpha1"

	nodesRoot      = modelRoot + "/nodes"
	namespacesRoot = modelRoot + "/namespaces"
)

// Paths returns the paths that a Handler serves. A path that ends in a slash means everything below
// it.
func Paths() []string {
	return []string{
		modelRoot, modelRoot + "/",
		historicalRoot, historicalRoot + "/",
		exportPath, schemaPath,
		usageRoot, usageRoot + "/",
	}
}

// route is a path that is served. NODE, SYSTEM (a system container), NAMESPACE, POD, PODS
// (separated by commas) and CONTAINER are placeholders for a name. METRIC is a placeholder for the
// rest of the path: names of metrics have slashes.
type route struct {
	path   string
	shows  scope
	answer func(*request) *requestError
}

// scope shows which numbers an answer shows, for the access review.
type scope uint8

const (
	everything   scope = iota // of every namespace and node
	nodes                     // of nodes, and of what runs on them outside pods
	oneNamespace              // of one namespace
	nothing                   // nothing that was measured
)

var routes = []route{
	{modelRoot, nothing, (*request).writeRoot},
	{modelRoot + "/debug/allkeys", everything, (*request).writeKeys},
	{modelRoot + "/metrics", everything, (*request).writeMetricNames},
	{modelRoot + "/metrics/METRIC", everything, (*request).writePoints},

	{nodesRoot, nodes, namesOf(metric.Node, func(e metric.Entity) string { return string(e.Node) })},
	{nodesRoot + "/NODE/metrics", nodes, (*request).writeMetricNames},
	{nodesRoot + "/NODE/metrics/METRIC", nodes, (*request).writePoints},
	{nodesRoot + "/NODE/pods", everything, namesOf(metric.Pod, func(e metric.Entity) string { return e.PodRef().String() })},
	{nodesRoot + "/NODE/freecontainers", nodes, namesOf(metric.System, func(e metric.Entity) string { return e.Name })},
	{nodesRoot + "/NODE/freecontainers/SYSTEM/metrics", nodes, (*request).writeMetricNames},
	{nodesRoot + "/NODE/freecontainers/SYSTEM/metrics/METRIC", nodes, (*request).writePoints},

	{namespacesRoot, everything, namesOf(metric.Namespaced, func(e metric.Entity) string { return string(e.Namespace) })},
	{namespacesRoot + "/NAMESPACE/metrics", oneNamespace, (*request).writeMetricNames},
	{namespacesRoot + "/NAMESPACE/metrics/METRIC", oneNamespace, (*request).writePoints},
	{namespacesRoot + "/NAMESPACE/pods", oneNamespace, namesOf(metric.Pod, func(e metric.Entity) string { return string(e.Pod) })},
	{namespacesRoot + "/NAMESPACE/pods/POD/metrics", oneNamespace, (*request).writeMetricNames},
	{namespacesRoot + "/NAMESPACE/pods/POD/metrics/METRIC", oneNamespace, (*request).writePoints},
	{namespacesRoot + "/NAMESPACE/pods/POD/containers", oneNamespace, (*request).writeContainers},
	{namespacesRoot + "/NAMESPACE/pods/POD/containers/CONTAINER/metrics", oneNamespace, (*request).writeMetricNames},
	{namespacesRoot + "/NAMESPACE/pods/POD/containers/CONTAINER/metrics/METRIC", oneNamespace, (*request).writePoints},
	{namespacesRoot + "/NAMESPACE/pod-list/PODS/metrics/METRIC", oneNamespace, (*request).writePodList},

	{exportPath, everything, (*request).writeExport},
	{schemaPath, nothing, (*request).writeSchema},

	{usageRoot + "/nodes", nodes, (*request).writeNodesUsage},
	{usageRoot + "/nodes/NODE", nodes, (*request).writeNodeUsage},
	{usageRoot + "/pods", everything, (*request).writePodsUsage},
	{usageRoot + "/namespaces/NAMESPACE/pods", oneNamespace, (*request).writePodsUsage},
	{usageRoot + "/namespaces/NAMESPACE/pods/POD", oneNamespace, (*request).writePodUsage},
}

// deadEnds are the answers for paths that begin like a route and lead to nothing. "..." matches
// anything. The first match counts.
var deadEnds = []struct{ path, text string }{
	{nodesRoot + "/NODE/pods/...", "a node has only the list of its pods: each is served under " + namespacesRoot + "/NAMESPACE/pods/POD"},
	{nodesRoot + "/NODE/freecontainers/SYSTEM/...", "nothing is served at this path; below a container: metrics"},
	{nodesRoot + "/NODE/...", "nothing is served at this path; below a node: metrics, freecontainers and pods"},
	{namespacesRoot + "/NAMESPACE/pods/POD/containers/CONTAINER/...", "nothing is served at this path; below a container: metrics"},
	{namespacesRoot + "/NAMESPACE/pods/POD/...", "nothing is served at this path; below a pod: metrics and containers"},
	{namespacesRoot + "/NAMESPACE/pod-list/...", "nothing is served at this path; below pod-list: POD,POD,.../metrics/METRIC"},
	{namespacesRoot + "/NAMESPACE/...", "nothing is served at this path; below a namespace: metrics, pods and pod-list"},
	{modelRoot + "/...", "nothing is served at this path; below " + modelRoot + ": metrics, nodes, namespaces and debug/allkeys"},
	{usageRoot + "/...", "nothing is served at this path; below " + usageRoot + ": nodes, nodes/NAME, pods, namespaces/NAME/pods and namespaces/NAME/pods/NAME"},
	{historicalRoot + "/...", "weir has no " + historicalRoot + ": it keeps some minutes, which " + modelRoot + " serves; older points are in the store that weir's metrics are written to"},
	{"/...", "nothing is served at this path"},
}

// target is what a path asks for.
type target struct {
	route
	entity metric.Entity // the entity in the path
	metric string        // as the client calls it; empty if the path names none
	pods   []metric.PodName
}

// parsePath reads an escaped path: a name may hold an escaped slash.
func parsePath(escaped string) (target, *requestError) {
	segments := strings.Split(strings.TrimSuffix(escaped, "/"), "/")[1:]
	for i, s := range segments {
		name, err := url.PathUnescape(s)
		if err != nil || name == "" {
			return target{}, notFound("the path has an empty or badly escaped part; a name with a slash is written with %%2F")
		}
		segments[i] = name
	}
	for _, r := range routes {
		if t, ok := matchPath(r.path, segments); ok {
			t.route = r
			return t, nil
		}
	}
	for _, d := range deadEnds {
		if _, ok := matchPath(d.path, segments); ok {
			return target{}, notFound("%s", d.text)
		}
	}
	return target{}, notFound("nothing is served at this path")
}

// matchPath matches the segments of a path against the path of a route.
func matchPath(path string, segments []string) (t target, ok bool) {
	words := strings.Split(path, "/")[1:]
	for i, word := range words {
		if word == "..." {
			return t, true
		}
		if i == len(segments) {
			return t, false
		}
		switch name := segments[i]; word {
		case "NODE":
			t.entity.Kind, t.entity.Node = metric.Node, metric.NodeName(name)
		case "SYSTEM":
			t.entity.Kind, t.entity.Name = metric.System, name
		case "NAMESPACE":
			t.entity.Kind, t.entity.Namespace = metric.Namespaced, metric.Namespace(name)
		case "POD":
			t.entity.Kind, t.entity.Pod = metric.Pod, metric.PodName(name)
		case "CONTAINER":
			t.entity.Kind, t.entity.Name = metric.Container, name
		case "PODS":
			for pod := range strings.SplitSeq(name, ",") {
				t.pods = append(t.pods, metric.PodName(pod))
			}
		case "METRIC":
			t.metric = strings.Join(segments[i:], "/")
			return t, true
		default:
			if word != name {
				return t, false
			}
		}
	}
	return t, len(words) == len(segments)
}

// writeRoot answers with the list of paths below /api/v1/model.
func (r *request) writeRoot() *requestError {
	return r.writeJSON([]string{"metrics", "nodes", "namespaces", "debug/allkeys"})
}

// namesOf returns a function that answers with the sorted names of the entities of a kind, on the
// node or in the namespace of the path.
func namesOf(kind metric.Kind, name func(metric.Entity) string) func(*request) *requestError {
	return func(q *request) *requestError {
		names := []string{}
		q.view.Each(kind, func(s *metric.Sample) bool {
			e := s.Entity
			if (q.entity.Node == "" || e.Node == q.entity.Node) && (q.entity.Namespace == "" || e.Namespace == q.entity.Namespace) {
				names = append(names, name(e))
			}
			return true
		})
		slices.Sort(names)
		return q.writeJSON(slices.Compact(names)) // a part has the name of its entity
	}
}

// writeContainers answers with the names of a pod's containers.
func (r *request) writeContainers() *requestError {
	names := []string{}
	_, containers := r.view.Pod(r.entity.PodRef())
	for _, c := range containers {
		names = append(names, c.Entity.Name)
	}
	return r.writeJSON(names)
}

// writeKeys answers with Heapster's keys of all measured entities, sorted.
func (r *request) writeKeys() *requestError {
	keys := []string{}
	for kind := range metric.NumKinds {
		r.view.Each(metric.Kind(kind), func(s *metric.Sample) bool {
			keys = append(keys, entityKey(s.Entity))
			return true
		})
	}
	slices.Sort(keys)
	return r.writeJSON(slices.Compact(keys))
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
