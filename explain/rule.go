package explain

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// Rule returns the outcome of a metric of an entity of any kind. known is false if nothing is known
// of the entity. The node of a pod or container may be empty. If there are several metrics, the
// outcome is that of the first one that is not served: a pod, for example, is served by CPU and
// memory.
func (ex *Explainer) Rule(e metric.Entity, about ...metric.ID) (r Outcome, known bool) {
	for _, id := range about {
		if r, known = ex.rule(e, id); !known || !r.Served {
			break
		}
	}
	if !known && ex.Facts != nil && !ex.Facts.Synced {
		return Outcome{Reason: metric.WarmingUp, Said: notListedMessage}, true
	}
	return r, known
}

// notListedMessage is the answer for everything until pods and nodes have been listed.
const notListedMessage = "weir has just started, and the API server has not listed pods and nodes yet"

func (ex *Explainer) rule(e metric.Entity, id metric.ID) (Outcome, bool) {
	g := id.Describe().Group
	switch e.Kind {
	case metric.Node:
		if !ex.openNode(e.Node).known() {
			return Outcome{}, false
		}
		return ex.SurveyOf(id).Node(e.Node), true
	case metric.Pod:
		if p := ex.Facts.Pod(e.PodRef()); p != nil {
			return ex.SurveyOf(id).Pod(p), true
		}
		f := ex.openAnywhere(e.PodRef())
		r, _ := f.judge(metric.Pod, "", g, measureMetric(f.pod, id))
		return r, f.known()
	case metric.Container:
		f := ex.openAnywhere(e.PodRef())
		r, _ := f.judge(metric.Container, e.Name, g, measureMetric(f.sample(metric.Container, e.Name), id))
		return r, slices.Contains(f.names(), e.Name)
	case metric.System:
		return ex.judgeSystem(e, id)
	default:
		return ex.judgeSum(e, id)
	}
}

// openAnywhere collects what is known of a pod on its node, or on all nodes if the API server does
// not name one.
func (ex *Explainer) openAnywhere(ref metric.PodRef) *file {
	if p := ex.Facts.Pod(ref); p != nil {
		return ex.open(ref, ex.verdictsOn(p.Node))
	}
	return ex.open(ref, ex.verdicts())
}

// judgeSystem returns the outcome of a cgroup of a node that belongs to no pod.
func (ex *Explainer) judgeSystem(e metric.Entity, id metric.ID) (Outcome, bool) {
	g, l := id.Describe().Group, measureMetric(ex.lookup(e), id)
	var st *activeVerdict
	for v, since := range ex.verdictsOn(e.Node) {
		if v.Entity == e && concernsGroup(&v, g) {
			keep(&st, &v, since, g)
		}
	}
	r := judgeCgroup(e, g, l, measure(ex.lookup(e), metric.Memory), st, func() Outcome { return ex.SurveyOf().Node(e.Node) })
	return r, l.reported || st != nil
}

// judgeSum returns the outcome of a sum over pods, of a namespace or the cluster. The sum exists if
// one of the pods has the number, and there are no verdicts on it.
func (ex *Explainer) judgeSum(e metric.Entity, id metric.ID) (Outcome, bool) {
	l := measureMetric(ex.lookup(e), id)
	switch {
	case l.complete:
		return l.outcome(id.Describe().Group), true
	case l.metricMissing:
		return l.withoutMetric(id.Describe().Group), true
	case l.reported, e.Kind == metric.Cluster, len(ex.Facts.PodsIn(e.Namespace)) > 0:
		return Outcome{Reason: l.missingReason()}, true
	}
	for v := range ex.verdicts() {
		if v.Entity.Namespace == e.Namespace {
			return Outcome{Reason: metric.NotReported}, true
		}
	}
	return Outcome{}, false
}
