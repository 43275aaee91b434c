package identity

import (
	"github.com/weir-metrics/weir/metric"
)

// applyPod turns away containers of another pod than the one believed.
func (s *State) applyPod(b *metric.Batch, t *track) {
	e := &b.Samples[t.first].Entity
	if e.Kind != metric.Container || s.rivals() < 2 {
		return
	}
	p := s.tracks[e.OfPod()]
	if p == nil || p.round != s.round || p.winner < 0 {
		return
	}
	uid := b.Samples[p.winner].Instance.UID
	if uid == "" || p.guessed {
		return
	}
	of := -1
	for i, c := range s.candidates {
		if !c.out && t.lines[c.line].instance.UID == uid {
			of = i
		}
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if o := t.lines[c.line].instance.UID; of >= 0 && !c.out && o != "" && o != uid {
			s.lose(t, c, s.candidates[of], b, metric.OldPod, ruleUID)
		}
	}
}

// judgePart lets a device, interface or volume share the fate of the instance
// it belongs to.
func (s *State) judgePart(i int, facts *metric.Facts, b *metric.Batch) {
	part, t := &b.Samples[i], s.tracked[i]
	if t.winner < 0 && t.first < 0 {
		// Reported alone: only the facts can speak.
		if reason, evidence := s.contradicts(facts, b, part, &part.Instance, t); reason != metric.Measured {
			part.Condemn(reason)
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: part.Entity, Instance: part.Instance, Group: metric.Network, Reason: reason, Evidence: evidence})
		}
		return
	}
	if t.winner >= 0 && belongs(part, &b.Samples[t.winner]) {
		return
	}
	for j := t.first; j >= 0; j = s.next[j] {
		whole := &b.Samples[j]
		if whole.Rejected() && belongs(part, whole) {
			part.Condemn(whole.Reasons[metric.CPU])
			return
		}
	}
	if t.winner >= 0 {
		part.Condemn(metric.Discontinuous)
	}
}

// belongs reports whether nothing says that part is of another instance than
// whole. A pod's network is counted in its sandbox, whose ID and path are not
// the pod's, so for pods only the UID is compared.
func belongs(part, whole *metric.Sample) bool {
	p, w := &part.Instance, &whole.Instance
	if p.UID != "" && w.UID != "" && p.UID != w.UID {
		return false
	}
	if part.Entity.Kind == metric.Pod {
		return p.UID != "" || w.UID == ""
	}
	if p.ID != "" && w.ID != "" && p.ID != w.ID {
		return false
	}
	return p.Path == w.Path || p.Path == "" || w.Path == ""
}
