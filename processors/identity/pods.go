package identity

import (
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// applyPod turns away containers of another pod than the one believed.
func (s *Identifier) applyPod(b *metric.Batch, t *track) {
	e := &b.Samples[t.first].Entity
	if e.Kind != metric.Container || s.remaining() < 2 {
		return
	}
	k := s.podTrack(b, t.first)
	if k < 0 || s.winner[k] < 0 {
		return
	}
	uid := b.Samples[s.winner[k]].Instance.UID
	if p := s.tracks[k].full; uid == "" || p != nil && p.guessed {
		return
	}
	of := -1
	for i, c := range s.candidates {
		if !c.rejected && t.lines[c.line].uid == uid {
			of = i
		}
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if o := t.lines[c.line].uid; of >= 0 && !c.rejected && o != "" && o != uid {
			s.rejectFor(t, c, s.candidates[of], b, metric.OldPod, ruleUID)
		}
	}
}

// judgePart lets a device, interface or volume share the fate of the instance
// it belongs to.
func (s *Identifier) judgePart(i int, facts *cluster.Facts, b *metric.Batch) {
	part, k := &b.Samples[i], trackOf(b, i)
	if s.winner[k] < 0 && s.first[k] < 0 {
		// Reported alone: only the facts can speak.
		t := s.open(k, s.lastAnswer, s.answers-1)
		in := &part.Instance
		known := core{uid: in.UID, container: in.ID, start: in.Start, origin: in.Origin}
		if reason, evidence := s.contradicts(facts, b, i, &known, t); reason != metric.Measured {
			part.Reject(reason)
			b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: part.Entity, Instance: part.Instance, Group: metric.Network, Reason: reason, Evidence: evidence})
		}
		s.shut(k, s.answers)
		return
	}
	if s.winner[k] >= 0 && belongs(part, &b.Samples[s.winner[k]]) {
		return
	}
	for j := s.first[k]; j >= 0; j = s.next[j] {
		whole := &b.Samples[j]
		if whole.Rejected() && belongs(part, whole) {
			part.Reject(whole.Reasons[metric.CPU])
			return
		}
	}
	if s.winner[k] >= 0 {
		part.Reject(metric.Discontinuous)
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

// oldPodOf returns the old pod of the pod that sample i is of, if it has one.
func (s *Identifier) oldPodOf(b *metric.Batch, i int32) metric.PodUID {
	k := s.podTrack(b, i)
	if k < 0 || s.tracks[k].full == nil {
		return ""
	}
	return s.tracks[k].full.oldPod
}
