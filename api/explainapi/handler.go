package explainapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Options configure a Handler.
type Options struct {
	// Explainer returns an Explainer of the current state. Required.
	Explainer func() *explain.Explainer
}

// NewHandler returns a handler for all of Paths. It may serve many requests at once.
func NewHandler(opts Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := opts.answer(w, r)
		weirdev.Respond(w, answer, err)
	})
}

// answer returns an explanation or a report.
func (o Options) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := weirdev.OnlyReads(w, r, "an explanation cannot be changed", "GET it."); err != nil {
		return nil, err
	}
	request, err := ParseRequest(r)
	if err != nil {
		return nil, err
	}
	explainer := o.Explainer()
	blind := explainer.View == nil && (explainer.Facts == nil || !explainer.Facts.Synced)
	body, ok := find(explainer, request)
	switch {
	case ok && !(blind && request.Missing):
		return body, nil
	case blind:
		return nil, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "nothing has been measured yet",
			Hint: "Ask again in a few seconds; weir's /readyz says what is waited for."}
	}
	return nil, unknown(explainer, request)
}

// find returns the answer in its JSON form, and false if weir does not know the object.
func find(w *explain.Explainer, r Request) (any, bool) {
	if r.Missing {
		if r.Namespace == "" {
			return NewReport(w.Missing()), true
		}
		var report explain.MissingReport
		var ok bool
		if r.Workload != (Workload{}) {
			report, ok = w.Workload(r.Namespace, r.Workload.Kind, r.Workload.Name)
		} else {
			report, ok = w.Namespace(r.Namespace)
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
		e, ok = w.Cgroup(r.Node, r.Cgroup)
	case r.Node != "":
		e, ok = w.Node(r.Node)
	case r.Container != "":
		e, ok = w.Container(r.pod(), r.Container)
	default:
		e, ok = w.Pod(r.pod())
	}
	if !ok {
		return nil, false
	}
	return NewExplanation(e), true
}

func (r Request) pod() metric.PodRef { return metric.PodRef{Namespace: r.Namespace, Name: r.Pod} }

// unknown is the problem for an object that weir does not know. It says where to look. It does not
// mention other pods, because the caller may have no right to them.
func unknown(w *explain.Explainer, r Request) *weirdev.Problem {
	p := &weirdev.Problem{Status: http.StatusNotFound, Message: "weir knows no " + r.String()}
	who := "Neither the API server nor any node speaks of it."
	if w.Facts == nil {
		who = "No node that is read speaks of it, and there is no API server to ask."
	}
	switch {
	case r.Workload != (Workload{}):
		p.Message = fmt.Sprintf("weir knows no pod of %v", r)
		p.Hint = "The kind and the name are those of the pods' owner: a Deployment, not its ReplicaSet. `kubectl get pods --show-labels` lists pods."
	case r.Missing:
		p.Message = fmt.Sprintf("weir knows no pod in namespace %s", r.Namespace)
		p.Hint = who + " Is the name right?"
	case r.Cgroup != "":
		p.Hint = "No node that is read speaks of it. `weir top cgroups` lists those that are measured; those of pods are explained by pod."
	case r.Node != "":
		p.Hint = who + " Is the name right?"
	case r.Container != "":
		p.Hint = who
		if pod, ok := w.Pod(r.pod()); ok {
			var names []string
			for i := range pod.Containers {
				names = append(names, pod.Containers[i].Container)
			}
			p.Hint = "The pod has " + strings.Join(names, ", ") + "."
		}
	default:
		p.Hint = who + " Is it in another namespace?"
	}
	return p
}
