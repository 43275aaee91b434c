package identity

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// judgeUnchanged is the fast path for sample i, the only one of its entity, if it has no
// problem: its line continues, its counter was read, and the API server does not contradict it.
// The result is that of judgeEntity. It returns false and changes nothing if the sample needs
// judgeEntity.
func (s *Identifier) judgeUnchanged(i int, facts *cluster.Facts, b *metric.Batch) bool {
	sample := &b.Samples[i]
	e, in := &s.tracks[trackOf(b, i)], &sample.Instance
	if e.full != nil || e.id == 0 || in.Path != "" || s.hasOldPods && sample.Entity.Kind == metric.Container {
		return false
	}
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	if !reported || cpu <= 0 || sample.Reasons[metric.CPU] == metric.NoData || reportTime(sample) < e.time {
		return false
	}
	if pod := s.podLine(b, int32(i)); pod != nil && pod.renewed && pod.first == s.answers {
		return false
	}
	if _, ok := s.goesOn(&e.core, sample, false, s.drift); !ok {
		return false
	}
	if factsCover(facts, &sample.Entity) {
		pod := facts.PodOf(b, i)
		if pod == nil {
			return false
		}
		if e.container != "" && replaces(presentRun(facts, b, i), in.Start, &e.core) {
			return false
		}
		if reason, _ := s.contradiction(facts, b, sample, pod, &e.core); reason != metric.Measured {
			return false
		}
		s.learnPod(&e.core, facts, pod, sample, b)
	}
	in.Line = e.id
	e.follow(sample, s.drift)
	if in.UID == "" {
		in.UID = e.uid
	}
	if in.Start == 0 {
		in.Start, in.Origin = e.start, e.origin
	}
	e.learnNames(facts, b, i)
	if s.chained {
		s.winner[trackOf(b, i)] = int32(i)
	}
	return true
}
