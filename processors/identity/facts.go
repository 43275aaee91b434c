package identity

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// applyFacts rejects what the API server contradicts, even a lone sample.
func (s *State) applyFacts(t *track, facts *metric.Facts, b *metric.Batch) {
	for i := range s.candidates {
		c := &s.candidates[i]
		sample, l := &b.Samples[c.sample], &t.lines[c.line]
		known := l.instance
		if sample.Instance.Start != 0 {
			known.Start = sample.Instance.Start
		}
		if reason, evidence := s.contradicts(facts, b, sample, &known, t); reason != metric.Measured {
			s.condemn(t, c, b, reason, evidence)
		}
	}
}

// contradicts returns the reason why the facts rule out that an instance of
// sample's pod or container is the present one, or Measured if they do not.
func (s *State) contradicts(facts *metric.Facts, b *metric.Batch, sample *metric.Sample, known *metric.Instance, t *track) (metric.Reason, metric.Evidence) {
	e := &sample.Entity
	if facts == nil || !facts.Synced || e.Kind != metric.Pod && e.Kind != metric.Container || e.Namespace == "" {
		return metric.Measured, metric.Evidence{}
	}
	pod := facts.Pod(e.PodRef())
	if pod == nil {
		return s.unknownPod(facts, b, known, t)
	}
	t.known, t.unknown = true, -1
	// A fact cannot speak of what began after it was learnt, unless time has
	// passed in which the API server would have told us.
	outlived := known.Start > pod.KnownAt.UnixNano() && facts.At.UnixNano()-known.Start < int64(b.Interval)

	if pod.Node != "" && b.Node != "" && pod.Node != b.Node && !outlived {
		return metric.OtherNode, metric.Evidence{Rule: rulePlace, Name: string(pod.Node), Other: metric.Sight{UID: pod.UID}}
	}
	if known.UID != "" && !pod.Is(known.UID) && !outlived {
		return metric.OldPod, metric.Evidence{Rule: ruleUID, Other: metric.Sight{UID: pod.UID, Start: nanos(pod.Started)}}
	}
	if !pod.Mirror && pod.ConfigHash == "" && !pod.Started.IsZero() && !outlived {
		limit := pod.Started.Add(-startSlack).UnixNano()
		if at := reportTime(sample); at != 0 && max(at, at-int64(s.wrong())) < limit-int64(b.Clock) {
			return metric.OldPod, metric.Evidence{Rule: ruleAge, Other: metric.Sight{UID: pod.UID, Start: nanos(pod.Started)}}
		}
		if known.Start != 0 && known.Origin != metric.StartCgroup && known.Start < limit-int64(wander)-int64(b.Clock) {
			return metric.OldPod, metric.Evidence{Rule: ruleAge, Other: metric.Sight{UID: pod.UID, Start: nanos(pod.Started)}}
		}
	}
	if e.Kind != metric.Container {
		return metric.Measured, metric.Evidence{}
	}
	c := pod.Container(e.Name)
	if c == nil {
		return metric.Measured, metric.Evidence{}
	}
	old := metric.Evidence{Rule: ruleContainerID, Other: metric.Sight{ID: c.ID, UID: pod.UID, Start: nanos(c.StartedAt)}}
	switch c.State {
	case metric.Live:
		if known.ID == "" {
			break
		}
		started := c.StartedAt.Add(startSlack).UnixNano()
		if c.ID != "" && known.ID != c.ID && (known.ID == c.LastID || known.Start != 0 && known.Start <= started) {
			return metric.OldContainer, old
		}
	case metric.Waiting, metric.Terminated:
		if known.ID != "" && (known.ID == c.ID || known.ID == c.LastID) || s.wouldKnow(facts, known, b) {
			return metric.OldContainer, old
		}
	}
	return metric.Measured, metric.Evidence{}
}

// unknownPod bears with a pod the API server has never known for one resolution,
// since we may hear of it later than its node did. One that it knew has been
// deleted, though its node may go on reporting it.
func (s *State) unknownPod(facts *metric.Facts, b *metric.Batch, known *metric.Instance, t *track) (metric.Reason, metric.Evidence) {
	if t.unknown < 0 {
		t.unknown = s.clock
	}
	if !t.known && (s.clock-t.unknown < b.Interval || known.Start > facts.At.UnixNano()) {
		return metric.Measured, metric.Evidence{}
	}
	return metric.OldPod, metric.Evidence{Rule: ruleUID}
}

// wouldKnow reports whether an instance began so long before the facts were learnt
// that they would tell of it, were it the present one.
func (s *State) wouldKnow(facts *metric.Facts, known *metric.Instance, b *metric.Batch) bool {
	began := known.Start - int64(s.wrong())
	return known.Start != 0 && known.Origin != metric.StartCgroup && facts.At.UnixNano()-began > int64(max(b.Interval, 30*time.Second))
}

// wrong returns by how much the node's clock is surely wrong, if it is by more
// than two clocks of a cluster should differ: what the API server says is by
// other clocks.
func (s *State) wrong() time.Duration {
	switch {
	case s.node.Low > startSlack:
		return s.node.Low
	case s.node.High < -startSlack:
		return s.node.High
	}
	return 0
}

// present reports whether a sample's start is that of the run which the API
// server says is the container's present one.
func present(facts *metric.Facts, sample *metric.Sample, clock time.Duration) bool {
	e, start := &sample.Entity, sample.Instance.Start
	if e.Kind != metric.Container || start == 0 {
		return false
	}
	c := facts.Pod(e.PodRef()).Container(e.Name)
	if c == nil || c.State != metric.Live {
		return false
	}
	apart := c.StartedAt.Sub(time.Unix(0, start)).Abs()
	return apart <= startSlack+clock
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
