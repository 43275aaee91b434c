package autoscaling

import (
	"net/http"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
)

// Rights returns the rights that the caller of r needs: to read the autoscaler or to create
// evaluations, and in both cases to list the numbers of the namespace's pods, because the answer
// shows them. An evaluation needs further rights, to what its manifest names.
func Rights(r *http.Request) []rights.Right {
	request, err := ParseRequest(r, time.Now())
	if err != nil {
		return rights.Everything()
	}
	if request.Evaluate {
		return []rights.Right{
			{Verb: "create", Group: weirdev.Group, Resource: Evaluations, Namespace: request.Namespace},
			rights.ListPods(request.Namespace),
		}
	}
	return rights.GetAutoscaler(request.Kind, request.Namespace, request.Name)
}

// metricRights returns the rights to the custom and external metrics of a specification: those for the
// requests that Kubernetes' controller sends for them.
func metricRights(namespace string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) (needed []rights.Right) {
	const custom = "custom.metrics.k8s.io"
	for i := range spec.Metrics {
		switch m := &spec.Metrics[i]; {
		case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
			needed = append(needed, rights.Right{Verb: "get", Group: custom, Resource: "pods", Subresource: m.Pods.Metric.Name, Namespace: namespace, Name: "*"})
		case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
			object := m.Object.DescribedObject
			kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
			if kind.Group == "" && kind.Kind == "Namespace" { // has another path
				needed = append(needed, rights.Right{Verb: "get", Group: custom, Resource: "metrics", Namespace: namespace, Name: m.Object.Metric.Name})
				continue
			}
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			needed = append(needed, rights.Right{Verb: "get", Group: custom, Resource: plural.GroupResource().String(), Subresource: m.Object.Metric.Name, Namespace: namespace, Name: object.Name})
		case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
			needed = append(needed, rights.Right{Verb: "list", Group: "external.metrics.k8s.io", Resource: m.External.Metric.Name, Namespace: namespace})
		}
	}
	return needed
}
