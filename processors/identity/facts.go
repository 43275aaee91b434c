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
	sample          *metric.Sample
	start           int64 // reported, else that of the line; 0 if unknown
	appearedAfter   int64 // of the line
	run             run.Run
	basis           run.Basis
	newer           bool // it may be of a pod that the API server does not name yet
	beganSinceKnown bool // it began after weir first saw its pod, and within the last interval
}

// setSubject makes the entity of sample i the subject.
func (identifier *Identifier) setSubject(i int, t *track) {
	e := &identifier.batch.Samples[i].Entity
	identifier.subject.t = t
	identifier.pod, identifier.record = nil, run.Record{}
	identifier.covered = identifier.facts != nil && identifier.facts.Synced && (e.Kind == metric.Pod || e.Kind == metric.Container) && e.Namespace != ""
	if !identifier.covered {
		return
	}
	identifier.pod = identifier.facts.PodOf(identifier.batch, i)
	if e.Kind == metric.Container {
		identifier.record = identifier.pod.Container(e.Name).Record()
		identifier.record.First = identifier.record.First && !identifier.isStatic() // an older one may be of the pod before
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
func (identifier *Identifier) contradiction(sample *metric.Sample, l *core, appearedAfter int64) (metric.Reason, string) {
	identifier.seen = seen{core: l, sample: sample, start: startOf(sample, l), appearedAfter: appearedAfter}
	v := &identifier.seen
	v.beganSinceKnown = identifier.beganSinceKnown(v.start)
	v.newer = identifier.isNewer(v)
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	report := run.Seen{ID: l.container, Start: v.start, Origin: l.origin, CPU: cpu}
	if sample.Received == 0 {
		report.Read = reportTime(sample)
	}
	v.run, v.basis = identifier.record.Which(&report, &identifier.limits)
	for i := range factRules {
		if r := &factRules[i]; r.rejects(identifier, v) {
			return r.reason, r.rule
		}
	}
	return metric.Measured, ""
}

// isElsewhere is the rule place: the API server binds the pod to another node.
func (identifier *Identifier) isElsewhere(v *seen) bool {
	return identifier.pod.Node != "" && identifier.batch.Node != "" && identifier.pod.Node != identifier.batch.Node && !v.newer
}

// hasOtherUID is the rule uid: the sample's UID is neither the pod's nor the hash of its manifest.
func (identifier *Identifier) hasOtherUID(v *seen) bool {
	return identifier.isOtherPod(v.uid) && !v.newer
}

// isOlderThanPod is the rule age: the sample was read, or its instance began, before the pod. It is
// the weakest evidence, because the clock may have been put back since: a name or the start of the
// present run overrules it. A static pod is older than its record.
func (identifier *Identifier) isOlderThanPod(v *seen) bool {
	named := v.uid != "" && identifier.pod.HasUID(v.uid)
	if named || v.run == run.Present || v.beganSinceKnown || identifier.isStatic() {
		return false
	}
	return v.sample.Received == 0 && run.ReadBefore(reportTime(v.sample), identifier.pod.Started, &identifier.limits) ||
		run.Reported(v.start, v.origin, run.Jitter+identifier.limits.Resolution).Before(run.Recorded(identifier.pod.Started))
}

// hasOldID is the rule container id: the sample's ID is that of a run that is over.
func (identifier *Identifier) hasOldID(v *seen) bool {
	return v.run == run.Ended && v.basis == run.ByName
}

// isOlderThanRun is the rule age of a run: its start, its time or its counter shows that the instance
// is of a run that is over. If no run lives and the end of the last one is unknown, an instance that
// the API server would name by now is that one. In a static pod it may also be of the pod before.
func (identifier *Identifier) isOlderThanRun(v *seen) bool {
	endUnknown := identifier.record.State == run.Stopped && identifier.record.LastEnd.IsZero() && (identifier.record.ID != "" || identifier.isStatic())
	return v.run == run.Ended || endUnknown && identifier.wouldName(v.start, v.origin)
}

// isStatic reports whether the pod is a static one, or its mirror.
func (identifier *Identifier) isStatic() bool {
	return identifier.pod.Mirror || identifier.pod.ConfigHash != nil
}

// isOtherPod reports whether uid is known, and is not that of the subject's pod.
func (identifier *Identifier) isOtherPod(uid metric.PodUID) bool {
	return uid != "" && !identifier.pod.HasUID(uid)
}

// isNewer reports whether the sample may be of an instance that the API server does not name yet: it
// began since weir knows its pod or, with another UID that the API server never named,
// lately and after the pod.
func (identifier *Identifier) isNewer(v *seen) bool {
	if !identifier.isOtherPod(v.uid) {
		return v.beganSinceKnown
	}
	began := identifier.beganLately(v.start, v.origin) && !identifier.pod.Started.IsZero() && v.start > identifier.pod.Started.UnixNano()
	return (v.beganSinceKnown || began || identifier.appearedLately(v)) && !identifier.wasKnown(v)
}

// appearedLately reports whether a line without a start appeared after the previous answer, so
// lately that the API server may not have named its pod yet.
func (identifier *Identifier) appearedLately(v *seen) bool {
	return v.start == 0 && v.appearedAfter != 0 && !v.podKnown && identifier.factsAt-v.appearedAfter <= int64(run.RecordLag(identifier.batch.Interval))
}

// wasKnown reports whether the API server knew the UID of a line in an earlier round: by this
// line, or by another one of the pod, such as an earlier run of a container.
func (identifier *Identifier) wasKnown(v *seen) bool {
	return v.podKnown || identifier.anyLine(identifier.batch, identifier.batch.Slots.PodOf(v.sample.Slot), func(o *core) bool { return o.podKnown && o.uid == v.uid })
}

// applyFacts rejects candidates that the API server contradicts, even a lone one.
func (identifier *Identifier) applyFacts() {
	for i := range identifier.candidates {
		c := &identifier.candidates[i]
		l := &identifier.subject.t.lines[c.line]
		if reason, evidence := identifier.contradicts(int(c.sample), l); reason != metric.Measured {
			identifier.reject(c, reason, evidence)
		}
		if l.appearedAfter != 0 && !(identifier.covered && identifier.appearedLately(&seen{core: &l.core, start: startOf(&identifier.batch.Samples[c.sample], &l.core), appearedAfter: l.appearedAfter})) {
			l.appearedAfter = 0
		}
	}
}

// contradicts returns the reason why sample i is not the present instance of its pod or container
// according to the facts, with evidence; Measured if they do not rule it out. l is its line.
func (identifier *Identifier) contradicts(i int, l *line) (metric.Reason, metric.Evidence) {
	sample := &identifier.batch.Samples[i]
	if !identifier.covered {
		return metric.Measured, metric.Evidence{}
	}
	if identifier.pod == nil {
		return identifier.unknownPod(&seen{core: &l.core, sample: sample, start: startOf(sample, &l.core), appearedAfter: l.appearedAfter})
	}
	identifier.subject.t.unknown = -1
	reason, rule := identifier.contradiction(sample, &l.core, l.appearedAfter)
	evidence := metric.Evidence{Rule: rule}
	switch reason {
	case metric.Measured:
		identifier.learnPod(&identifier.seen)
	case metric.OtherNode:
		evidence.Name, evidence.Other.UID = string(identifier.pod.Node), identifier.pod.UID
	case metric.OldPod:
		evidence.Other = metric.CounterReading{UID: identifier.pod.UID, Start: nanos(identifier.pod.Started)}
	case metric.OldContainer:
		switch identifier.pod.Container(sample.Entity.Name).State {
		case cluster.StateWaiting: // there is no present run to compare with
			evidence.Cause = metric.ContainerNotStarted
		case cluster.StateTerminated:
			evidence.Cause = metric.ContainerFinished
		default:
			evidence.Other = metric.CounterReading{ID: identifier.record.ID, UID: identifier.pod.UID, Start: nanos(identifier.record.Start)}
		}
	}
	return reason, evidence
}

// unknownPod accepts a pod that the API server has never known for one interval, and a line that
// began or appeared lately for longer: weir may learn of it later than its node. A line whose
// pod the API server once knew is of a pod that is deleted, even if the node still reports it.
func (identifier *Identifier) unknownPod(v *seen) (metric.Reason, metric.Evidence) {
	t := identifier.subject.t
	if t.unknown < 0 {
		t.unknown = identifier.clock
	}
	switch {
	case v.podKnown:
		return metric.OldPod, metric.Evidence{Rule: ruleUID}
	case identifier.clock-t.unknown < identifier.batch.Interval, identifier.beganLately(v.start, v.origin), identifier.appearedLately(v):
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

// beganSinceKnown reports whether an instance began after weir first saw the pod, and less than an
// interval before the facts: the API server may not have reported it yet. start is by the node's clock.
func (identifier *Identifier) beganSinceKnown(start int64) bool {
	began := identifier.byOurClock(start)
	return began > identifier.node.OurTime(identifier.pod.KnownAt) && identifier.factsAt-began < int64(identifier.batch.Interval)
}

// learnPod records whether the line belongs to a pod that the API server knows.
func (identifier *Identifier) learnPod(v *seen) {
	if v.uid != "" {
		v.podKnown = identifier.pod.HasUID(v.uid)
	} else if !v.beganSinceKnown {
		v.podKnown = true
	}
}

// wouldName reports whether the API server would have named an instance by now. A start that is
// still to come was before the clock was put back.
func (identifier *Identifier) wouldName(start int64, origin metric.StartOrigin) bool {
	lag := run.RecordLag(identifier.batch.Interval)
	if start-identifier.limits.Now > int64(run.OldReading) && identifier.clockStepped >= 0 && identifier.clock-identifier.clockStepped > lag {
		return true
	}
	return run.WouldName(identifier.byOurClock(start), origin, identifier.factsAt, lag)
}

// beganLately reports whether an instance began, and so lately that the facts may not name it yet.
func (identifier *Identifier) beganLately(start int64, origin metric.StartOrigin) bool {
	return start != 0 && origin != metric.StartCgroup && !identifier.wouldName(start, origin)
}

// byOurClock returns a time of the node's clock by our clock, as metric.NodeClock.OurTime has it
// and by which the facts are learnt. A difference up to run.Cut is normal between two clocks of a
// cluster. An unknown time stays 0.
func (identifier *Identifier) byOurClock(at int64) int64 {
	switch {
	case at == 0:
		return 0
	case identifier.node.MinAhead > run.Cut:
		return at - int64(identifier.node.MinAhead)
	case identifier.node.MaxAhead < -run.Cut:
		return at - int64(identifier.node.MaxAhead)
	}
	return at
}

// isPresent reports whether a sample is of the present run that the API server names.
func (identifier *Identifier) isPresent(in *metric.Instance) bool {
	return identifier.record.IsPresent(in.ID, in.Start, identifier.limits.Resolution)
}

// learnNames gives a line the UID and the container ID that the API server reports, if the start of
// its sample is that of the present run. When the name later passes to another pod or run, the line
// still belongs to the old one.
func (identifier *Identifier) learnNames(l *core, in *metric.Instance) {
	if (l.uid == "" || l.container == "") && identifier.isPresent(in) {
		l.uid, l.container = identifier.pod.ReportedUID(), identifier.record.ID
	}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
