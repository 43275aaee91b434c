package explain

import (
	"cmp"

	"github.com/weir-metrics/weir/metric"
)

// reportedPod is what is known of a pod of which only nodes speak.
type reportedPod struct {
	podState
	measured metric.NodeName // where
	judged   metric.NodeName // where the verdict was made
}

// reported counts the pods of some namespaces of which only nodes speak, on a
// machine without a cluster. It reports whether there are any.
func (r *reporter) reported(in func(metric.Namespace) bool) bool {
	pods := r.walk(in)
	for ref, p := range pods {
		node := cmp.Or(p.measured, p.judged)
		ofNode := r.s.Node(node)
		f := &file{w: r.s.w, ref: ref, node: node, read: r.s.reading(node), nodeRuling: &ofNode}
		is := f.ruleUnknown(metric.CPU, p.readings, p.best)
		if is.Reason == metric.Ambiguous {
			is.Since = p.doubt
		}
		r.pods.count(&is)
		if c := r.cause(&is, node); c != nil {
			c.Pods++
			c.names = append(c.names, named{ref: ref, container: is.Container})
		}
	}
	return len(pods) > 0
}

// walk gathers what nodes say of pods.
func (r *reporter) walk(in func(metric.Namespace) bool) map[metric.PodRef]*reportedPod {
	pods := map[metric.PodRef]*reportedPod{}
	if r.s.w.View == nil {
		return pods
	}
	of := func(e *metric.Entity) *reportedPod {
		p := pods[e.PodRef()]
		if p == nil {
			p = &reportedPod{}
			pods[e.PodRef()] = p
		}
		return p
	}
	for sample := range r.s.w.View.Samples(metric.Pod) {
		e := &sample.Entity
		if e.Part != "" || !in(e.Namespace) {
			continue
		}
		p := of(e)
		if p.measured != "" { // several nodes report it: the view knows which to go by
			if sample = r.s.w.lookupPod(e.PodRef()); sample == nil {
				continue
			}
		}
		p.readings, p.measured = r.s.look(sample), sample.Entity.Node
	}
	for v, since := range r.s.w.View.Verdicts() {
		e := &v.Entity
		if e.Kind != metric.Pod && e.Kind != metric.Container || !in(e.Namespace) {
			continue
		}
		p := of(e)
		before := p.best
		if r.s.hear(&p.podState, &v, since); p.best != before {
			p.judged = e.Node
		}
	}
	return pods
}
