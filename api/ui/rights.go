package ui

import (
	"net/http"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/metric"
)

// Scope describes what an answer shows. The reader needs the right to read that.
type Scope struct {
	// All is set if it shows nodes and the pods of all namespaces.
	All bool
	// Namespace is the namespace of the pods, if it shows those of one namespace.
	Namespace metric.Namespace
	// Kind and Name identify the autoscaler if the answer shows one. The reader also needs the
	// right to read it.
	Kind, Name string
	// Eviction is the node if the answer shows its evictions. They need their own right.
	Eviction metric.NodeName
	// Events is the namespace if the answer shows Events of it, and nothing else.
	Events string
}

// ScopeOf returns what the answer to a request shows, or the zero Scope for an invalid request.
func ScopeOf(r *http.Request) Scope {
	q, err := parse(r.URL)
	switch {
	case err != nil:
		return Scope{}
	case q.view == oneEviction:
		return Scope{All: true, Eviction: q.node}
	case q.view == oneEvents:
		return Scope{Events: q.events.Namespace}
	case q.view == oneAutoscaler:
		return Scope{Namespace: q.pod.Namespace, Kind: q.autoscalerKind, Name: string(q.pod.Name)}
	case q.pod.Namespace != "":
		return Scope{Namespace: q.pod.Namespace}
	}
	return Scope{All: true}
}

// Rights returns the rights that a request needs. They are those of the APIs that serve the same
// numbers.
func Rights(r *http.Request) []rights.Right {
	switch shown := ScopeOf(r); {
	case shown.Eviction != "":
		return append(rights.Everything(), rights.GetOwnNode(string(shown.Eviction), "eviction"))
	case shown.All:
		return rights.Everything()
	case shown.Events != "":
		return []rights.Right{rights.ListEvents(shown.Events)}
	case shown.Name != "" && shown.Kind == manifest.Autoscaler:
		return rights.GetAutoscaler(v1alpha1.Group, "autoscalers", string(shown.Namespace), shown.Name)
	case shown.Name != "":
		return rights.GetAutoscaler(autoscalingv2.GroupName, "horizontalpodautoscalers", string(shown.Namespace), shown.Name)
	case shown.Namespace != "":
		return []rights.Right{rights.ListPods(string(shown.Namespace))}
	}
	return nil
}
