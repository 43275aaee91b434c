package identity

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// chosenPod returns the UID that was chosen for the pod of the subject, a container; empty if there
// is none, or if it was chosen without evidence.
func (identifier *Identifier) chosenPod() metric.PodUID {
	if identifier.batch.Samples[identifier.t.firstSample].Entity.Kind != metric.Container {
		return ""
	}
	k := identifier.podTrack(identifier.batch, identifier.t.firstSample)
	if k < 0 || identifier.winner[k] < 0 || identifier.tracks[k].full != nil && identifier.tracks[k].full.guessed {
		return ""
	}
	return identifier.batch.Samples[identifier.winner[k]].Instance.UID
}

// rejectOldPods rejects containers of a UID that lost by its start in another container of the
// pod. But a static pod may have its earlier manifest again.
func (identifier *Identifier) rejectOldPods() {
	k := identifier.podTrack(identifier.batch, identifier.t.firstSample)
	if !identifier.hasOldPods || k < 0 || identifier.tracks[k].full == nil || identifier.batch.Samples[identifier.t.firstSample].Entity.Kind != metric.Container {
		return
	}
	for i := range identifier.candidates {
		c := &identifier.candidates[i]
		uid := identifier.line(c).uid
		if !c.rejected && slices.Contains(identifier.tracks[k].full.oldPods, uid) && (identifier.pod == nil || !identifier.pod.HasUID(uid)) {
			identifier.reject(c, metric.OldPod, metric.Evidence{Rule: ruleUID})
		}
	}
}

// rememberOldPod records that the pod of sample i with the UID old is older than the one with the UID
// winner.
func (identifier *Identifier) rememberOldPod(i int32, old, winner metric.PodUID) {
	k := identifier.podTrack(identifier.batch, i)
	if k < 0 {
		return
	}
	pod := identifier.openJudged(k)
	pod.oldPods = slices.DeleteFunc(pod.oldPods, func(uid metric.PodUID) bool { return uid == winner || uid == old })
	pod.oldPods = append(pod.oldPods, old)
	identifier.hasOldPods = true
}

// newerThanLast returns the number of the line to which a line of the subject, a container, lost by
// its start, while the pod's own counters show that both pods are there still: the older one's
// container does not become the living one when the newer one's was missing for long. 0 if there is
// none.
func (identifier *Identifier) newerThanLast() uint32 {
	k := identifier.podTrack(identifier.batch, identifier.t.firstSample)
	if k < 0 || identifier.batch.Samples[identifier.t.firstSample].Entity.Kind != metric.Container || identifier.tracks[k].full == nil {
		return 0
	}
	pod := identifier.tracks[k].full
	chosen := pod.chosenLine()
	bothThere := chosen != nil && chosen.answer == identifier.answers && slices.ContainsFunc(pod.lines, func(l line) bool {
		return l.answer == identifier.answers && l.lost == metric.OlderStart && l.lostTo == chosen.id
	})
	if i := slices.IndexFunc(identifier.t.lines, func(l line) bool { return l.lost == metric.OlderStart }); bothThere && i >= 0 {
		return identifier.t.lines[i].lostTo
	}
	return 0
}

// judgePart rejects a device, interface or volume if the instance it belongs to is rejected.
func (identifier *Identifier) judgePart(i int) {
	part, k := &identifier.batch.Samples[i], trackOf(identifier.batch, i)
	switch {
	case identifier.winner[k] < 0 && identifier.firstSample[k] < 0:
		identifier.judgeLonePart(i, k)
		return
	case identifier.winner[k] >= 0 && belongs(part, &identifier.batch.Samples[identifier.winner[k]]):
		return
	}
	for j := identifier.firstSample[k]; j >= 0; j = identifier.next[j] {
		whole := &identifier.batch.Samples[j]
		if whole.Rejected() && belongs(part, whole) {
			part.Reject(whole.Reasons[metric.CPU])
			return
		}
	}
	if identifier.winner[k] >= 0 {
		part.Reject(metric.Discontinuous)
	}
}

// judgeLonePart judges a part whose entity has no sample of its own. Only the facts can contradict it.
func (identifier *Identifier) judgeLonePart(i, k int) {
	identifier.setSubject(i, identifier.open(k, identifier.lastAnswer, identifier.answers-1))
	part := &identifier.batch.Samples[i]
	in := &part.Instance
	l := line{core: core{uid: in.UID, container: in.ID, start: in.Start, origin: in.Origin}}
	if reason, evidence := identifier.contradicts(i, &l); reason != metric.Measured {
		part.Reject(reason)
		identifier.addVerdict(part, metric.Network, reason, evidence)
	}
	identifier.shut(k, identifier.answers)
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
func (identifier *Identifier) forgetOldPods(b *metric.Batch) {
	if !identifier.hasOldPods {
		return
	}
	identifier.hasOldPods = false
	for k := range identifier.tracks {
		t := identifier.tracks[k].full
		if t == nil || t.oldPods == nil {
			continue
		}
		t.oldPods = slices.DeleteFunc(t.oldPods, func(uid metric.PodUID) bool {
			return !identifier.anyLine(b, uint32(k), func(l *core) bool { return l.uid == uid })
		})
		if identifier.hasOldPods = identifier.hasOldPods || len(t.oldPods) > 0; len(t.oldPods) == 0 {
			t.oldPods = nil
		}
	}
}
