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
		l := &t.lines[c.line]
		if reason, evidence := s.contradicts(facts, b, int(c.sample), l, t); reason != metric.Measured {
			s.reject(t, c, b, reason, evidence)
		}
		if sample := &b.Samples[c.sample]; l.appearedAfter != 0 && !(factsCover(facts, &sample.Entity) && s.appearedLately(facts, b, sample, l)) {
			l.appearedAfter = 0
		}
	}
}

// contradicts returns the reason why sample i is not the present instance of its pod or
// container according to the facts. It returns Measured if the facts do not rule it out. l is
// the sample's line.
func (s *Identifier) contradicts(facts *cluster.Facts, b *metric.Batch, i int, l *line, t *track) (metric.Reason, metric.Evidence) {
	sample := &b.Samples[i]
	if !factsCover(facts, &sample.Entity) {
		return metric.Measured, metric.Evidence{}
	}
	pod := facts.PodOf(b, i)
	if pod == nil {
		return s.unknownPod(facts, b, sample, l, t)
	}
	t.unknown = -1
	reason, rule := s.contradiction(facts, b, sample, pod, &l.core)
	if (rule == ruleUID || rule == rulePlace && isOtherPod(pod, l.uid)) && s.appearedLately(facts, b, sample, l) && !s.wasKnown(b, sample, &l.core) {
		reason = metric.Measured
	}
	switch reason {
	case metric.Measured:
		s.learnPod(&l.core, facts, pod, sample, b)
	case metric.OtherNode:
		return reason, metric.Evidence{Rule: rule, Name: string(pod.Node), Other: metric.CounterReading{UID: pod.UID}}
	case metric.OldPod:
		return reason, metric.Evidence{Rule: rule, Other: metric.CounterReading{UID: pod.UID, Start: nanos(pod.Started)}}
	case metric.OldContainer:
		switch c := pod.Container(sample.Entity.Name); c.State {
		case cluster.StateWaiting: // there is no present run to compare with
			return reason, metric.Evidence{Rule: rule, Cause: metric.ContainerNotStarted}
		case cluster.StateTerminated:
			return reason, metric.Evidence{Rule: rule, Cause: metric.ContainerFinished}
		default:
			return reason, metric.Evidence{Rule: rule, Other: metric.CounterReading{ID: c.ID, UID: pod.UID, Start: nanos(c.StartedAt)}}
		}
	}
	return reason, metric.Evidence{}
}

// factsCover reports whether the facts are synced and e is a pod or container, so that they can
// contradict it.
func factsCover(facts *cluster.Facts, e *metric.Entity) bool {
	return facts != nil && facts.Synced && (e.Kind == metric.Pod || e.Kind == metric.Container) && e.Namespace != ""
}

// contradiction returns the reason why the sample does not belong to pod or to the present run
// of its container, and the rule. It returns Measured if nothing contradicts the sample. l is
// the sample's line.
func (s *Identifier) contradiction(facts *cluster.Facts, b *metric.Batch, sample *metric.Sample, pod *cluster.Pod, l *core) (metric.Reason, string) {
	e, start := &sample.Entity, startOf(sample, l)
	// Facts say nothing about an instance that began after they were learnt. That ends after
	// one interval, in which the API server would have reported it.
	outlived := s.outlives(facts, pod, start, b)
	named := l.uid != "" && pod.HasUID(l.uid)
	var c *cluster.Container
	if e.Kind == metric.Container {
		c = pod.Container(e.Name)
	}
	present := isPresentRun(c, l.container, start, b)

	other := isOtherPod(pod, l.uid)
	newer := outlived || other && s.isNewer(facts, pod, start, l, b)
	newer = newer && !(other && s.wasKnown(b, sample, l))
	if pod.Node != "" && b.Node != "" && pod.Node != b.Node && !newer {
		return metric.OtherNode, rulePlace
	}
	if other && !newer {
		return metric.OldPod, ruleUID
	}
	// Age is the weakest evidence: the clock may have been put back since the pod started.
	if !named && !present && !pod.Mirror && pod.ConfigHash == nil && !pod.Started.IsZero() && !outlived {
		if s.wasReadBefore(pod.Started, sample, b) {
			return metric.OldPod, ruleAge
		}
		tooEarly := start != 0 && l.origin != metric.StartCgroup && start < pod.Started.Add(-startSlack-startJitter-b.Resolution).UnixNano()
		if tooEarly && !isNearPresentRun(c, l, start) {
			return metric.OldPod, ruleAge
		}
	}
	if c == nil || present {
		return metric.Measured, ""
	}
	switch c.State {
	case cluster.StateRunning:
		if l.container == "" || c.ID == "" {
			if s.hasEnded(c, start, l.origin, b) || s.wasReadBefore(c.StartedAt, sample, b) || s.usedTooMuch(c, start, sample) || beganLongBefore(c, start, l.origin) {
				return metric.OldContainer, ruleAge
			}
			break
		}
		started := c.StartedAt.UnixNano()
		if !metric.IsWholeSecond(start) {
			started += int64(startSlack)
		}
		if l.container == c.LastID() || start != 0 && start <= started {
			return metric.OldContainer, ruleContainerID
		}
	case cluster.StateWaiting, cluster.StateTerminated:
		if l.container != "" && (l.container == c.ID || l.container == c.LastID()) {
			return metric.OldContainer, ruleContainerID
		}
		// A kubelet writes no status while a postStart hook runs or it pulls an image. So a run that
		// began after the last one ended, or in a container that never ran, is a living one. In a
		// static pod, whose age is unknown, the latter may be of the pod before.
		endUnknown := c.EndedAt().IsZero() && (c.ID != "" || pod.Mirror || pod.ConfigHash != nil)
		if s.hasEnded(c, start, l.origin, b) || endUnknown && s.wouldKnow(facts, start, l.origin, b) {
			return metric.OldContainer, ruleAge
		}
	}
	return metric.Measured, ""
}

// startOf returns when a sample's instance began: the reported start, else the one known of its
// line.
func startOf(sample *metric.Sample, l *core) int64 {
	if sample.Instance.Start != 0 {
		return sample.Instance.Start
	}
	return l.start
}

// outlives reports whether an instance began after weir learnt of pod, within one interval of
// the facts. start is by the node's clock.
func (s *Identifier) outlives(facts *cluster.Facts, pod *cluster.Pod, start int64, b *metric.Batch) bool {
	began := s.byOurClock(start)
	return began > pod.KnownAt.UnixNano() && facts.At.UnixNano()-began < int64(b.Interval)
}

// isNewer reports whether an instance of another UID than pod's is of a later pod of that name,
// which the API server may not have named yet: it began after pod, and lately.
func (s *Identifier) isNewer(facts *cluster.Facts, pod *cluster.Pod, start int64, l *core, b *metric.Batch) bool {
	return s.beganLately(facts, start, l.origin, b) && !pod.Started.IsZero() && start > pod.Started.UnixNano()
}

// isOtherPod reports whether uid is known, and is not pod's.
func isOtherPod(pod *cluster.Pod, uid metric.PodUID) bool { return uid != "" && !pod.HasUID(uid) }

// appearedLately reports whether a line without a start appeared after the previous answer, so
// lately that the API server may not have named its pod yet.
func (s *Identifier) appearedLately(facts *cluster.Facts, b *metric.Batch, sample *metric.Sample, l *line) bool {
	return startOf(sample, &l.core) == 0 && l.appearedAfter != 0 && !l.podKnown && facts.At.UnixNano()-l.appearedAfter <= int64(metric.FactsLag(b.Interval))
}

// wasKnown reports whether the API server knew the UID of a line in an earlier round: by this
// line, or by another one of the pod, such as an earlier run of a container.
func (s *Identifier) wasKnown(b *metric.Batch, sample *metric.Sample, l *core) bool {
	return l.podKnown || s.anyLine(b, b.Slots.PodOf(sample.Slot), func(o *core) bool { return o.podKnown && o.uid == l.uid })
}

// isPresentRun reports whether an instance with this ID and start is the present run of c: the
// IDs are equal, or, if one is unknown, the starts. Both starts are by the node's clock.
func isPresentRun(c *cluster.Container, id metric.ContainerID, start int64, b *metric.Batch) bool {
	switch {
	case c == nil || c.State != cluster.StateRunning:
		return false
	case id != "" && c.ID != "":
		return id == c.ID
	}
	return start != 0 && apart(start, c.StartedAt.UnixNano()) <= int64(startSlack+b.Resolution)
}

// isNearPresentRun reports whether a start may be that of the present run of c with the largest
// error of starts. It is not if the line was already read before that run began.
func isNearPresentRun(c *cluster.Container, l *core, start int64) bool {
	if c == nil || c.State != cluster.StateRunning || c.StartedAt.IsZero() {
		return false
	}
	began := c.StartedAt.UnixNano()
	return apart(start, began) <= int64(startError) && (l.time == 0 || l.time >= began)
}

// beganLongBefore reports whether a start is so long before that of the present run of c that it is
// another run's. Both starts are by the clock that the node had then.
func beganLongBefore(c *cluster.Container, start int64, origin metric.StartOrigin) bool {
	return start != 0 && origin != metric.StartCgroup && !c.StartedAt.IsZero() && c.StartedAt.UnixNano()-start > int64(startError)
}

// hasEnded reports whether a start is that of a run which, by the API server, has ended: it is
// the start of the last run that ended, or before that run's end. A start that is nearer to the
// present run's start than to that of the ended one is the present run's, and jitters. The API
// server's times of both runs must be by one clock.
func (s *Identifier) hasEnded(c *cluster.Container, start int64, origin metric.StartOrigin, b *metric.Batch) bool {
	if start == 0 || origin == metric.StartCgroup || c.EndedAt().IsZero() {
		return false
	}
	slack, ended := int64(startSlack+b.Resolution), c.EndedAt().UnixNano()
	last := nanos(c.LastStartedAt())
	if c.State == cluster.StateRunning {
		present := c.StartedAt.UnixNano()
		if ended > present+slack || present-start <= int64(startJitter) || last != 0 && start-last > present-start {
			return false
		}
	} else if ended > s.node.Latest(s.now)+slack {
		return false // the clock was put back since
	}
	// A node reports when a run was created, the API server when its process started.
	return start < ended-slack || last != 0 && apart(start, last) <= slack && start < ended+int64(time.Second)
}

// wasReadBefore reports whether a sample was read before a pod or run began, as the API server
// reports it.
func (s *Identifier) wasReadBefore(began time.Time, sample *metric.Sample, b *metric.Batch) bool {
	return sample.Received == 0 && s.node.WasReadBefore(reportTime(sample), began, s.now, startSlack+b.Resolution)
}

// usedTooMuch reports whether a sample without a start has more CPU time on its counter than the
// node's cores can have used since the present run of c began. The API server's time may be a
// minute off.
func (s *Identifier) usedTooMuch(c *cluster.Container, start int64, sample *metric.Sample) bool {
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	life := reportTime(sample) - nanos(c.StartedAt)
	return start == 0 && s.cores > 0 && !c.StartedAt.IsZero() && life >= 0 && cpu > s.cores*float64(life+int64(startError))
}

// unknownPod accepts a pod that the API server has never known for one interval, and a line that
// began or appeared lately for longer: weir may learn of it later than its node. A line whose
// pod the API server once knew is of a pod that is deleted, even if the node still reports it.
func (s *Identifier) unknownPod(facts *cluster.Facts, b *metric.Batch, sample *metric.Sample, l *line, t *track) (metric.Reason, metric.Evidence) {
	if t.unknown < 0 {
		t.unknown = s.clock
	}
	switch {
	case l.podKnown:
		return metric.OldPod, metric.Evidence{Rule: ruleUID}
	case s.clock-t.unknown < b.Interval, s.beganLately(facts, startOf(sample, &l.core), l.origin, b), s.appearedLately(facts, b, sample, l):
		return metric.Measured, metric.Evidence{}
	}
	return metric.OldPod, metric.Evidence{Rule: ruleUnknown}
}

// learnPod records whether the line belongs to a pod that the API server knows.
func (s *Identifier) learnPod(l *core, facts *cluster.Facts, pod *cluster.Pod, sample *metric.Sample, b *metric.Batch) {
	if l.uid != "" {
		l.podKnown = pod.HasUID(l.uid)
	} else if !s.outlives(facts, pod, startOf(sample, l), b) {
		l.podKnown = true
	}
}

// wouldKnow reports whether an instance began so long before the facts were learnt that they
// would name it if it were the present one. A start that is still to come was before the clock was
// put back.
func (s *Identifier) wouldKnow(facts *cluster.Facts, start int64, origin metric.StartOrigin, b *metric.Batch) bool {
	if start-s.node.Latest(s.now) > int64(futureStart) && s.clockStepped >= 0 && s.clock-s.clockStepped > metric.FactsLag(b.Interval) {
		return true
	}
	return start != 0 && origin != metric.StartCgroup && facts.At.UnixNano()-s.byOurClock(start) > int64(metric.FactsLag(b.Interval))
}

// beganLately reports whether an instance began, and so lately that the facts may not name it yet.
func (s *Identifier) beganLately(facts *cluster.Facts, start int64, origin metric.StartOrigin, b *metric.Batch) bool {
	return start != 0 && origin != metric.StartCgroup && !s.wouldKnow(facts, start, origin, b)
}

// byOurClock returns a time of the node's clock by our clock, by which the facts are learnt. It
// does not correct less than startSlack, which is normal between two clocks of a cluster. Starts
// that the API server reports are by the node's clock.
func (s *Identifier) byOurClock(at int64) int64 {
	switch {
	case s.node.MinAhead > startSlack:
		return at - int64(s.node.MinAhead)
	case s.node.MaxAhead < -startSlack:
		return at - int64(s.node.MaxAhead)
	}
	return at
}

// presentRun returns the container as the API server reports it, if sample i is its present run;
// else nil.
func presentRun(facts *cluster.Facts, b *metric.Batch, i int) *cluster.Container {
	e, in := &b.Samples[i].Entity, &b.Samples[i].Instance
	if e.Kind != metric.Container {
		return nil
	}
	c := facts.PodOf(b, i).Container(e.Name)
	if !isPresentRun(c, in.ID, in.Start, b) {
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
