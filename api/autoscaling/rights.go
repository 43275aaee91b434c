package autoscaling

import (
	"net/http"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// Rights returns the rights that the caller of r needs: to read the autoscaler or to create
// evaluations, and in both cases to list the numbers of the namespace's pods, because the answer
// shows them.
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
	group, resource := autoscalingv2.GroupName, HPAs
	if request.Kind == manifest.Autoscaler {
		group, resource = v1alpha1.Group, Autoscalers
	}
	return rights.GetAutoscaler(group, resource, request.Namespace, request.Name)
}
