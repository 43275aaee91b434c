package explainapi

import (
	"context"
	"net/http"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/metric"
)

// Rights returns the rights that the caller of r needs.
func Rights(r *http.Request) []rights.Right {
	request, err := ParseRequest(r)
	switch {
	case err != nil, request.Missing && request.Namespace == "":
		return rights.Everything()
	case request.Missing:
		return []rights.Right{rights.ListPods(string(request.Namespace))}
	case request.Node != "":
		return []rights.Right{rights.GetNode(string(request.Node))}
	}
	return []rights.Right{rights.GetPod(string(request.Namespace), string(request.Pod))}
}

// podRights returns the rights to read the numbers of one pod, or of all pods of a namespace; empty names
// mean all. A request that does not parse, for the reason err, needs all rights.
func podRights(namespace metric.Namespace, pod metric.PodName, err error) []rights.Right {
	switch {
	case err != nil:
		return rights.Everything()
	case pod != "":
		return []rights.Right{rights.GetPod(string(namespace), string(pod))}
	}
	return []rights.Right{rights.ListPods(string(namespace))}
}

// hasRight reports whether the caller has a right. It has not if that cannot be found out.
func hasRight(ctx context.Context, right rights.Right) bool {
	missing, err := rights.Missing(ctx, []rights.Right{right})
	return err == nil && len(missing) == 0
}
