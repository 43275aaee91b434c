package identity

import (
	"math"

	"github.com/weir-metrics/weir/metric"
)

// judgeUnchanged is the fast path for sample i, the only one of its entity, if it has no
// problem: its line continues, its counter was read, and the API server does not contradict it.
// The result is that of judgeEntity. It returns false and changes nothing if the sample needs
// judgeEntity.
func (s *Identifier) judgeUnchanged(i int) bool {
	sample := &s.batch.Samples[i]
	e, in := &s.tracks[trackOf(s.batch, i)], &sample.Instance
	if !s.isPlain(i, e) {
		return false
	}
	s.judge(i, nil)
	if s.covered {
		if s.pod == nil || e.container != "" && s.isPresent(in) && s.isReplaced(&e.core, in.Start) {
			return false
		}
		if reason, _ := s.contradiction(sample, &e.core, 0); reason != metric.Measured {
			return false
		}
		s.learnPod(&s.seen)
	}
	in.Line = e.id
	e.follow(sample, s.drift)
	if in.UID == "" {
		in.UID = e.uid
	}
	if in.Start == 0 {
		in.Start, in.Origin = e.start, e.origin
	}
	s.learnNames(&e.core, in)
	if s.chained {
		s.winner[trackOf(s.batch, i)] = int32(i)
	}
	return true
}

// isPlain reports whether sample i continues the only line of its entity, was read, and neither its pod
// nor a second read shows anything new of it.
func (s *Identifier) isPlain(i int, e *entry) bool {
	sample := &s.batch.Samples[i]
	if e.full != nil || e.id == 0 || sample.Instance.Path != "" || s.batch.CrossCheck != nil || s.hasOldPods && sample.Entity.Kind == metric.Container {
		return false
	}
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	if !reported || cpu <= 0 || sample.Reasons[metric.CPU] == metric.NoData || reportTime(sample) < e.time {
		return false
	}
	if pod := s.lineOfPod(int32(i)); pod != nil && pod.renewed && pod.first == s.answers {
		return false
	}
	return !math.IsInf(s.coreCost(&e.core, sample, false, s.drift), 1)
}
