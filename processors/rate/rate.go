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
// between rounds. instance.go decides what is one instance, measure.go what one reading shows,
// series.go stores the readings that are paired, start.go measures young instances from their start, clock.go detects steps of the
// node's clock, lastknown.go repeats last known values.
package rate

import (
	"cmp"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// minWindow is the shortest window over which a rate is measured.
const minWindow = 10 * time.Second

// Options configure a Calculator. The zero Options is ready to use.
type Options struct {
	// CoarseWindow is the shortest window where times are cut to whole seconds. A rate can be
	// wrong by a second of its window: by 3% at the default 30 s, by 10% at 10 s. It is at least
	// minWindow.
	CoarseWindow time.Duration
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
	o.CoarseWindow = max(cmp.Or(max(o.CoarseWindow, 0), 30*time.Second), minWindow)
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
	ca.recordNewReadings(t, sample, b)
	if uid := sample.Instance.UID; pod != nil && uid != "" && !pod.HasUID(uid) {
		pod = nil // the API server does not name the sample's pod yet
	}
	run := presentRun(pod, sample)
	same := t.isNew || ca.continues(t, pod, run, sample, b)
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

// recordNewReadings records when each group last had a new reading, by our clock. The first reading
// of a group may have been old when it came.
func (ca *Calculator) recordNewReadings(t *track, sample *metric.Sample, b *metric.Batch) {
	for g, at := range sample.Times {
		if at == 0 || at == t.groups[g].time || sample.Reasons[g] == metric.NoData {
			continue
		}
		t.groups[g].read = ca.clock
		if t.used&(1<<g) == 0 {
			t.groups[g].read -= ca.age(at, sample.Received&(1<<g) != 0, b)
		}
	}
}

// continues reports whether sample is of the instance that t follows, which was reported before. run
// is the present run by the API server; nil if unknown.
func (ca *Calculator) continues(t *track, pod *cluster.Pod, run *cluster.Container, sample *metric.Sample, b *metric.Batch) bool {
	if !ca.isSameInstance(t, sample, b) {
		return false
	}
	if uid := sample.Instance.UID; pod != nil && (uid == "" || uid != t.instance.UID) && t.isOfEarlierPod(pod) {
		return false
	}
	return run == nil || !t.isOfEarlierRun(run) || !t.endsBefore(run)
}
