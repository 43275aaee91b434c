package explainapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// NewHandler returns a handler for all of Paths. It may serve many requests at once. explainer returns an
// Explainer of the current state.
func NewHandler(explainer func() *explain.Explainer) http.Handler {
	return weirdev.ReadHandler("an explanation is read-only", ParseRequest, func(_ context.Context, request Request) (any, error) {
		return answer(explainer(), request)
	})
}

// answer returns an explanation or a report.
func answer(explainer *explain.Explainer, request Request) (any, error) {
	blind := explainer.View == nil && (explainer.Facts == nil || !explainer.Facts.Synced)
	body, ok := find(explainer, request)
	switch {
	case ok && !(blind && request.Missing):
		return body, nil
	case blind:
		return nil, weirdev.NotMeasured()
	}
	return nil, unknown(explainer, request)
}

// find returns the answer in its JSON form, and false if weir does not know the object.
func find(explainer *explain.Explainer, r Request) (any, bool) {
	if r.Missing {
		if r.Namespace == "" {
			return NewReport(explainer.Missing()), true
		}
		var report explain.MissingReport
		var ok bool
		if r.Workload != (cluster.Owner{}) {
			report, ok = explainer.Workload(r.Namespace, r.Workload.Kind, r.Workload.Name)
		} else {
			report, ok = explainer.Namespace(r.Namespace)
		}
		if !ok {
			return nil, false
		}
		return NewReport(report), true
	}
	var e explain.Explanation
	var ok bool
	switch {
	case r.Cgroup != "":
		e, ok = explainer.Cgroup(r.Node, r.Cgroup)
	case r.Node != "":
		e, ok = explainer.Node(r.Node)
	case r.Container != "":
		e, ok = explainer.Container(r.pod(), r.Container)
	default:
		e, ok = explainer.Pod(r.pod())
	}
	if !ok {
		return nil, false
	}
	return NewExplanation(e), true
}

func (r Request) pod() metric.PodRef { return metric.PodRef{Namespace: r.Namespace, Name: r.Pod} }

// unknown is the problem for an object that weir does not know. The hint is where to look. It does not
// mention other pods, because the caller may have no right to them.
func unknown(explainer *explain.Explainer, r Request) *weirdev.Problem {
	p := &weirdev.Problem{Status: http.StatusNotFound, Message: "weir does not know " + r.String()}
	hint := "Neither the API server nor any node has reported it."
	if explainer.Facts == nil {
		hint = "No node that is read reports it, and this weir has no API server to ask."
	}
	switch {
	case r.Workload != (cluster.Owner{}):
		p.Message = fmt.Sprintf("weir knows no pods of %v", r)
		p.Hint = "Use the kind and the name of the pods' owner: a Deployment, not its ReplicaSet. `kubectl get pods --show-labels` lists pods."
	case r.Missing:
		p.Message = fmt.Sprintf("weir knows no pods in namespace %s", r.Namespace)
		p.Hint = hint + " Is the name right?"
	case r.Cgroup != "":
		p.Hint = "No node that is read reports it. `weir top cgroups` lists those that are measured; those of pods are explained by pod."
	case r.Node != "" && explainer.Facts.LeftOutNodes() > 0:
		p.Hint = "The cluster has more nodes than weir reads (--max-nodes), and this may be one of those that are left out."
	case r.Node != "":
		p.Hint = hint + " Is the name right?"
	case r.Container != "":
		p.Hint = hint
		if pod, ok := explainer.Pod(r.pod()); ok {
			var names []string
			for i := range pod.Containers {
				names = append(names, pod.Containers[i].Container)
			}
			p.Hint = "The pod has " + strings.Join(names, ", ") + "."
		}
	default:
		p.Hint = hint + " Is it in another namespace?"
	}
	return p
}
