package identity

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// applyFacts rejects candidates that the API server contradicts, even a lone one.
func (s *Identifier) applyFacts(t *track, facts *cluster.Facts, b *metric.Batch) {
	for i := range s.candidates {
		c := &s.candidates[i]
		if reason, evidence := s.contradicts(facts, b, int(c.sample), &t.lines[c.line].core, t); reason != metric.Measured {
			s.reject(t, c, b, reason, evidence)
		}
	}
}

// contradicts returns the reason why sample i is not the present instance of its pod or
// container according to the facts. It returns Measured if the facts do not rule it out.
func (s *Identifier) contradicts(facts *cluster.Facts, b *metric.Batch, i int, known *core, t *track) (metric.Reason, metric.Evidence) {
	sample := &b.Samples[i]
	if !factsCover(facts, &sample.Entity) {
		return metric.Measured, metric.Evidence{}
	}
	pod := facts.PodOf(b, i)
	if pod == nil {
		return s.unknownPod(facts, b, startOf(sample, known), t)
	}
	t.known, t.unknown = true, -1
	reason, rule := s.contradiction(facts, b, sample, pod, known)
	switch reason {
	case metric.OtherNode:
		return reason, metric.Evidence{Rule: rule, Name: string(pod.Node), Other: metric.CounterReading{UID: pod.UID}}
	case metric.OldPod:
		return reason, metric.Evidence{Rule: rule, Other: metric.CounterReading{UID: pod.UID, Start: nanos(pod.Started)}}
	case metric.OldContainer:
		c := pod.Container(sample.Entity.Name)
		return reason, metric.Evidence{Rule: rule, Other: metric.CounterReading{ID: c.ID, UID: pod.UID, Start: nanos(c.StartedAt)}}
	}
	return reason, metric.Evidence{}
}

// factsCover reports whether the facts are synced and e is a pod or container, so that they can
// contradict it.
func factsCover(facts *cluster.Facts, e *metric.Entity) bool {
	return facts != nil && facts.Synced && (e.Kind == metric.Pod || e.Kind == metric.Container) && e.Namespace != ""
}

// contradiction returns the reason why the sample does not belong to pod or to the present run
// of its container, and the rule. It returns Measured if nothing contradicts the sample. known
// is what is known of the sample's instance.
func (s *Identifier) contradiction(facts *cluster.Facts, b *metric.Batch, sample *metric.Sample, pod *cluster.Pod, known *core) (metric.Reason, string) {
	e, start := &sample.Entity, startOf(sample, known)
	// Facts say nothing about an instance that began after they were learnt. That ends after
	// one interval, in which the API server would have reported it.
	outlived := start > pod.KnownAt.UnixNano() && facts.At.UnixNano()-start < int64(b.Interval)

	if pod.Node != "" && b.Node != "" && pod.Node != b.Node && !outlived {
		return metric.OtherNode, rulePlace
	}
	if known.uid != "" && !pod.HasUID(known.uid) && !outlived {
		return metric.OldPod, ruleUID
	}
	if !pod.Mirror && pod.ConfigHash == nil && !pod.Started.IsZero() && !outlived {
		limit := pod.Started.Add(-startSlack).UnixNano()
		if at := reportTime(sample); at != 0 && max(at, at-int64(s.clockError())) < limit-int64(b.Resolution) {
			return metric.OldPod, ruleAge
		}
		if start != 0 && known.origin != metric.StartCgroup && start < limit-int64(startJitter)-int64(b.Resolution) {
			return metric.OldPod, ruleAge
		}
	}
	if e.Kind != metric.Container {
		return metric.Measured, ""
	}
	c := pod.Container(e.Name)
	if c == nil {
		return metric.Measured, ""
	}
	switch c.State {
	case cluster.StateRunning:
		if known.container == "" {
			break
		}
		started := c.StartedAt.Add(startSlack).UnixNano()
		if c.ID != "" && known.container != c.ID && (known.container == c.LastID() || start != 0 && start <= started) {
			return metric.OldContainer, ruleContainerID
		}
	case cluster.StateWaiting, cluster.StateTerminated:
		if known.container != "" && (known.container == c.ID || known.container == c.LastID()) || s.wouldKnow(facts, start, known.origin, b) {
			return metric.OldContainer, ruleContainerID
		}
	}
	return metric.Measured, ""
}

// startOf returns when a sample's instance began: the reported start, else the one known of its
// line.
func startOf(sample *metric.Sample, known *core) int64 {
	if sample.Instance.Start != 0 {
		return sample.Instance.Start
	}
	return known.start
}

// unknownPod accepts a pod that the API server has never known for one interval: weir may learn
// of it later than its node. A pod that it once knew is deleted, even if the node still reports
// it.
func (s *Identifier) unknownPod(facts *cluster.Facts, b *metric.Batch, start int64, t *track) (metric.Reason, metric.Evidence) {
	if t.unknown < 0 {
		t.unknown = s.clock
	}
	if !t.known && (s.clock-t.unknown < b.Interval || start > facts.At.UnixNano()) {
		return metric.Measured, metric.Evidence{}
	}
	return metric.OldPod, metric.Evidence{Rule: ruleUID}
}

// wouldKnow reports whether an instance began so long before the facts were learnt that they
// would name it if it were the present one.
func (s *Identifier) wouldKnow(facts *cluster.Facts, start int64, origin metric.StartOrigin, b *metric.Batch) bool {
	began := start - int64(s.clockError())
	return start != 0 && origin != metric.StartCgroup && facts.At.UnixNano()-began > int64(max(b.Interval, 30*time.Second))
}

// clockError returns by how much the node's clock is ahead at least, negative if it is behind.
// It returns 0 for less than startSlack, which is normal between two clocks of a cluster. Times
// from the API server are by other clocks.
func (s *Identifier) clockError() time.Duration {
	switch {
	case s.node.MinAhead > startSlack:
		return s.node.MinAhead
	case s.node.MaxAhead < -startSlack:
		return s.node.MaxAhead
	}
	return 0
}

// presentRun returns the container as the API server reports it, if it is running and its start
// is that of sample i; else nil.
func presentRun(facts *cluster.Facts, b *metric.Batch, i int) *cluster.Container {
	e, start := &b.Samples[i].Entity, b.Samples[i].Instance.Start
	if e.Kind != metric.Container || start == 0 {
		return nil
	}
	c := facts.PodOf(b, i).Container(e.Name)
	if c == nil || c.State != cluster.StateRunning || c.StartedAt.Sub(time.Unix(0, start)).Abs() > startSlack+b.Resolution {
		return nil
	}
	return c
}

// learnNames gives the line of sample i the UID and the container ID that the API server
// reports, if its start is that of the present run. When the name later passes to another pod
// or run, the line still belongs to the old one.
func (l *core) learnNames(facts *cluster.Facts, b *metric.Batch, i int) {
	if l.uid != "" && l.container != "" {
		return
	}
	if c := presentRun(facts, b, i); c != nil {
		l.uid, l.container = facts.PodOf(b, i).ReportedUID(), c.ID
	}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
