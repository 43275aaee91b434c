package identity

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// subject is the entity that is judged now, with what the API server reports of it.
type subject struct {
	t       *track // nil on the fast path
	pod     *cluster.Pod
	covered bool       // the facts are synced and can contradict the entity; else pod and record are empty
	record  run.Record // of the container; the zero Record for a pod
}

// seen is a sample with its line, as the rules of the API server see it.
type seen struct {
	*core
	sample        *metric.Sample
	start         int64 // reported, else that of the line; 0 if unknown
	appearedAfter int64 // of the line
	run           run.Run
	by            run.Basis
	newer         bool // it may be of a pod that the API server does not name yet
	outlives      bool // it began after the facts of its pod were learnt
}

// judge makes the entity of sample i the subject.
func (s *Identifier) judge(i int, t *track) {
	e := &s.batch.Samples[i].Entity
	s.subject.t = t
	s.pod, s.record = nil, run.Record{}
	s.covered = s.facts != nil && s.facts.Synced && (e.Kind == metric.Pod || e.Kind == metric.Container) && e.Namespace != ""
	if !s.covered {
		return
	}
	s.pod = s.facts.PodOf(s.batch, i)
	if e.Kind == metric.Container {
		s.record = s.pod.Container(e.Name).Record()
		s.record.First = s.record.First && !s.isStatic() // an older one may be of the pod before
	}
}

// factRules are the rules by which the API server contradicts a sample, even a lone one, strongest
// first.
var factRules = [...]struct {
	rule    string
	reason  metric.Reason
	rejects func(*Identifier, *seen) bool
}{
	{rulePlace, metric.OtherNode, (*Identifier).isElsewhere},
	{ruleUID, metric.OldPod, (*Identifier).hasOtherUID},
	{ruleAge, metric.OldPod, (*Identifier).isOlderThanPod},
	{ruleContainerID, metric.OldContainer, (*Identifier).hasOldID},
	{ruleAge, metric.OldContainer, (*Identifier).isOlderThanRun},
}

// contradiction returns the reason why a sample is not of the pod or of the present run that the API
// server names, and the rule; Measured if nothing contradicts it. The pod of the subject is known.
func (s *Identifier) contradiction(sample *metric.Sample, l *core, appearedAfter int64) (metric.Reason, string) {
	s.seen = seen{core: l, sample: sample, start: startOf(sample, l), appearedAfter: appearedAfter}
	v := &s.seen
	v.outlives = s.outlives(v.start)
	v.newer = s.isNewer(v)
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	report := run.Seen{ID: l.container, Start: v.start, Origin: l.origin, CPU: cpu}
	if sample.Received == 0 {
		report.Read = reportTime(sample)
	}
	v.run, v.by = s.record.Which(&report, &s.limits)
	for i := range factRules {
		if r := &factRules[i]; r.rejects(s, v) {
			return r.reason, r.rule
		}
	}
	return metric.Measured, ""
}

// isElsewhere is the rule place: the API server binds the pod to another node.
func (s *Identifier) isElsewhere(v *seen) bool {
	return s.pod.Node != "" && s.batch.Node != "" && s.pod.Node != s.batch.Node && !v.newer
}

// hasOtherUID is the rule uid: the sample's UID is neither the pod's nor the hash of its manifest.
func (s *Identifier) hasOtherUID(v *seen) bool { return s.isOtherPod(v.uid) && !v.newer }

// isOlderThanPod is the rule age: the sample was read, or its instance began, before the pod. It is
// the weakest evidence, because the clock may have been put back since: a name or the start of the
// present run overrules it. A static pod is older than its record.
func (s *Identifier) isOlderThanPod(v *seen) bool {
	named := v.uid != "" && s.pod.HasUID(v.uid)
	if named || v.run == run.Present || v.outlives || s.isStatic() {
		return false
	}
	return v.sample.Received == 0 && run.ReadBefore(reportTime(v.sample), s.pod.Started, &s.limits) ||
		run.Reported(v.start, v.origin, run.Jitter+s.limits.Resolution).Before(run.Recorded(s.pod.Started))
}

// hasOldID is the rule container id: the sample's ID is that of a run that is over.
func (s *Identifier) hasOldID(v *seen) bool { return v.run == run.Ended && v.by == run.ByName }

// isOlderThanRun is the rule age of a run: its start, its time or its counter shows that the instance
// is of a run that is over. If no run lives and the end of the last one is unknown, an instance that
// the API server would name by now is that one. In a static pod it may also be of the pod before.
func (s *Identifier) isOlderThanRun(v *seen) bool {
	endUnknown := s.record.State == run.Stopped && s.record.LastEnd.IsZero() && (s.record.ID != "" || s.isStatic())
	return v.run == run.Ended || endUnknown && s.wouldName(v.start, v.origin)
}

// isStatic reports whether the pod is a static one, or its mirror.
func (s *Identifier) isStatic() bool { return s.pod.Mirror || s.pod.ConfigHash != nil }

// isOtherPod reports whether uid is known, and is not that of the subject's pod.
func (s *Identifier) isOtherPod(uid metric.PodUID) bool { return uid != "" && !s.pod.HasUID(uid) }

// isNewer reports whether the sample may be of an instance that the API server does not name yet: it
// began after the facts of its pod were learnt or, with another UID that the API server never named,
// lately and after the pod.
func (s *Identifier) isNewer(v *seen) bool {
	if !s.isOtherPod(v.uid) {
		return v.outlives
	}
	began := s.beganLately(v.start, v.origin) && !s.pod.Started.IsZero() && v.start > s.pod.Started.UnixNano()
	return (v.outlives || began || s.appearedLately(v)) && !s.wasKnown(v)
}

// appearedLately reports whether a line without a start appeared after the previous answer, so
// lately that the API server may not have named its pod yet.
func (s *Identifier) appearedLately(v *seen) bool {
	return v.start == 0 && v.appearedAfter != 0 && !v.podKnown && s.facts.At.UnixNano()-v.appearedAfter <= int64(run.RecordLag(s.batch.Interval))
}

// wasKnown reports whether the API server knew the UID of a line in an earlier round: by this
// line, or by another one of the pod, such as an earlier run of a container.
func (s *Identifier) wasKnown(v *seen) bool {
	return v.podKnown || s.anyLine(s.batch, s.batch.Slots.PodOf(v.sample.Slot), func(o *core) bool { return o.podKnown && o.uid == v.uid })
}

// applyFacts rejects candidates that the API server contradicts, even a lone one.
func (s *Identifier) applyFacts() {
	for i := range s.candidates {
		c := &s.candidates[i]
		l := &s.subject.t.lines[c.line]
		if reason, evidence := s.contradicts(int(c.sample), l); reason != metric.Measured {
			s.reject(c, reason, evidence)
		}
		if l.appearedAfter != 0 && !(s.covered && s.appearedLately(&seen{core: &l.core, start: startOf(&s.batch.Samples[c.sample], &l.core), appearedAfter: l.appearedAfter})) {
			l.appearedAfter = 0
		}
	}
}

// contradicts returns the reason why sample i is not the present instance of its pod or container
// according to the facts, with evidence; Measured if they do not rule it out. l is its line.
func (s *Identifier) contradicts(i int, l *line) (metric.Reason, metric.Evidence) {
	sample := &s.batch.Samples[i]
	if !s.covered {
		return metric.Measured, metric.Evidence{}
	}
	if s.pod == nil {
		return s.unknownPod(&seen{core: &l.core, sample: sample, start: startOf(sample, &l.core), appearedAfter: l.appearedAfter})
	}
	s.subject.t.unknown = -1
	reason, rule := s.contradiction(sample, &l.core, l.appearedAfter)
	evidence := metric.Evidence{Rule: rule}
	switch reason {
	case metric.Measured:
		s.learnPod(&s.seen)
	case metric.OtherNode:
		evidence.Name, evidence.Other.UID = string(s.pod.Node), s.pod.UID
	case metric.OldPod:
		evidence.Other = metric.CounterReading{UID: s.pod.UID, Start: nanos(s.pod.Started)}
	case metric.OldContainer:
		switch s.pod.Container(sample.Entity.Name).State {
		case cluster.StateWaiting: // there is no present run to compare with
			evidence.Cause = metric.ContainerNotStarted
		case cluster.StateTerminated:
			evidence.Cause = metric.ContainerFinished
		default:
			evidence.Other = metric.CounterReading{ID: s.record.ID, UID: s.pod.UID, Start: nanos(s.record.Start)}
		}
	}
	return reason, evidence
}

// unknownPod accepts a pod that the API server has never known for one interval, and a line that
// began or appeared lately for longer: weir may learn of it later than its node. A line whose
// pod the API server once knew is of a pod that is deleted, even if the node still reports it.
func (s *Identifier) unknownPod(v *seen) (metric.Reason, metric.Evidence) {
	t := s.subject.t
	if t.unknown < 0 {
		t.unknown = s.clock
	}
	switch {
	case v.podKnown:
		return metric.OldPod, metric.Evidence{Rule: ruleUID}
	case s.clock-t.unknown < s.batch.Interval, s.beganLately(v.start, v.origin), s.appearedLately(v):
		return metric.Measured, metric.Evidence{}
	}
	return metric.OldPod, metric.Evidence{Rule: ruleUnknown}
}

// startOf returns when a sample's instance began: the reported start, else the one known of its
// line.
func startOf(sample *metric.Sample, l *core) int64 {
	if sample.Instance.Start != 0 {
		return sample.Instance.Start
	}
	return l.start
}

// outlives reports whether an instance began after weir learnt of the pod, within one interval of
// the facts, in which the API server would have reported it. start is by the node's clock.
func (s *Identifier) outlives(start int64) bool {
	began := s.byOurClock(start)
	return began > s.pod.KnownAt.UnixNano() && s.facts.At.UnixNano()-began < int64(s.batch.Interval)
}

// learnPod records whether the line belongs to a pod that the API server knows.
func (s *Identifier) learnPod(v *seen) {
	if v.uid != "" {
		v.podKnown = s.pod.HasUID(v.uid)
	} else if !v.outlives {
		v.podKnown = true
	}
}

// wouldName reports whether the API server would have named an instance by now. A start that is
// still to come was before the clock was put back.
func (s *Identifier) wouldName(start int64, origin metric.StartOrigin) bool {
	lag := run.RecordLag(s.batch.Interval)
	if start-s.limits.Now > int64(run.OldReading) && s.clockStepped >= 0 && s.clock-s.clockStepped > lag {
		return true
	}
	return run.WouldName(s.byOurClock(start), origin, s.facts.At.UnixNano(), lag)
}

// beganLately reports whether an instance began, and so lately that the facts may not name it yet.
func (s *Identifier) beganLately(start int64, origin metric.StartOrigin) bool {
	return start != 0 && origin != metric.StartCgroup && !s.wouldName(start, origin)
}

// byOurClock returns a time of the node's clock by our clock, by which the facts are learnt. A
// difference up to run.Cut is normal between two clocks of a cluster. An unknown time stays 0.
func (s *Identifier) byOurClock(at int64) int64 {
	switch {
	case at == 0:
		return 0
	case s.node.MinAhead > run.Cut:
		return at - int64(s.node.MinAhead)
	case s.node.MaxAhead < -run.Cut:
		return at - int64(s.node.MaxAhead)
	}
	return at
}

// isPresent reports whether a sample is of the present run that the API server names.
func (s *Identifier) isPresent(in *metric.Instance) bool {
	return s.record.IsPresent(in.ID, in.Start, s.limits.Resolution)
}

// learnNames gives a line the UID and the container ID that the API server reports, if the start of
// its sample is that of the present run. When the name later passes to another pod or run, the line
// still belongs to the old one.
func (s *Identifier) learnNames(l *core, in *metric.Instance) {
	if (l.uid == "" || l.container == "") && s.isPresent(in) {
		l.uid, l.container = s.pod.ReportedUID(), s.record.ID
	}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
