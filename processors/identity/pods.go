package identity

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// chosenPod returns the UID that was chosen for the pod of the subject, a container; empty if there
// is none, or if it was chosen without evidence.
func (s *Identifier) chosenPod() metric.PodUID {
	if s.batch.Samples[s.t.first].Entity.Kind != metric.Container {
		return ""
	}
	k := s.podTrack(s.batch, s.t.first)
	if k < 0 || s.winner[k] < 0 || s.tracks[k].full != nil && s.tracks[k].full.guessed {
		return ""
	}
	return s.batch.Samples[s.winner[k]].Instance.UID
}

// rejectOldPods rejects containers of a UID that lost by its start in another container of the
// pod. But a static pod may have its earlier manifest again.
func (s *Identifier) rejectOldPods() {
	k := s.podTrack(s.batch, s.t.first)
	if !s.hasOldPods || k < 0 || s.tracks[k].full == nil || s.batch.Samples[s.t.first].Entity.Kind != metric.Container {
		return
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		uid := s.line(c).uid
		if !c.rejected && slices.Contains(s.tracks[k].full.oldPods, uid) && (s.pod == nil || !s.pod.HasUID(uid)) {
			s.reject(c, metric.OldPod, metric.Evidence{Rule: ruleUID})
		}
	}
}

// rememberOldPod records that the pod of sample i with the UID old is older than the one with the UID
// winner.
func (s *Identifier) rememberOldPod(i int32, old, winner metric.PodUID) {
	k := s.podTrack(s.batch, i)
	if k < 0 {
		return
	}
	pod := s.openJudged(k)
	pod.oldPods = slices.DeleteFunc(pod.oldPods, func(uid metric.PodUID) bool { return uid == winner || uid == old })
	pod.oldPods = append(pod.oldPods, old)
	s.hasOldPods = true
}

// lineOfPod returns the line that was chosen last for the pod of container sample i; nil if there is
// none.
func (s *Identifier) lineOfPod(i int32) *core {
	k := s.podTrack(s.batch, i)
	switch {
	case k < 0 || s.batch.Samples[i].Entity.Kind != metric.Container:
		return nil
	case s.tracks[k].full == nil:
		return &s.tracks[k].core
	}
	if l := s.tracks[k].full.chosenLine(); l != nil {
		return &l.core
	}
	return nil
}

// newerThanLast returns the number of the line to which a line of the subject, a container, lost by
// its start, while the pod's own counters show that both pods are there still: the older one's
// container does not become the living one when the newer one's was missing for long. 0 if there is
// none.
func (s *Identifier) newerThanLast() uint32 {
	k := s.podTrack(s.batch, s.t.first)
	if k < 0 || s.batch.Samples[s.t.first].Entity.Kind != metric.Container || s.tracks[k].full == nil {
		return 0
	}
	pod := s.tracks[k].full
	chosen := pod.chosenLine()
	bothThere := chosen != nil && chosen.answer == s.answers && slices.ContainsFunc(pod.lines, func(l line) bool {
		return l.answer == s.answers && l.lost == metric.OlderStart && l.lostTo == chosen.id
	})
	if i := slices.IndexFunc(s.t.lines, func(l line) bool { return l.lost == metric.OlderStart }); bothThere && i >= 0 {
		return s.t.lines[i].lostTo
	}
	return 0
}

// isBeforePod reports whether a container's line was last reported before its pod was made again.
// The pod's own counter shows that: none of the pod's lines went on.
func (l *line) isBeforePod(pod *core) bool {
	return pod != nil && pod.renewed && l.answer < pod.first
}

// judgePart rejects a device, interface or volume if the instance it belongs to is rejected.
func (s *Identifier) judgePart(i int) {
	part, k := &s.batch.Samples[i], trackOf(s.batch, i)
	switch {
	case s.winner[k] < 0 && s.first[k] < 0:
		s.judgeLonePart(i, k)
		return
	case s.winner[k] >= 0 && belongs(part, &s.batch.Samples[s.winner[k]]):
		return
	}
	for j := s.first[k]; j >= 0; j = s.next[j] {
		whole := &s.batch.Samples[j]
		if whole.Rejected() && belongs(part, whole) {
			part.Reject(whole.Reasons[metric.CPU])
			return
		}
	}
	if s.winner[k] >= 0 {
		part.Reject(metric.Discontinuous)
	}
}

// judgeLonePart judges a part whose entity has no sample of its own. Only the facts can contradict it.
func (s *Identifier) judgeLonePart(i, k int) {
	s.judge(i, s.open(k, s.lastAnswer, s.answers-1))
	part := &s.batch.Samples[i]
	in := &part.Instance
	l := line{core: core{uid: in.UID, container: in.ID, start: in.Start, origin: in.Origin}}
	if reason, evidence := s.contradicts(i, &l); reason != metric.Measured {
		part.Reject(reason)
		s.addVerdict(part, metric.Network, reason, evidence)
	}
	s.shut(k, s.answers)
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
