// Package rate turns counters into use: it pairs each sample with an earlier
// one of the same instance and sets the rate metrics, with the window really
// used. A rate that cannot be right is not served; the verdict says why.
//
// The rules are those of docs/architecture.md. In short: a pair is of one
// instance, at least ten seconds apart, and no node has more CPU time than its
// cores can give. A restart is not a reset, and a start time that jitters is
// neither. A missed scrape or a cached sample blanks nothing: the last numbers
// stand, with their old timestamps, until they are too old.
//
// instance.go decides what is one instance, series.go holds the samples pairs
// are made of, start.go measures young instances from their start, clock.go watches the node's clock, hold.go lets last numbers
// stand.
package rate

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Options configure a State. The zero Options is ready to use.
type Options struct {
	// MinWindow is the shortest window a rate is measured over. Default 10 s.
	MinWindow time.Duration
	// Hold is how long the last numbers stand in for missing ones. Default:
	// three intervals of the source, at least 60 s.
	Hold time.Duration
}

// State is what rate remembers of one source. It is not safe for concurrent
// use.
type State struct {
	options Options
	tracks  map[metric.Entity]*track
	epoch   time.Time
	now     time.Time
	clock   time.Duration // this round's now, since epoch
	round   uint32
	cores   cores
	node    metric.NodeClock
	answers int // rounds that gave something
	// By our clock, negative if never: when the node's clock was last found to have
	// stepped, and when a start was last reported other than before.
	stepped, wandered time.Duration
	scanned           uint32 // the round whose starts were last looked through
}

// track is what is remembered of one entity.
type track struct {
	instance metric.Instance
	round    uint32                          // in which it was last reported and believed
	seen     time.Duration                   // when that was
	read     [metric.NumGroups]time.Duration // when each group last had a new reading
	absent   int                             // rounds since, in which the node answered
	series   [metric.NumGroups]*series
	last     metric.Sample      // as it was last served
	steady   bool               // its start was the same in the report before
	pod      metric.PodUID      // the pod the API server named when it was last read
	run      metric.ContainerID // the run the API server named when it was last read
}

// New returns the state for one source.
func New(o Options) *State {
	if o.MinWindow <= 0 {
		o.MinWindow = 10 * time.Second
	}
	return &State{options: o, tracks: map[metric.Entity]*track{}, stepped: -1, wandered: -1}
}

// Process sets the rates of b's samples, gives each group its verdict, and adds
// the samples that stand in for missing ones. Samples that identity rejected are
// left alone.
func (s *State) Process(facts *metric.Facts, b *metric.Batch, now time.Time) {
	if s.epoch.IsZero() {
		s.epoch = now
	}
	s.now, s.clock, s.round = now, now.Sub(s.epoch), s.round+1
	s.cores.capacity = facts.CoresOf(b)
	if !b.Failed() {
		s.answers++
	}
	if s.clockStepped(b) {
		s.stepped = s.clock
		for _, t := range s.tracks { // what this batch misses, too
			t.distrust()
		}
	}
	for i := range b.Samples {
		sample := &b.Samples[i]
		if sample.Rejected() {
			s.disown(sample)
			continue
		}
		t := s.tracks[sample.Entity]
		if t == nil {
			t = &track{}
			s.tracks[sample.Entity] = t
		}
		if t.round == s.round {
			// A second report of an entity identity has no opinion of: a part
			// reported twice. The first stands.
			sample.Condemn(metric.Discontinuous)
			continue
		}
		fresh := t.round == 0
		t.round, t.seen, t.absent = s.round, s.clock, 0
		for g, at := range sample.Times {
			if at != 0 && at != t.last.Times[g] && sample.Reasons[g] != metric.NoData {
				t.read[g] = s.clock
			}
		}
		life := continues
		if !fresh {
			life = s.compare(t, sample)
		}
		pod := podOf(facts, &sample.Entity)
		if !fresh && t.pod != "" && pod != "" && t.pod != pod {
			life = begins
		}
		if run := runOf(facts, sample); !fresh && t.run != "" && run != "" && t.run != run && t.endsBefore(facts, sample) {
			life = begins
		}
		if life == begins {
			doubtful := t.doubtful(facts, sample, b)
			t.clear()
			if doubtful {
				t.startAfresh()
			}
		}
		t.steady = life == continues && steady(&t.instance, &sample.Instance, sample)
		s.noteStart(t, sample)
		t.follow(facts, sample, pod)
		for g := range metric.NumGroups {
			s.measure(t, metric.Group(g), sample, facts, b)
		}
		s.standIn(t, sample, b)
		t.last.CopyFrom(sample)
	}
	s.addMissing(facts, b)
}

// disown forgets what it holds of an entity if identity has now found that very
// line to be another's: what would stand in is what was turned away.
func (s *State) disown(rejected *metric.Sample) {
	t := s.tracks[rejected.Entity]
	if t == nil || t.round == s.round || t.instance.Line == 0 || t.instance.Line != rejected.Instance.Line {
		return
	}
	switch rejected.Reasons[metric.CPU] {
	case metric.OtherNode, metric.OldPod, metric.OldContainer, metric.OlderStart:
		delete(s.tracks, rejected.Entity)
	}
}

// follow notes whose numbers t holds from now on. A sandbox that was replaced
// takes its network counters along.
func (t *track) follow(facts *metric.Facts, sample *metric.Sample, pod metric.PodUID) {
	if was, is := t.instance.Sandbox, sample.Instance.Sandbox; was != "" && is != "" && was != is && t.series[metric.Network] != nil {
		*t.series[metric.Network] = series{}
	}
	t.instance = sample.Instance
	if pod != "" {
		t.pod = pod
	}
	if run := runOf(facts, sample); run != "" {
		t.run = run
	}
}

// measure sets the rates and the verdict of one group of a sample.
func (s *State) measure(t *track, g metric.Group, sample *metric.Sample, facts *metric.Facts, b *metric.Batch) {
	at := sample.Times[g]
	if at == 0 || sample.Held&(1<<g) != 0 || sample.Reasons[g] != metric.Unjudged && sample.Reasons[g] != metric.Ambiguous {
		return
	}
	if !counts(g, &sample.Values) || sample.Rates[g].End != 0 { // a gauge, or a rate the node gave
		if (g == metric.CPU || g == metric.Memory) && s.clock-t.read[g] > s.hold(b) {
			s.refuse(sample, g, metric.Stale, b, t)
			return
		}
		settle(sample, g)
		return
	}
	sr := t.series[g]
	if sr == nil {
		sr = &series{}
		t.series[g] = sr
	}
	received := sample.Received&(1<<g) != 0
	if sr.received != received {
		sr.entries, sr.received = sr.entries[:0], received
	}
	if !sr.advances(at) {
		// The same reading again, or an older one: standIn serves the last rate. If
		// there was none, its start may have become credible.
		e := entry{time: at, counters: read(g, &sample.Values)}
		if at == sr.newest && g == metric.CPU && !sr.reset && !t.last.Numbered(g) && s.fromStart(t, facts, sample, e, b, new(metric.Evidence)) == metric.Measured {
			settle(sample, g)
		}
		return
	}
	e := entry{time: at, counters: read(g, &sample.Values)}
	verdict := metric.Verdict{Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: metric.FirstSample}
	verdict.Evidence.Got = sight(g, sample, at)
	if due := max(b.Interval, sr.lacks(at, s.least(b))); due > 0 {
		verdict.Evidence.Due = s.now.UnixNano() + int64(due)
	}

	sure := received || s.dated(sr, at, b)
	sr.unsure = false
	prev, ok := sr.baseline(at, s.target(b), s.least(b))
	switch {
	case !sure: // it may be from before a step of the clock: no later one is paired with it
		if sr.stepped {
			verdict.Reason = metric.ClockStep
		}
		sr.doubt, sr.newest, sr.since = at, at, s.clock
		s.refuseNew(sample, g, verdict, b)
		return
	case ok:
		verdict.Evidence.Other = metric.Sight{Time: prev.time, Start: t.instance.Start, Value: prev.counters[0]}
		verdict.Reason = s.pair(g, sample, prev, e, b, sr)
	case sr.fell(e):
		// The samples in store are too young to pair with, but a fall shows.
		newest := sr.entries[len(sr.entries)-1]
		verdict.Reason = metric.CounterReset
		verdict.Evidence.Other = metric.Sight{Time: newest.time, Value: newest.counters[0]}
	case g == metric.CPU && !sr.reset:
		verdict.Reason = s.fromStart(t, facts, sample, e, b, &verdict.Evidence)
	}
	switch verdict.Reason {
	case metric.Measured:
		sr.store(e, s.clock, s.target(b))
		sr.stepped = false
		settle(sample, g)
		return
	case metric.CounterReset, metric.Impossible:
		sr.forget()
	case metric.FirstSample:
		if sr.stepped {
			verdict.Reason = metric.ClockStep
		}
	}
	sr.store(e, s.clock, s.target(b))
	s.refuseNew(sample, g, verdict, b)
}

// refuseNew gives a group of a sample that holds a new reading its verdict.
func (s *State) refuseNew(sample *metric.Sample, g metric.Group, verdict metric.Verdict, b *metric.Batch) {
	if g == metric.Memory {
		// Gauges need no pair: only the fault rates are missing.
		settle(sample, g)
		return
	}
	sample.Reasons[g] = verdict.Reason
	b.Verdicts = append(b.Verdicts, verdict)
}
