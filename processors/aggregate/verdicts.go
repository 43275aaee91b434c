package aggregate

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// verdicts keeps one verdict for each entity, for CPU and for memory. Earlier steps have added
// some already; the outermost reason wins. Verdicts on rejected samples are about other
// instances, and stay as they are.
type verdicts struct {
	batch *metric.Batch
	// places has, by slot, the index in the batch of the verdict on CPU and of that on memory,
	// plus 1; 0 if there is none. It is nil while there are no verdicts, which is so for most
	// nodes.
	places    [][2]int32
	used      bool // a verdict has a place
	withdrawn bool // a verdict was withdrawn
}

// begin indexes the verdicts that b has already.
func (v *verdicts) begin(b *metric.Batch) {
	v.batch, v.withdrawn = b, false
	if !v.used {
		v.places = nil
	}
	clear(v.places)
	v.used = false
	for i := range b.Verdicts {
		o := &b.Verdicts[i]
		if o.Group != metric.CPU && o.Group != metric.Memory || o.Entity.Part != "" || o.Reason.Layer() == metric.LayerIdentity ||
			o.Evidence.Rule == metric.RuleNames { // it is on the node, and about what was dropped
			continue
		}
		slot := b.Slots.SlotOf(&o.Entity)
		if before, ok := v.find(slot, o.Group); ok {
			// Two steps gave a reason. The outer one is kept.
			if o.Reason.Precedes(b.Verdicts[before].Reason) {
				v.setPlace(slot, i)
			} else {
				before = i
			}
			b.Verdicts[before].Reason, v.withdrawn = metric.Measured, true
			continue
		}
		v.setPlace(slot, i)
	}
}

// find returns the index in the batch of the verdict on a group of a slot's entity.
func (v *verdicts) find(slot uint32, g metric.Group) (int, bool) {
	if int(slot) >= len(v.places) {
		return 0, false
	}
	at := v.places[slot][ofGroup(g)]
	return int(at) - 1, at != 0
}

// setPlace records the verdict at index i as that of its group and the slot's entity.
func (v *verdicts) setPlace(slot uint32, i int) {
	if n := v.batch.Slots.Len(); n > len(v.places) {
		v.places = append(v.places, make([][2]int32, n-len(v.places))...)
	}
	v.places[slot][ofGroup(v.batch.Verdicts[i].Group)] = int32(i + 1)
	v.used = true
}

// ofGroup returns the index in verdicts.places of CPU or memory.
func ofGroup(g metric.Group) int {
	if g == metric.CPU {
		return 0
	}
	return 1
}

// explain adds a verdict, unless there is one with a reason at least as far out. It returns the
// reason and evidence of the verdict that is kept.
func (v *verdicts) explain(slot uint32, g metric.Group, reason metric.Reason, evidence metric.Evidence) (metric.Reason, metric.Evidence) {
	if i, ok := v.find(slot, g); ok && !reason.Precedes(v.batch.Verdicts[i].Reason) {
		return v.batch.Verdicts[i].Reason, v.batch.Verdicts[i].Evidence
	}
	v.replace(slot, g, reason, evidence)
	return reason, evidence
}

// reasonFor returns the verdict of an earlier step on a group of a sample. If that step gave a
// reason without a verdict, reasonFor adds one with the given evidence.
func (v *verdicts) reasonFor(s *metric.Sample, g metric.Group, reason metric.Reason, otherwise metric.Evidence) (metric.Reason, metric.Evidence) {
	if i, ok := v.find(s.Slot, g); ok {
		return v.batch.Verdicts[i].Reason, v.batch.Verdicts[i].Evidence
	}
	v.replace(s.Slot, g, reason, otherwise)
	return reason, otherwise
}

// evidence returns the evidence of the verdict with this reason on a sample of e.
func (v *verdicts) evidence(e *metric.Entity, reason metric.Reason) metric.Evidence {
	for i := range v.batch.Verdicts {
		if o := &v.batch.Verdicts[i]; o.Reason == reason && o.Entity == *e {
			return o.Evidence
		}
	}
	return metric.Evidence{}
}

// removeObsolete removes the verdicts on numbers that are served. An Ambiguous number gets a
// verdict instead, which names the instance that it was preferred to.
func (v *verdicts) removeObsolete() {
	b := v.batch
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Rejected() || s.Entity.Part != "" {
			continue
		}
		for _, g := range wholeGroups {
			switch {
			case !s.Servable(g):
			case s.Reasons[g] == metric.Measured:
				v.withdraw(s.Slot, g)
			case !v.has(s.Slot, g, metric.Ambiguous):
				chosen := v.evidence(&s.Entity, metric.Ambiguous)
				chosen.Got, chosen.Other = chosen.Other, chosen.Got
				v.replace(s.Slot, g, metric.Ambiguous, chosen)
				at, _ := v.find(s.Slot, g)
				v.batch.Verdicts[at].Instance = s.Instance
			}
		}
	}
}

// has reports whether the verdict on a group of the slot's entity has this reason.
func (v *verdicts) has(slot uint32, g metric.Group, reason metric.Reason) bool {
	i, ok := v.find(slot, g)
	return ok && v.batch.Verdicts[i].Reason == reason
}

// replace sets the verdict on a group of the slot's entity, whatever it was before.
func (v *verdicts) replace(slot uint32, g metric.Group, reason metric.Reason, evidence metric.Evidence) {
	verdict := metric.Verdict{Entity: *v.batch.Slots.Entity(slot), Group: g, Reason: reason, Evidence: evidence}
	if i, ok := v.find(slot, g); ok {
		v.batch.Verdicts[i] = verdict
		return
	}
	v.batch.Verdicts = append(v.batch.Verdicts, verdict)
	v.setPlace(slot, len(v.batch.Verdicts)-1)
}

// withdraw marks a verdict for removal, because the number is served now.
func (v *verdicts) withdraw(slot uint32, g metric.Group) {
	if i, ok := v.find(slot, g); ok {
		v.batch.Verdicts[i].Reason = metric.Measured
		v.withdrawn = true
	}
}

// end removes the withdrawn verdicts.
func (v *verdicts) end() {
	if v.withdrawn {
		v.batch.Verdicts = slices.DeleteFunc(v.batch.Verdicts, func(o metric.Verdict) bool { return o.Reason == metric.Measured })
	}
	v.batch = nil
}
