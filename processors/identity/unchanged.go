package identity

import (
	"math"

	"github.com/weir-metrics/weir/metric"
)

// judgeUnchanged is the fast path for sample i, the only one of its entity, if it has no
// problem: its line continues, its counter was read, and the API server does not contradict it.
// The result is that of judgeEntity. It returns false and changes nothing if the sample needs
// judgeEntity.
func (identifier *Identifier) judgeUnchanged(i int) bool {
	sample := &identifier.batch.Samples[i]
	e, in := &identifier.tracks[trackOf(identifier.batch, i)], &sample.Instance
	if !identifier.isPlain(i, e) {
		return false
	}
	identifier.setSubject(i, nil)
	if identifier.covered {
		if identifier.pod == nil || e.container != "" && identifier.isPresent(in) && identifier.isReplaced(&e.core, in.Start) {
			return false
		}
		if reason, _ := identifier.contradiction(sample, &e.core, 0); reason != metric.Measured {
			return false
		}
		identifier.learnPod(&identifier.seen)
	}
	in.Line = e.id
	e.follow(sample, identifier.drift)
	if in.UID == "" {
		in.UID = e.uid
	}
	if in.Start == 0 {
		in.Start, in.Origin = e.start, e.origin
	}
	identifier.learnNames(&e.core, in)
	if identifier.chained {
		identifier.winner[trackOf(identifier.batch, i)] = int32(i)
	}
	return true
}

// isPlain reports whether sample i continues the only line of its entity, was read, and no second
// read shows anything new of it.
func (identifier *Identifier) isPlain(i int, e *entry) bool {
	sample := &identifier.batch.Samples[i]
	if e.full != nil || e.id == 0 || sample.Instance.Path != "" || identifier.batch.CrossCheck != nil || identifier.hasOldPods && sample.Entity.Kind == metric.Container {
		return false
	}
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	if !reported || cpu <= 0 || sample.Reasons[metric.CPU] == metric.NoData || reportTime(sample) < e.time {
		return false
	}
	return !math.IsInf(identifier.coreCost(&e.core, sample, false, identifier.drift), 1)
}
