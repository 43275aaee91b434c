// Package identity decides which sample is the truth when a node reports one
// container twice: an old pod of the same name, an old run whose cgroup
// survived, one container under two cgroup paths, a pod that has moved to
// another node. Whatever is turned away keeps a verdict that names the rule and
// the rival.
//
// The rules, strongest first, are those of docs/architecture.md; each is one
// function in facts.go (what the API server says), start.go, pods.go or rules.go.
// What the API server says can reject a lone sample; the other rules only choose
// between rivals. A choice that nothing supports is
// made once, kept, and marked Ambiguous: it never alternates.
//
// # Lines
//
// /metrics/resource names neither pod UIDs nor container IDs. So identity keeps
// for each entity the lines it has seen: a line is one instance as its reports
// show it, recognised by ID, UID, path or start where the report has them, and
// else by its counter's going on. What was once learnt of a line, from a witness
// or when it was alone, is remembered with it, until its counter could as well
// have changed places with another's (mixed.go).
package identity

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Options configure a State. The zero Options is ready to use.
type Options struct {
	// Memory is how long a line that is no longer reported is remembered, and a
	// loser is turned away though its rival was not seen. Default: three
	// intervals of the source, at least 60 s.
	Memory time.Duration
	// WitnessEvery is the least time between two requests for a witness.
	// Default 30 s.
	WitnessEvery time.Duration
}

// State is what identity remembers of one source. It is not safe for
// concurrent use.
type State struct {
	options Options
	tracks  map[metric.Entity]*track
	now     time.Time     // of the last batch
	clock   time.Duration // since the first batch; stands still while reads fail
	round   uint32
	answers uint32 // rounds that gave something
	lastID  uint32 // of the newest line
	asked   time.Duration
	cores   float64 // of the node; 0 if unknown
	node    metric.NodeClock
	pasts   bool          // some track has a past
	stepped time.Duration // when the node's clock was last found to have stepped, by ours; negative if never

	// Of the batch in hand: its samples by entity.
	grouped *metric.Batch
	tracked []*track // the track of each sample's whole entity
	next    []int32  // the next sample of the same entity; -1 ends

	candidates []candidate
}

// track is what is remembered of one entity.
type track struct {
	round       uint32 // in which it was last reported
	first, last int32  // its samples in the batch in hand
	winner      int32  // index of the sample believed; -1 if none
	seen        time.Duration
	answer      uint32        // that reported it last
	latest      int64         // its newest time then
	guessed     bool          // no evidence chose the sample believed
	past        metric.PodUID // of a pod: one whose containers are older than another's
	known       bool          // the API server knew the pod in an earlier round
	unknown     time.Duration // since when it does not; negative if it does
	lines       []line
	chosen      uint32 // the line believed last; 0 if none
	moved       uint32 // the line that won by its counter's moving; 0 if none
}

// line is one instance of an entity as its reports show it.
type line struct {
	id       uint32
	instance metric.Instance // as reported, with what was learnt besides
	time     int64           // of the last new report, by the node's clock
	cpu      float64         // nanoseconds; negative if not reported
	rate     float64         // CPU nanoseconds per nanosecond, between the last two
	still    int             // new reports since the counter last moved
	seen     time.Duration
	shift    int64         // by how much the node's clock was put forward since it began
	first    uint32        // the answer it was first seen in
	answer   uint32        // and last
	since    int64         // when the answer before had its newest reading, if that did not have the line; else 0
	born     bool          // it cannot have begun long before that
	lost     metric.Reason // why it was turned away last; Measured if it was not
	lostTo   uint32
	rule     string
}

// candidate is a sample that may be the truth, with its line.
type candidate struct {
	sample int32
	line   int // index in track.lines
	out    bool
	fresh  bool   // the line is new
	mixed  bool   // it may as well be of another line
	stray  uint32 // that line, if no candidate has it
	heard  bool   // a witness says that the sample is the line's
}

// New returns the state for one source.
func New(o Options) *State {
	if o.WitnessEvery <= 0 {
		o.WitnessEvery = 30 * time.Second
	}
	return &State{options: o, tracks: map[metric.Entity]*track{}, asked: -o.WitnessEvery, stepped: -1}
}

// Process turns away every sample of b that is not the truth: it condemns it
// with a reason of metric.LayerIdentity and adds the verdict. Samples that stay
// get their Instance.Line, and what is known of their instance beyond the
// report. Groups that hold a kubelet's zeros for "could not read" become NoData.
func (s *State) Process(facts *metric.Facts, b *metric.Batch, now time.Time) {
	s.group(b, now)
	s.cores = facts.CoresOf(b)
	// A pod's own sample first: which UID lives decides on its containers.
	for _, pods := range [...]bool{true, false} {
		for i := range b.Samples {
			e := &b.Samples[i].Entity
			if e.Part != "" || limb(&b.Samples[i]) || (e.Kind == metric.Pod) != pods {
				continue
			}
			if t := s.tracked[i]; t.first == int32(i) {
				s.judge(t, facts, b)
			}
		}
	}
	for i := range b.Samples {
		if sample := &b.Samples[i]; sample.Entity.Part != "" || limb(sample) {
			s.judgePart(i, facts, b)
		}
	}
	s.join(b)
	s.forget(b)
	s.grouped = nil
}

// Doubts reports whether a witness is wanted: an entity is reported more than
// once, nothing in the report or in memory tells the reports apart, and none was
// asked for lately.
func (s *State) Doubts(_ *metric.Facts, b *metric.Batch, now time.Time) bool {
	s.group(b, now)
	if s.clock-s.asked < s.options.WitnessEvery {
		return false
	}
	for i := range b.Samples {
		t := s.tracked[i]
		if t.first != int32(i) || s.next[i] < 0 {
			continue
		}
		reports, nameless := 0, false
		for j := t.first; j >= 0; j = s.next[j] {
			in := &b.Samples[j].Instance
			reports, nameless = reports+1, nameless || in.UID == "" && in.ID == ""
		}
		named := 0
		for j := range t.lines {
			if t.lines[j].instance.UID != "" {
				named++
			}
		}
		if nameless && (named < reports || s.close(t)) {
			s.asked = s.clock
			return true
		}
	}
	return false
}

// group chains the samples of each entity, once for a batch.
func (s *State) group(b *metric.Batch, now time.Time) {
	if s.grouped == b && len(s.next) == len(b.Samples) {
		return
	}
	if s.now.IsZero() {
		s.now = now
	}
	if !b.Failed() {
		s.clock += now.Sub(s.now)
		s.answers++
	}
	s.now = now
	if s.node.Follow(b) {
		s.stepped = s.clock
		for _, t := range s.tracks {
			for i := range t.lines {
				t.lines[i].shift += int64(s.node.Jump)
			}
		}
	}
	s.grouped, s.round = b, s.round+1
	n := len(b.Samples)
	s.tracked = slices.Grow(s.tracked[:0], n)[:n]
	s.next = slices.Grow(s.next[:0], n)[:n]
	for i := range b.Samples {
		sample := &b.Samples[i]
		s.next[i] = -1
		t := s.tracks[sample.Entity.Whole()]
		if t == nil {
			t = &track{unknown: -1}
			s.tracks[sample.Entity.Whole()] = t
		}
		s.tracked[i] = t
		if t.round != s.round {
			t.round, t.first, t.last, t.winner, t.seen = s.round, -1, -1, -1, s.clock
		}
		if sample.Entity.Part != "" || limb(sample) {
			continue
		}
		if t.first < 0 {
			t.first = int32(i)
		} else {
			s.next[t.last] = int32(i)
		}
		t.last = int32(i)
	}
}

// judge decides between the samples of one entity.
func (s *State) judge(t *track, facts *metric.Facts, b *metric.Batch) {
	s.limit(t, b)
	s.match(t, b)
	s.mix(t, b)
	s.hear(t, b)
	s.blur(t, b)
	for _, c := range s.candidates {
		b.Samples[c.sample].Instance.Line = t.lines[c.line].id
	}
	unread := s.markUnread(t, b)
	s.applyFacts(t, facts, b)
	s.applyPod(b, t)
	s.applyPast(t, b)
	s.applyLife(t, b)
	s.applyViews(t, facts, b)
	s.applyStart(t, facts, b)
	ambiguous := s.choose(t, facts, b)
	t.answer, t.latest = s.answers, 0

	for i := range s.candidates {
		c := &s.candidates[i]
		sample, l := &b.Samples[c.sample], &t.lines[c.line]
		s.follow(l, sample)
		t.latest = max(t.latest, reportTime(sample))
		if sample.Instance.UID == "" {
			sample.Instance.UID = l.instance.UID
		}
		if c.out {
			continue
		}
		l.lost = metric.Measured
		if sample.Instance.Start == 0 {
			sample.Instance.Start, sample.Instance.Origin = l.instance.Start, l.instance.Origin
		}
		if (l.instance.UID == "" || l.instance.ID == "") && present(facts, sample, b.Clock) {
			// Its start is that of the present run: once the name passes to
			// another pod or run, this line is the old one's.
			pod := facts.Pod(sample.Entity.PodRef())
			l.instance.UID, l.instance.ID = pod.ReportedUID(), pod.Container(sample.Entity.Name).ID
		}
		t.chosen, t.winner = l.id, c.sample
		if ambiguous {
			for g := range sample.Times {
				if sample.Times[g] != 0 && sample.Reasons[g] == metric.Unjudged {
					sample.Reasons[g] = metric.Ambiguous
				}
			}
		}
	}
	if unread {
		s.reportUnread(t, b)
	}
}

// maxRivals bounds the samples of one entity that are weighed against each
// other. Nothing healthy reports three.
const maxRivals = 16

// limit turns away what lies beyond maxRivals, with one verdict.
func (s *State) limit(t *track, b *metric.Batch) {
	n := 0
	for i := t.first; i >= 0; i = s.next[i] {
		if n++; n < maxRivals {
			continue
		}
		extra := s.next[i]
		s.next[i] = -1
		if extra < 0 {
			return
		}
		e := b.Samples[extra].Entity
		for ; extra >= 0; extra = s.next[extra] {
			b.Samples[extra].Condemn(metric.Discontinuous)
		}
		b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: e, Group: metric.CPU, Reason: metric.OverLimit, Evidence: metric.Evidence{Limit: maxRivals}})
		return
	}
}

// memory returns how long unseen lines are remembered.
func (s *State) memory(b *metric.Batch) time.Duration {
	if s.options.Memory > 0 {
		return s.options.Memory
	}
	return max(3*b.Interval, time.Minute)
}

// forget drops entities and lines not seen for long. A failed read proves
// nothing, so it ages nothing.
func (s *State) forget(b *metric.Batch) {
	if b.Failed() {
		return
	}
	limit := s.memory(b)
	for e, t := range s.tracks {
		if s.clock-t.seen > limit {
			delete(s.tracks, e)
		}
	}
}

// condemn turns a candidate away.
func (s *State) condemn(t *track, c *candidate, b *metric.Batch, reason metric.Reason, evidence metric.Evidence) {
	sample, l := &b.Samples[c.sample], &t.lines[c.line]
	c.out = true
	sample.Condemn(reason)
	l.lost, l.rule = reason, evidence.Rule
	evidence.Got = sight(sample, l)
	for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
		b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: reason, Evidence: evidence})
	}
}

// sight returns what is known of a sample's instance, as evidence.
func sight(sample *metric.Sample, l *line) metric.Sight {
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	i := &l.instance
	return metric.Sight{Time: reportTime(sample), Start: i.Start, Value: cpu, UID: i.UID, ID: i.ID, Path: i.Path}
}

// reportTime returns when the sample was taken, by the node's clock.
func reportTime(s *metric.Sample) int64 {
	if t := s.Times[metric.CPU]; t != 0 {
		return t
	}
	return s.Times[metric.Memory]
}
