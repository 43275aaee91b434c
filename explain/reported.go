package explain

import (
	"cmp"

	"github.com/weir-metrics/weir/metric"
)

// reportedPod is what is known of a pod that only nodes report.
type reportedPod struct {
	podState
	measured metric.NodeName // the node of its sample
	judged   metric.NodeName // the node of its verdict
}

// reported counts the pods of some namespaces that only nodes report, on a machine without a
// cluster. It reports whether there are any.
func (r *reporter) reported(includes func(metric.Namespace) bool) bool {
	pods := r.reportedPods(includes)
	for ref, p := range pods {
		node := cmp.Or(p.measured, p.judged)
		ofNode := r.s.Node(node)
		f := &file{explainer: r.s.explainer, ref: ref, node: node, read: r.s.reading(node), nodeOutcome: &ofNode}
		outcome := f.judgeUnlisted(metric.CPU, p.measurement, p.best)
		if outcome.Reason == metric.Ambiguous {
			outcome.Since, outcome.evidence.Rule = p.doubt.since, p.doubt.rule
		}
		r.pods.count(&outcome)
		if c := r.cause(&outcome, node, metric.Pod); c != nil {
			c.Pods++
			c.names = append(c.names, named{ref: ref, container: outcome.Container})
		}
	}
	return len(pods) > 0
}

// reportedPods collects the pods that nodes report.
func (r *reporter) reportedPods(includes func(metric.Namespace) bool) map[metric.PodRef]*reportedPod {
	pods := map[metric.PodRef]*reportedPod{}
	if r.s.explainer.View == nil {
		return pods
	}
	podOf := func(e *metric.Entity) *reportedPod {
		p := pods[e.PodRef()]
		if p == nil {
			p = &reportedPod{}
			pods[e.PodRef()] = p
		}
		return p
	}
	for sample := range r.s.explainer.View.Samples(metric.Pod) {
		e := &sample.Entity
		if e.Part != "" || !includes(e.Namespace) {
			continue
		}
		p := podOf(e)
		if p.measured != "" { // several nodes report it, and the view has chosen one
			if sample = r.s.explainer.lookupPod(e.PodRef()); sample == nil {
				continue
			}
		}
		p.measurement, p.measured = r.s.measure(sample), sample.Entity.Node
	}
	for v, since := range r.s.explainer.View.Verdicts() {
		e := &v.Entity
		if e.Kind != metric.Pod && e.Kind != metric.Container || !includes(e.Namespace) {
			continue
		}
		p := podOf(e)
		before := p.best
		if r.s.noteVerdict(&p.podState, &v, since); p.best != before {
			p.judged = e.Node
		}
	}
	return pods
}
