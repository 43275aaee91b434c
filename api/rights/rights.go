// Package rights names the rights that the callers of weir's paths need. Weir's own paths need the
// same rights as metrics.k8s.io needs for the same numbers. In each API package the function Rights
// shows which of them a request needs; api/server asks the cluster.
package rights

import (
	"context"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// Right is one right that a caller must have, in the form of an access review.
type Right struct {
	// Verb is "get", "list" or "create".
	Verb string
	// Group is the API group, "metrics.k8s.io". It is empty for the core group.
	Group string
	// Resource is the plural name: "pods", "nodes".
	Resource string
	// Subresource is "stats" for nodes/stats. It is empty for the object itself.
	Subresource string
	// Namespace is empty for all namespaces, and for resources that have none.
	Namespace string
	// Name is the name of one object. It is empty for all objects.
	Name string
}

// metricsGroup is the API group with the rights to everything that is measured.
const metricsGroup = "metrics.k8s.io"

// ListPods is the right to list pods.metrics.k8s.io in a namespace, or in all namespaces if
// namespace is empty.
func ListPods(namespace string) Right {
	return Right{Verb: "list", Group: metricsGroup, Resource: "pods", Namespace: namespace}
}

// GetPod is the right to read one pod of pods.metrics.k8s.io.
func GetPod(namespace, name string) Right {
	return Right{Verb: "get", Group: metricsGroup, Resource: "pods", Namespace: namespace, Name: name}
}

// SeePods is the right to list the pods of a namespace in the API server, or to get one if name is not
// empty: with all that their containers wrote into their status.
func SeePods(namespace, name string) Right {
	if name != "" {
		return Right{Verb: "get", Resource: "pods", Namespace: namespace, Name: name}
	}
	return Right{Verb: "list", Resource: "pods", Namespace: namespace}
}

// ListNodes is the right to list nodes.metrics.k8s.io.
func ListNodes() Right { return Right{Verb: "list", Group: metricsGroup, Resource: "nodes"} }

// GetNode is the right to read one node of nodes.metrics.k8s.io.
func GetNode(name string) Right {
	return Right{Verb: "get", Group: metricsGroup, Resource: "nodes", Name: name}
}

// Everything is the right to everything that is measured. A request that cannot be parsed needs it,
// so that only callers with this right see what is wrong.
func Everything() []Right { return []Right{ListPods(""), ListNodes()} }

// GetNodeStats is the right that a kubelet requires for its /stats.
func GetNodeStats(name string) Right {
	return Right{Verb: "get", Resource: "nodes", Subresource: "stats", Name: name}
}

// GetNodeMetrics is the right that a kubelet requires for its /metrics.
func GetNodeMetrics(name string) Right {
	return Right{Verb: "get", Resource: "nodes", Subresource: "metrics", Name: name}
}

// GetOwnNode is the right to read a subresource of a node in weir's own API group.
func GetOwnNode(name, subresource string) Right {
	return Right{Verb: "get", Group: weirdev.Group, Resource: "nodes", Subresource: subresource, Name: name}
}

// ListEvents is the right to list the Events of a namespace in the API server.
func ListEvents(namespace string) Right {
	return Right{Verb: "list", Resource: "events", Namespace: namespace}
}

// GetAutoscaler returns the rights that the explanation of an autoscaler of a kind (HorizontalPodAutoscaler,
// Autoscaler) needs: to read that object, and to list the numbers of its namespace's pods, because the
// explanation shows them.
func GetAutoscaler(kind, namespace, name string) []Right {
	group, resource := autoscalingv2.GroupName, "horizontalpodautoscalers"
	if kind == v1alpha1.Kind {
		group, resource = v1alpha1.Group, v1alpha1.Resource
	}
	return []Right{
		{Verb: "get", Group: group, Resource: resource, Namespace: namespace, Name: name},
		ListPods(namespace),
	}
}

// String formats the right: "list pods.metrics.k8s.io in namespace web", "get nodes/stats "n1"".
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

// Reviewer returns which of some rights the caller of a request does not have, as text.
type Reviewer func(ctx context.Context, needed []Right) (missing []string, err error)

type reviewerKey struct{}

// WithReviewer returns the context of a request whose handler can call Missing.
func WithReviewer(ctx context.Context, review Reviewer) context.Context {
	return context.WithValue(ctx, reviewerKey{}, review)
}

// Missing returns which of some rights the caller of a request does not have. It is for rights that only
// the body of the request shows. On a server that does not authenticate its callers, none is missing.
func Missing(ctx context.Context, needed []Right) (missing []string, err error) {
	if review, ok := ctx.Value(reviewerKey{}).(Reviewer); ok {
		return review(ctx, needed)
	}
	return nil, nil
}
