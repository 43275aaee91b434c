// Package rate turns counters into rates: it pairs each sample with an earlier one of the same
// instance and sets the rate metrics, with the window that was measured. A rate that cannot be
// right is not served; the verdict explains why.
//
// README.md lists the rules. In short: a pair is of one instance, at least ten seconds apart,
// and no node uses more CPU time than its cores have. A restart is not a reset, and a start
// time that jitters is neither. After a missed scrape or a cached sample the last known values
// are served, with their old timestamps, until they are too old.
//
// track.go defines the state of an entity; packedtrack.go and packedtracks.go keep it small
// between rounds. instance.go decides what is one instance, series.go stores the samples that
// are paired, start.go measures young instances from their start, clock.go detects steps of the
// node's clock, lastknown.go repeats last known values.
package rate

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Options configure a Calculator. The zero Options is ready to use.
type Options struct {
	// MinWindow is the shortest window over which a rate is measured. Default 10 s.
	MinWindow time.Duration
	// CoarseWindow is the shortest window where times are cut to whole seconds. A rate can be
	// wrong by a second of its window: by 3% at the default 30 s, by 10% at 10 s. It is at least
	// MinWindow.
	CoarseWindow time.Duration
	// LastKnownFor is how long last known values are served. Default: three intervals of the
	// source, at least 60 s.
	LastKnownFor time.Duration
}

// Calculator calculates the rates of one source. It keeps earlier counters by slot. It is not
// safe for concurrent use.
type Calculator struct {
	options  Options
	slots    metric.SlotTable // used if no earlier step assigned slots
	tracks   packedTracks     // by slot
	reported []bool           // by slot: in this batch, and not rejected
	epoch    time.Time
	now      time.Time
	clock    time.Duration // this round's now, since epoch
	round    uint32
	cores    cores
	node     metric.NodeClock
	answers  int           // reads that succeeded
	oldest   time.Duration // the age of the oldest reading when it was first reported
	// Our clock when the node's clock last stepped, and when a reported start last moved;
	// negative if never.
	stepped, startMoved time.Duration
	latestShown         int64  // the latest time that the node's clock can have shown before the steps of the last ten minutes
	scanned             uint32 // the last round in which startsMove read all starts
}

// New returns the state for one source.
func New(o Options) *Calculator {
	if o.MinWindow <= 0 {
		o.MinWindow = 10 * time.Second
	}
	if o.CoarseWindow <= 0 {
		o.CoarseWindow = 30 * time.Second
	}
	o.CoarseWindow = max(o.CoarseWindow, o.MinWindow)
	return &Calculator{options: o, stepped: -1, startMoved: -1}
}

// Process sets the rates of b's samples, gives each group its verdict, and adds samples with
// the last known values of entities that were not reported. It does not change samples that
// identity rejected.
func (ca *Calculator) Process(facts *cluster.Facts, b *metric.Batch, now time.Time) {
	if ca.epoch.IsZero() {
		ca.epoch = now
	}
	ca.now, ca.clock, ca.round = now, now.Sub(ca.epoch), ca.round+1
	ca.cores.capacity = facts.CoresOf(b)
	if !b.Failed() {
		ca.answers++
	}
	b.AssignSlots(&ca.slots)
	ca.tracks.follow(b.Slots)
	ca.reported = metric.BySlot(b.Slots, ca.reported)
	clear(ca.reported)
	var t track // the current one
	if ca.clockStepped(b) {
		if ca.clock-ca.stepped > forgetAfter {
			ca.latestShown = 0
		}
		ca.stepped, ca.latestShown = ca.clock, max(ca.latestShown, ca.node.LatestBeforeStep)
		for slot := range ca.tracks.len() { // also those that this batch does not report
			if !ca.tracks.empty(slot) {
				ca.tracks.unpack(slot, &t)
				t.distrustNextReading()
				ca.tracks.pack(slot, &t)
			}
		}
	}
	for i := range b.Samples {
		sample := &b.Samples[i]
		slot := sample.Slot
		if sample.Rejected() {
			ca.dropRejected(sample)
			continue
		}
		if ca.reported[slot] {
			// A second report of an entity that identity did not judge: a part that was
			// reported twice. The first report is used.
			sample.Reject(metric.Discontinuous)
			continue
		}
		ca.reported[slot] = true
		ca.tracks.unpack(slot, &t)
		pod := facts.PodOf(b, i)
		ca.followInstance(&t, pod, sample, b)
		t.addBaseline(int32(i), b)
		for g := range metric.NumGroups {
			if sample.Times[g] != 0 {
				ca.measure(&t, metric.Group(g), sample, pod, b)
			}
		}
		ca.repeatLastKnown(&t, facts, sample, b)
		t.keep(sample)
		ca.tracks.pack(slot, &t)
	}
	ca.addMissing(&t, facts, b)
	ca.tracks.compact()
}

// dropRejected clears the track of an entity if identity has rejected the very line that the
// track follows: its last known values are those of the rejected instance.
func (ca *Calculator) dropRejected(rejected *metric.Sample) {
	slot := rejected.Slot
	if ca.reported[slot] {
		return
	}
	if line := ca.tracks.line(slot); line == 0 || line != rejected.Instance.Line {
		return
	}
	switch rejected.Reasons[metric.CPU] {
	case metric.OtherNode, metric.OldPod, metric.OldContainer, metric.OlderStart:
		ca.tracks.clear(slot)
	}
}

// followInstance decides whether sample continues the instance of t, and clears t if not. pod
// is the sample's pod as the API server knows it; nil if it does not.
func (ca *Calculator) followInstance(t *track, pod *cluster.Pod, sample *metric.Sample, b *metric.Batch) {
	t.seen, t.absent = ca.clock, 0
	for g, at := range sample.Times {
		if at != 0 && at != t.groups[g].time && sample.Reasons[g] != metric.NoData {
			t.groups[g].read = ca.clock
			if t.isNew {
				t.groups[g].read -= ca.age(at, sample.Received&(1<<g) != 0, b)
			}
		}
	}
	if uid := sample.Instance.UID; pod != nil && uid != "" && !pod.HasUID(uid) {
		pod = nil // the API server does not name the sample's pod yet
	}
	run := presentRun(pod, sample)
	same := true
	if !t.isNew {
		same = ca.isSameInstance(t, sample, b)
		if pod != nil && t.isOfEarlierPod(pod) && (sample.Instance.UID == "" || sample.Instance.UID != t.instance.UID) {
			same = false
		}
		if run != nil && t.isOfEarlierRun(run) && t.endsBefore(run) {
			same = false
		}
	}
	if !same {
		doubtful := t.startIsDoubtful(pod, sample, b)
		t.clear()
		if doubtful {
			t.resetBaselines()
		}
	}
	t.steady = same && steady(&t.instance, &sample.Instance, sample)
	ca.recordStartMove(t, sample)
	if last, in := t.instance.Sandbox, sample.Instance.Sandbox; last != "" && in != "" && last != in && t.groups[metric.Network].series.on {
		// A new sandbox has new network counters.
		t.groups[metric.Network].series = series{on: true}
	}
	t.instance = sample.Instance
	if pod != nil && pod.ReportedUID() != "" {
		t.pod = pod
	}
	if run != nil {
		t.run = run
	}
}

// measure sets the rates and the reason of one group of a sample.
func (ca *Calculator) measure(t *track, g metric.Group, sample *metric.Sample, pod *cluster.Pod, b *metric.Batch) {
	at := sample.Times[g]
	if sample.LastKnown&(1<<g) != 0 || sample.Reasons[g] != metric.Unjudged && sample.Reasons[g] != metric.Ambiguous {
		return
	}
	if sample.Rates[g].End != 0 || !counts(g, &sample.Values) { // a rate that the node measured, or a gauge
		if (g == metric.CPU || g == metric.Memory) && ca.clock-t.groups[g].read > ca.lastKnownFor(b) {
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
	e := entry{time: at, counters: read(g, &sample.Values)}
	if !sr.advances(at) {
		// The same reading again, or an older one: repeatLastKnown serves the last rate. If
		// there was none, the start may be credible by now.
		if at == sr.newest && g == metric.CPU && !sr.reset && !t.groups[g].hasNumbers() && ca.fromStart(t, pod, sample, &e, b) == metric.Measured {
			markMeasured(sample, g)
		}
		return
	}
	if startsAfterReading(&sample.Instance, at, b) {
		sr.reset = true
	}
	due := b.Interval
	if !received && !ca.timeIsSure(sr, at, b) {
		// It may be from before a step of the clock: no later reading is paired with it. A node
		// that reports its time shows when the readings after the step begin.
		sr.doubt, sr.unsure = at, b.NodeTime != 0
		if !sr.unsure {
			sr.newest, sr.since = at, ca.clock
		}
		lately := ca.steppedLately()
		if lately {
			sr.stepped, sr.reset = true, true // the start may also be from before it
		}
		if t.groups[g].hasNumbers() && (sr.n > 0 || ca.mayHold(t, g, sample, b)) {
			return // repeatLastKnown serves
		}
		reason := metric.FirstSample // it only came late
		if sr.stepped || b.NodeTime != 0 && at > b.NodeTime {
			reason = metric.ClockStep
		}
		if reason == metric.FirstSample && ca.age(at, received, b) > ca.lastKnownFor(b) {
			ca.rejectGroup(sample, g, metric.Stale, b, t) // it was old before it was first read
			return
		}
		if lately && sr.unsure {
			due = max(due, ca.stepped+ca.oldestReading()-ca.clock)
		}
		ca.rejectReading(sample, g, reason, due, metric.CounterReading{}, b)
		return
	}
	sr.unsure = false
	reason, other := metric.FirstSample, metric.CounterReading{}
	switch prev := sr.baseline(at, ca.target(b), ca.least(b)); {
	case prev != nil:
		if reason = ca.pair(g, sample, prev, &e, b, sr); reason != metric.Measured {
			other = metric.CounterReading{Time: prev.time, Start: t.instance.Start, Value: prev.counters[0]}
		}
	case sr.fell(&e):
		// The stored samples are too young to pair with, but they show that the counter fell.
		newest := sr.last()
		reason, other = metric.CounterReset, metric.CounterReading{Time: newest.time, Value: newest.counters[0]}
	case g == metric.CPU && !sr.reset:
		if reason = ca.fromStart(t, pod, sample, &e, b); reason == metric.TooYoung {
			due = ca.leastLife(&sample.Instance, b) - time.Duration(at-sample.Instance.Start)
		}
	}
	if reason == metric.FirstSample && sr.n > 0 {
		other.Time = sr.entries[0].time
	}
	switch reason {
	case metric.Measured:
		sr.stepped = false
	case metric.CounterReset, metric.Impossible:
		sr.forget()
	case metric.FirstSample:
		if sr.stepped {
			reason = metric.ClockStep
		}
	}
	since := sr.since
	sr.store(&e, ca.clock, ca.target(b))
	if reason == metric.ClockStep && t.groups[g].hasNumbers() && ca.mayHold(t, g, sample, b) {
		sr.since = since // of the last known value, which repeatLastKnown serves
		return
	}
	if reason == metric.Measured {
		markMeasured(sample, g)
		return
	}
	pair := sr.lacks(at, ca.least(b)) // until a reading can be paired with one that is stored
	if reason == metric.TooYoung {
		due = min(due, pair)
	} else {
		due = max(b.Interval, pair)
	}
	ca.rejectReading(sample, g, reason, due, other, b)
}

// rejectReading gives a group with a new reading its reason and verdict, which may change when
// due has passed. other is the reading it was compared with.
func (ca *Calculator) rejectReading(sample *metric.Sample, g metric.Group, reason metric.Reason, due time.Duration, other metric.CounterReading, b *metric.Batch) {
	if g == metric.Memory {
		// Gauges need no pair. Only the page fault rates are missing.
		markMeasured(sample, g)
		return
	}
	sample.Reasons[g] = reason
	verdict := metric.Verdict{Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: reason}
	verdict.Evidence.Got, verdict.Evidence.Other = readingOf(g, sample, sample.Times[g]), other
	verdict.Evidence.Limit = ca.needed(reason, &sample.Instance, b)
	if due > 0 {
		verdict.Evidence.Due = ca.now.UnixNano() + int64(due)
	}
	b.Verdicts = append(b.Verdicts, verdict)
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
