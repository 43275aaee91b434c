// Package identity decides which sample is the living instance when a node reports one
// container twice: an old pod of the same name, an old run whose cgroup survived, one container
// under two cgroup paths, a pod that has moved to another node. A rejected sample keeps a
// verdict that names the rule and the sample that was preferred.
//
// README.md lists the rules, strongest first. Each rule is one function in facts.go (what the
// API server says), start.go, pods.go or rules.go. What the API server says can reject a lone
// sample; the other rules only choose between several candidates. A choice without evidence is
// made once, kept and marked Ambiguous: it never alternates.
//
// # Lines
//
// /metrics/resource names neither pod UIDs nor container IDs. So identity keeps the lines of
// each entity. A line is one instance as its reports show it. It is recognised by ID, UID, path
// or start where the report has them, else by a counter that continues. What a second read or
// the API server said about a line stays with the line, until its counter and another one may
// have changed places (swapped.go).
package identity

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Options configure an Identifier. The zero Options is ready to use.
type Options struct {
	// RememberFor is how long a line is remembered that is no longer reported. For as long, a
	// sample that lost to it stays rejected. Default: three intervals of the source, at least
	// 60 s.
	RememberFor time.Duration
	// CrossCheckEvery is the least time between two requests for a second read.
	// Default 30 s.
	CrossCheckEvery time.Duration
}

// Identifier decides which sample is the living instance of each entity of one source. Its
// state is kept by slot. It is not safe for concurrent use.
type Identifier struct {
	options        Options
	now            time.Time     // of the last batch
	clock          time.Duration // since the first batch; it stops while reads fail
	lastAnswer     time.Duration // clock at the previous answer
	lastAnswerAt   int64         // when the previous answer came, by our clock
	answers        uint32        // reads that succeeded
	lastID         uint32        // of the newest line
	lastCrossCheck time.Duration
	cores          float64 // of the node; 0 if unknown
	node           metric.NodeClock
	hasOldPods     bool          // a track has oldPods
	clockStepped   time.Duration // clock when the node's clock last stepped; negative if never
	drift          bool          // the readings of the last answer may be from before that step

	memory
	grouping

	candidates []candidate
}

// candidate is a sample that may be the living instance, with its line.
type candidate struct {
	sample       int32
	line         int // index in track.lines
	rejected     bool
	newLine      bool               // the line is new
	swapped      bool               // it could continue another line as well
	missingLine  uint32             // that line, if no candidate has it
	first        uint32             // if swapped: the first answer that reported the newest line it may be
	crossChecked bool               // a second read says that the sample is the line's
	run          *cluster.Container // the present run by the API server, if the sample is of it
}

// New returns the state for one source.
func New(o Options) *Identifier {
	if o.CrossCheckEvery <= 0 {
		o.CrossCheckEvery = 30 * time.Second
	}
	return &Identifier{options: o, lastCrossCheck: -o.CrossCheckEvery, clockStepped: -1}
}

// Process rejects every sample of b that is not the living instance, with a reason of
// metric.LayerIdentity, and adds the verdict. A sample that remains gets its Instance.Line and
// what is known of its instance beyond the report. A group where a kubelet wrote 0 for what it
// could not read gets the reason NoData.
func (s *Identifier) Process(facts *cluster.Facts, b *metric.Batch, now time.Time) {
	s.groupSamples(b, now)
	s.pods.Resolve(facts, b)
	s.cores = facts.CoresOf(b)
	// Pods come first: the UID that is chosen for a pod decides about its containers.
	for _, pods := range [...]bool{true, false} {
		for i := range b.Samples {
			if (b.Samples[i].Entity.Kind == metric.Pod) != pods || !s.leads(b, i) {
				continue
			}
			if s.alone(i) && s.judgeUnchanged(i, facts, b) {
				continue
			}
			s.judgeEntity(i, facts, b)
		}
	}
	if s.chained {
		for i := range b.Samples {
			if followsAnother(&b.Samples[i]) {
				s.judgePart(i, facts, b)
			}
		}
		s.mergePartialSamples(b)
	}
	if !b.Failed() {
		s.lastAnswer, s.lastAnswerAt = s.clock, now.UnixNano()
		s.forget(b, s.clock-s.rememberFor(b), s.answers)
		s.forgetOldPods(b)
	}
	s.batch = nil
}

// NeedsCrossCheck reports whether a second read is wanted: an entity is reported more than
// once, neither the report nor earlier rounds distinguish the samples, and the last second read
// was at least CrossCheckEvery ago.
func (s *Identifier) NeedsCrossCheck(_ *cluster.Facts, b *metric.Batch, now time.Time) bool {
	s.groupSamples(b, now)
	if !s.chained || s.clock-s.lastCrossCheck < s.options.CrossCheckEvery {
		return false
	}
	for i := range b.Samples {
		if !s.leads(b, i) || s.next[i] < 0 {
			continue
		}
		reports, nameless := 0, false
		for j := int32(i); j >= 0; j = s.next[j] {
			in := &b.Samples[j].Instance
			reports, nameless = reports+1, nameless || in.UID == "" && in.ID == ""
		}
		t, named := s.open(trackOf(b, i), s.lastAnswer, s.answers-1), 0
		for j := range t.lines {
			if t.lines[j].uid != "" {
				named++
			}
		}
		if nameless && (named < reports || s.close(t)) {
			s.lastCrossCheck = s.clock
			return true
		}
	}
	return false
}

// judgeEntity decides between the samples of one entity.
func (s *Identifier) judgeEntity(i int, facts *cluster.Facts, b *metric.Batch) {
	k := trackOf(b, i)
	t := s.open(k, s.lastAnswer, s.answers-1)
	t.first = int32(i)
	s.limitDuplicates(t, b)
	s.match(t, facts, b)
	s.markSwapped(t, b)
	s.applyCrossCheck(t, b)
	s.separateSwapped(t, b)
	s.joinPaths(t, b)
	for _, c := range s.candidates {
		b.Samples[c.sample].Instance.Line = t.lines[c.line].number()
	}
	unread := s.markUnread(b)
	s.applyFacts(t, facts, b)
	s.applyPod(b, t)
	s.applyOldPods(t, facts, b)
	s.applyLife(t, b)
	s.applyViews(t, facts, b)
	s.applyStart(t, facts, b)
	ambiguous := s.choose(t, facts, b)
	t.answer, t.latest, t.unread = s.answers, 0, false

	for ci := range s.candidates {
		c := &s.candidates[ci]
		sample, l := &b.Samples[c.sample], &t.lines[c.line]
		if !c.rejected && l.id != t.chosen && !s.alternates(t, l, sample) {
			s.addBaseline(c.sample, l, b)
		}
		s.follow(t, l, sample)
		t.latest, t.unread = max(t.latest, reportTime(sample)), t.unread || l.cpu < 0
		if sample.Instance.UID == "" {
			sample.Instance.UID = l.uid
		}
		if c.rejected {
			continue
		}
		l.lost = metric.Measured
		if sample.Instance.Start == 0 {
			sample.Instance.Start, sample.Instance.Origin = l.start, l.origin
		}
		l.learnNames(facts, b, int(c.sample))
		t.chosen = l.id
		if s.chained {
			s.winner[k] = c.sample
		}
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
	s.shut(k, s.answers)
}

// alternates reports whether the line, which is reported alone, takes turns with the line that was
// chosen before, and their counters differ. They may be two cgroups of one container, and nothing
// says which is its own.
func (s *Identifier) alternates(t *track, l *line, sample *metric.Sample) bool {
	if len(s.candidates) > 1 || l.lost != metric.Measured {
		return false
	}
	before := t.chosenLine()
	if before == nil {
		return false
	}
	_, ok := s.couldContinue(before, sample)
	return !ok
}

// addBaseline adds the line's reading of an earlier answer to b. Rate followed another line until
// now. A reading from about when the node's clock stepped is not added.
func (s *Identifier) addBaseline(sample int32, l *line, b *metric.Batch) {
	stepped := s.clockStepped >= 0 && l.seen-s.clockStepped <= steppedReadings
	if l.cpu >= 0 && l.time != 0 && !stepped {
		b.Baselines = append(b.Baselines, metric.Baseline{Sample: sample, Time: l.time, CPU: l.cpu})
	}
}

// maxDuplicates is the largest number of samples of one entity that are compared with each
// other. A healthy node does not report three.
const maxDuplicates = 16

// limitDuplicates rejects the samples beyond maxDuplicates, with one verdict.
func (s *Identifier) limitDuplicates(t *track, b *metric.Batch) {
	n := 0
	for i := t.first; i >= 0; i = s.after(i) {
		if n++; n < maxDuplicates {
			continue
		}
		extra := s.after(i)
		if extra < 0 {
			return
		}
		s.next[i] = -1
		e := b.Samples[extra].Entity
		for ; extra >= 0; extra = s.next[extra] {
			b.Samples[extra].Reject(metric.Discontinuous)
		}
		b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: e, Group: metric.CPU, Reason: metric.OverLimit, Evidence: metric.Evidence{Limit: maxDuplicates}})
		return
	}
}

// rememberFor returns how long lines are remembered that are not reported.
func (s *Identifier) rememberFor(b *metric.Batch) time.Duration {
	if s.options.RememberFor > 0 {
		return s.options.RememberFor
	}
	return max(3*b.Interval, time.Minute)
}

// reject rejects a candidate and adds its verdicts for CPU and memory.
func (s *Identifier) reject(t *track, c *candidate, b *metric.Batch, reason metric.Reason, evidence metric.Evidence) {
	sample, l := &b.Samples[c.sample], &t.lines[c.line]
	c.rejected = true
	sample.Reject(reason)
	l.lost, l.rule = reason, evidence.Rule
	evidence.Got = readingOf(sample, l)
	for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
		b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: sample.Entity, Instance: sample.Instance, Group: g, Reason: reason, Evidence: evidence})
	}
}

// readingOf returns what is known of a sample's instance, as evidence of a verdict.
func readingOf(sample *metric.Sample, l *line) metric.CounterReading {
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	return metric.CounterReading{Time: reportTime(sample), Start: l.start, Value: cpu, UID: l.uid, ID: l.container, Path: l.path}
}

// reportTime returns when the sample was taken, by the node's clock: the time of CPU, else of
// memory.
func reportTime(s *metric.Sample) int64 {
	if t := s.Times[metric.CPU]; t != 0 {
		return t
	}
	return s.Times[metric.Memory]
}
