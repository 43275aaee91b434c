package aggregate

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// judgeNode gives the reason if the node is not reported. If the source never reports nodes,
// the node is the sum of its pods, if all of them are known.
func (a *Aggregator) judgeNode(facts *cluster.Facts, b *metric.Batch) {
	if b.Node == "" {
		return
	}
	slot := b.Slots.SlotOf(&metric.Entity{Kind: metric.Node, Node: b.Node})
	at := sampleAt(b, slot)
	if at != none && (b.Samples[at].Times[metric.CPU] != 0 || b.Samples[at].Times[metric.Memory] != 0) {
		a.nodeSpeaks = true
		a.missingNumber(&b.Samples[at])
		return
	}
	reason, evidence := metric.NotReported, metric.Evidence{Due: a.next}
	switch {
	case a.readFailure.reason != metric.Unjudged:
		reason, evidence = a.readFailure.reason, a.readFailure.evidence
	case !a.nodeSpeaks:
		short, evidenceOfShort, summed := a.sumPods(b, slot, at)
		if summed || short == metric.Unjudged && facts.Node(b.Node) == nil {
			return
		}
		if short != metric.Unjudged { // else no pod runs
			reason, evidence = short, evidenceOfShort
		}
	}
	for _, g := range wholeGroups {
		if !a.wanted(g) {
			continue
		}
		reason, _ := a.verdicts.explain(slot, g, reason, evidence)
		if at != none {
			b.Samples[at].Reasons[g] = reason
		}
	}
}

// sampleAt returns the index of the sample of a slot that is not rejected; none if there is none.
func sampleAt(b *metric.Batch, slot uint32) int32 {
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Slot == slot && !s.Rejected() {
			return int32(i)
		}
	}
	return none
}

// sumPods sets the sample of the node to the sum of its pods and returns true. If that is not
// possible it returns the reason; Unjudged if there is no pod to add.
func (a *Aggregator) sumPods(b *metric.Batch, slot uint32, at int32) (metric.Reason, metric.Evidence, bool) {
	var t total
	var short *pod
	a.start()
	for _, p := range a.currentPods {
		switch {
		case p.entity.Node != b.Node, p.reason == metric.Unjudged, p.reason.Layer() == metric.LayerLife:
			// A pod of another node, or one that uses nothing, or nothing that is known.
		case p.own != none && b.Samples[p.own].Servable(metric.CPU):
			a.add(&t, &b.Samples[p.own])
		case short == nil || p.entity.Compare(*short.entity) < 0:
			short = p
		}
	}
	switch {
	case short != nil && short.reason.Layer() <= metric.LayerScrape:
		return short.reason, metric.Evidence{Name: short.entity.String(), Due: a.next}, false
	case short != nil:
		return metric.Incomplete, metric.Evidence{Name: short.entity.String(), Cause: short.reason, Due: a.next}, false
	}
	if t.count > 0 {
		a.finish(&t, b, slot, at, false)
	}
	return metric.Unjudged, metric.Evidence{}, t.count > 0
}
