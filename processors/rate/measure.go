package rate

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// reading is the counters of one group of a sample, with what they are compared with.
type reading struct {
	entry
	group  metric.Group
	sample *metric.Sample
	pod    *cluster.Pod // as the API server knows it; nil if it does not
	track  *track
	series *series // of the group
	batch  *metric.Batch
}

// measure sets the rates and the reason of one group of a sample. What is left without a reason is
// left to repeatLastKnown.
func (ca *Calculator) measure(t *track, g metric.Group, sample *metric.Sample, pod *cluster.Pod, b *metric.Batch) {
	if sample.LastKnown&(1<<g) != 0 || sample.Reasons[g] != metric.Unjudged && sample.Reasons[g] != metric.Ambiguous {
		return
	}
	if sample.Rates[g].End != 0 || !counts(g, &sample.Values) { // a rate that the node measured, or a gauge
		if (g == metric.CPU || g == metric.Memory) && ca.clock-t.groups[g].read > metric.LastKnownFor(b.Interval) {
			ca.rejectGroup(sample, g, metric.Stale, b, t)
			return
		}
		markMeasured(sample, g)
		return
	}
	sr := &t.groups[g].series
	sr.on = true
	received := sample.Received&(1<<g) != 0
	if sr.received != received {
		sr.n, sr.received = 0, received
	}
	r := reading{group: g, sample: sample, pod: pod, track: t, series: sr, batch: b}
	r.read(sample.Times[g], g, &sample.Values)
	if !sr.advances(r.time) {
		ca.measureAgain(&r)
		return
	}
	if run.IsAfterReading(sample.Instance.Start, r.time, b.Resolution) {
		sr.reset = true
	}
	if !received && !ca.timeIsSure(sr, r.time, b) {
		ca.distrust(&r)
		return
	}
	ca.measureNew(&r)
}

// measureAgain measures a reading that came before, from the instance's start: that may be credible
// by now. repeatLastKnown serves the last rate if there was one.
func (ca *Calculator) measureAgain(r *reading) {
	if r.time == r.series.newest && r.group == metric.CPU && !r.series.reset && !r.hasNumbers() && ca.fromStart(r) == metric.Measured {
		markMeasured(r.sample, r.group)
	}
}

// distrust handles a reading that may be from before a step of the clock: no later reading is
// paired with it. A node that reports its time shows when the readings after the step begin.
func (ca *Calculator) distrust(r *reading) {
	sr, b := r.series, r.batch
	sr.doubt, sr.unsure = r.time, b.NodeTime != 0
	if !sr.unsure {
		sr.newest, sr.since = r.time, ca.clock
	}
	lately := ca.steppedLately()
	if lately {
		sr.stepped, sr.reset = true, true // the start may also be from before it
	}
	if r.hasNumbers() && (sr.n > 0 || ca.mayHold(r)) {
		return // repeatLastKnown serves
	}
	if sr.stepped || b.NodeTime != 0 && r.time > b.NodeTime {
		due := b.Interval
		if lately && sr.unsure {
			due = max(due, ca.stepped+ca.oldestReading()-ca.clock)
		}
		ca.rejectReading(r, metric.ClockStep, due, metric.CounterReading{})
		return
	}
	if ca.age(r.time, sr.received, b) > metric.LastKnownFor(b.Interval) {
		ca.rejectGroup(r.sample, r.group, metric.Stale, b, r.track) // it was old before it was first read
		return
	}
	ca.rejectReading(r, metric.FirstSample, b.Interval, metric.CounterReading{}) // it only came late
}

// measureNew measures a new reading and stores it, so that later ones can be paired with it.
func (ca *Calculator) measureNew(r *reading) {
	sr, b := r.series, r.batch
	sr.unsure = false
	reason, other := ca.compare(r)
	switch {
	case reason == metric.Measured:
		sr.stepped = false
	case reason == metric.CounterReset || reason == metric.Impossible:
		sr.forget()
	case reason == metric.FirstSample && sr.stepped:
		reason = metric.ClockStep
	}
	since := sr.since
	sr.store(&r.entry, ca.clock, ca.target(b))
	switch {
	case reason == metric.ClockStep && r.hasNumbers() && ca.mayHold(r):
		sr.since = since // of the last known value, which repeatLastKnown serves
	case reason == metric.Measured:
		markMeasured(r.sample, r.group)
	default:
		due := max(b.Interval, sr.lacks(r.time, ca.least(b))) // until a reading can be paired with one that is stored
		if reason == metric.TooYoung {
			i := &r.sample.Instance
			due = min(ca.leastLife(i, b)-time.Duration(r.time-i.Start), sr.lacks(r.time, ca.least(b)))
		}
		ca.rejectReading(r, reason, due, other)
	}
}

// compare sets the rates since an earlier reading or since the instance's start, and returns
// Measured; else the reason why there are none, and the reading it was compared with.
func (ca *Calculator) compare(r *reading) (reason metric.Reason, other metric.CounterReading) {
	sr := r.series
	reason = metric.FirstSample
	switch prev := sr.baseline(r.time, ca.target(r.batch), ca.least(r.batch)); {
	case prev != nil:
		if reason = ca.pair(r, prev); reason != metric.Measured {
			other = metric.CounterReading{Time: prev.time, Start: r.track.instance.Start, Value: prev.counters[0]}
		}
	case sr.fell(&r.entry):
		// The stored samples are too young to pair with, but they show that the counter fell.
		newest := sr.last()
		reason, other = metric.CounterReset, metric.CounterReading{Time: newest.time, Value: newest.counters[0]}
	case r.group == metric.CPU && !sr.reset:
		reason = ca.fromStart(r)
	}
	if reason == metric.FirstSample && sr.n > 0 {
		other.Time = sr.entries[0].time
	}
	return reason, other
}

// hasNumbers reports whether numbers of the reading's group were served last.
func (r *reading) hasNumbers() bool { return r.track.groups[r.group].hasNumbers() }

// rejectReading gives a group with a new reading its reason and verdict, which may change when
// due has passed. other is the reading it was compared with.
func (ca *Calculator) rejectReading(r *reading, reason metric.Reason, due time.Duration, other metric.CounterReading) {
	sample, g := r.sample, r.group
	if g == metric.Memory {
		// Gauges need no pair. Only the page fault rates are missing.
		markMeasured(sample, g)
		return
	}
	sample.Reasons[g] = reason
	verdict := metric.Verdict{Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: reason}
	verdict.Evidence.Got, verdict.Evidence.Other = readingOf(g, sample, r.time), other
	verdict.Evidence.Limit = ca.needed(reason, &sample.Instance, r.batch)
	if due > 0 {
		verdict.Evidence.Due = ca.now.UnixNano() + int64(due)
	}
	r.batch.Verdicts = append(r.batch.Verdicts, verdict)
}

// needed returns how many nanoseconds an instance must have been followed for the reason to
// end; 0 if another event ends it.
func (ca *Calculator) needed(reason metric.Reason, i *metric.Instance, b *metric.Batch) float64 {
	switch reason {
	case metric.FirstSample:
		return float64(ca.shortest(b))
	case metric.TooYoung:
		return float64(ca.leastLife(i, b))
	}
	return 0
}
