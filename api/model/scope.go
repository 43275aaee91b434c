package model

import (
	"net/http"

	"github.com/weir-metrics/weir/metric"
)

// Scope is what an answer shows, for the review of who may see it. The zero
// Scope shows nothing that was measured: the list of subpaths, the schema.
type Scope struct {
	// Namespace is the one namespace whose numbers are shown; empty if none is,
	// or more than one.
	Namespace metric.Namespace
	// Nodes says that numbers of nodes and of what runs on them beside pods are
	// shown.
	Nodes bool
	// All says that numbers of every namespace and node may be shown.
	All bool
}

// Shows returns what the answer to a request shows. A path that is not
// understood is said to show all, so that a mistake here refuses rather than
// reveals.
func Shows(r *http.Request) Scope {
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
