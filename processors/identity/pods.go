package identity

import (
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// applyPod rejects containers of another pod UID than the chosen one, if a container of the
// chosen UID is there.
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

// podLine returns the line that was chosen last for the pod of container sample i; nil if there is
// none.
func (s *Identifier) podLine(b *metric.Batch, i int32) *core {
	k := s.podTrack(b, i)
	switch {
	case k < 0 || b.Samples[i].Entity.Kind != metric.Container:
		return nil
	case s.tracks[k].full == nil:
		return &s.tracks[k].core
	}
	if l := s.tracks[k].full.chosenLine(); l != nil {
		return &l.core
	}
	return nil
}

// newerThanLast returns the number of the line to which a line of the container t lost by its start,
// while the pod's own counters show that both pods are there still: the older one's container does
// not become the living one when the newer one's was missing for long. 0 if there is none.
func (s *Identifier) newerThanLast(t *track, b *metric.Batch) uint32 {
	k := s.podTrack(b, t.first)
	if k < 0 || b.Samples[t.first].Entity.Kind != metric.Container || s.tracks[k].full == nil {
		return 0
	}
	pod := s.tracks[k].full
	chosen := pod.chosenLine()
	bothThere := chosen != nil && chosen.answer == s.answers && slices.ContainsFunc(pod.lines, func(l line) bool {
		return l.answer == s.answers && l.lost == metric.OlderStart && l.lostTo == chosen.id
	})
	if i := slices.IndexFunc(t.lines, func(l line) bool { return l.lost == metric.OlderStart }); bothThere && i >= 0 {
		return t.lines[i].lostTo
	}
	return 0
}

// precedes reports whether a container's line was last reported before its pod was made again.
// The pod's own counter shows that: none of the pod's lines went on.
func (l *line) precedes(pod *core) bool {
	return pod != nil && pod.renewed && l.answer < pod.first
}

// judgePart rejects a device, interface or volume if the instance it belongs to is rejected.
func (s *Identifier) judgePart(i int, facts *cluster.Facts, b *metric.Batch) {
	part, k := &b.Samples[i], trackOf(b, i)
	if s.winner[k] < 0 && s.first[k] < 0 {
		// The entity has no sample of its own. Only the facts can contradict the part.
		t := s.open(k, s.lastAnswer, s.answers-1)
		in := &part.Instance
		l := line{core: core{uid: in.UID, container: in.ID, start: in.Start, origin: in.Origin}}
		if reason, evidence := s.contradicts(facts, b, i, &l, t); reason != metric.Measured {
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

// belongs reports whether part may be of the same instance as whole. A pod's network is counted
// in its sandbox, which has another ID and path than the pod, so for pods only the UID is
// compared.
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

// forgetOldPods forgets the UIDs of old pods that no line has any more.
func (s *Identifier) forgetOldPods(b *metric.Batch) {
	if !s.hasOldPods {
		return
	}
	s.hasOldPods = false
	for k := range s.tracks {
		t := s.tracks[k].full
		if t == nil || t.oldPods == nil {
			continue
		}
		t.oldPods = slices.DeleteFunc(t.oldPods, func(uid metric.PodUID) bool {
			return !s.anyLine(b, uint32(k), func(l *core) bool { return l.uid == uid })
		})
		if s.hasOldPods = s.hasOldPods || len(t.oldPods) > 0; len(t.oldPods) == 0 {
			t.oldPods = nil
		}
	}
}

// oldPodsOf returns the old UIDs of the pod that sample i belongs to, as far as they are known.
func (s *Identifier) oldPodsOf(b *metric.Batch, i int32) []metric.PodUID {
	k := s.podTrack(b, i)
	if k < 0 || s.tracks[k].full == nil {
		return nil
	}
	return s.tracks[k].full.oldPods
}
