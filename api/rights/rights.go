// Package rights names the rights that weir's paths ask of whoever reads them. Weir's own
// paths ask for what metrics.k8s.io asks for the same numbers. Each API package says in
// its function Rights which of them a request needs; api/server asks the cluster.
package rights

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
)

// Right is one right that a reader must have, as an access review asks for it.
type Right struct {
	// Verb is "get", "list" or "create".
	Verb string
	// Group is the API group, "metrics.k8s.io"; empty for the core group.
	Group string
	// Resource is the plural: "pods", "nodes".
	Resource string
	// Subresource is "stats" of nodes/stats; empty for the object itself.
	Subresource string
	// Namespace is empty for all namespaces, and for resources that have none.
	Namespace string
	// Name is that of one object; empty for all.
	Name string
}

// metricsGroup is the API group whose rights cover everything that is measured.
const metricsGroup = "metrics.k8s.io"

// ListPods is the right to list pods.metrics.k8s.io in a namespace, or in all
// if it is empty.
func ListPods(namespace string) Right {
	return Right{Verb: "list", Group: metricsGroup, Resource: "pods", Namespace: namespace}
}

// GetPod is the right to read one pod of pods.metrics.k8s.io.
func GetPod(namespace, name string) Right {
	return Right{Verb: "get", Group: metricsGroup, Resource: "pods", Namespace: namespace, Name: name}
}

// ListNodes is the right to list nodes.metrics.k8s.io.
func ListNodes() Right { return Right{Verb: "list", Group: metricsGroup, Resource: "nodes"} }

// GetNode is the right to read one node of nodes.metrics.k8s.io.
func GetNode(name string) Right {
	return Right{Verb: "get", Group: metricsGroup, Resource: "nodes", Name: name}
}

// Everything is the right to all that is measured. A request that cannot be parsed needs
// it: its handler then refuses it only to readers who may ask at all.
func Everything() []Right { return []Right{ListPods(""), ListNodes()} }

// GetNodeStats is the right that a kubelet asks for its /stats.
func GetNodeStats(name string) Right {
	return Right{Verb: "get", Resource: "nodes", Subresource: "stats", Name: name}
}

// GetNodeMetrics is the right that a kubelet asks for its /metrics.
func GetNodeMetrics(name string) Right {
	return Right{Verb: "get", Resource: "nodes", Subresource: "metrics", Name: name}
}

// GetOwnNode is the right to read a subresource of a node in weir's own API group.
func GetOwnNode(name, subresource string) Right {
	return Right{Verb: "get", Group: weirdev.Group, Resource: "nodes", Subresource: subresource, Name: name}
}

// GetAutoscaler is what the explanation of an autoscaler needs: the right to read that
// object, and to list the numbers of its namespace's pods, which the explanation shows.
// Group and resource are "autoscaling", "horizontalpodautoscalers" for one of Kubernetes'.
func GetAutoscaler(group, resource, namespace, name string) []Right {
	return []Right{
		{Verb: "get", Group: group, Resource: resource, Namespace: namespace, Name: name},
		ListPods(namespace),
	}
}

// String writes the right: "list pods.metrics.k8s.io in namespace web", "get nodes/stats "n1"".
func (r Right) String() string {
	var s strings.Builder
	s.WriteString(r.Verb + " " + r.Resource)
	if r.Subresource != "" {
		s.WriteString("/" + r.Subresource)
	}
	if r.Group != "" {
		s.WriteString("." + r.Group)
	}
	if r.Name != "" {
		fmt.Fprintf(&s, " %q", r.Name)
	}
	switch {
	case r.Namespace != "":
		s.WriteString(" in namespace " + r.Namespace)
	case r.Resource == "pods":
		s.WriteString(" in all namespaces")
	}
	return s.String()
}
