// Package identity decides which sample is the living instance when a node reports one
// container twice: an old pod of the same name, an old run whose cgroup survived, one container
// under two cgroup paths, a pod that has moved to another node. A rejected sample keeps a
// verdict that names the rule and the sample that was preferred.
//
// README.md lists the rules, strongest first, as the tables factRules (facts.go: what the API server
// reports, even against a lone sample) and pairRules (rules.go: between two candidates) have them.
// A choice without evidence (choose.go) is made once, kept and marked Ambiguous: it never alternates.
// Times of starts are compared by package run.
//
//   - batch.go: the samples of one entity; identity.go: the steps of its judgement
//   - tracks.go: what is remembered of an entity; unchanged.go: the fast path
//   - lines.go: which sample continues which line; swapped.go and crosscheck.go: where that is in doubt
//   - facts.go, rules.go, paths.go, choose.go: the rules
//   - pods.go: what a pod and its containers show of each other; partial.go: samples without CPU and memory
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
	"github.com/weir-metrics/weir/metric/run"
)

// crossCheckEvery is the least time between two requests for a second read.
const crossCheckEvery = 30 * time.Second

// Identifier decides which sample is the living instance of each entity of one source. Its
// state is kept by slot. It is not safe for concurrent use.
type Identifier struct {
	now            time.Time     // of the last batch
	clock          time.Duration // since the first batch; it stops while reads fail
	lastAnswer     time.Duration // clock at the previous answer
	lastAnswerAt   int64         // when the previous answer came, by our clock
	answers        uint32        // reads that succeeded
	lastID         uint32        // of the newest line
	lastCrossCheck time.Duration
	limits         run.Limits // of the node and the endpoint
	node           metric.NodeClock
	hasOldPods     bool          // a track has oldPods
	clockStepped   time.Duration // clock when the node's clock last stepped; negative if never
	drift          bool          // the readings of the last answer may be from before that step

	memory
	grouping

	facts      *cluster.Facts
	factsAt    int64 // when they were learnt, by our clock
	subject          // the entity that is judged now
	seen       seen  // its sample that is compared with the facts now
	candidates []candidate
}

// candidate is a sample that may be the living instance, with its line.
type candidate struct {
	sample   int32
	line     int // index in track.lines; -1 until it has one
	rejected bool
	present  bool // its report shows that it is the present run that the API server names
	match    match
	// If match is swapped; else both are 0:
	firstAnswer uint32 // the first answer that reported the newest line that the candidate may be
	missingLine uint32 // the other line, if no candidate has it
}

// match is what connects a candidate with its line.
type match uint8

const (
	assigned match = iota // the least cost; or nothing fits, and the line is new
	swapped               // the candidate could continue another line as well
	named                 // a second read reports that the sample is the line's
)

// New returns the state for one source.
func New() *Identifier {
	return &Identifier{lastCrossCheck: -crossCheckEvery, clockStepped: -1}
}

// Process rejects every sample of b that is not the living instance, with a reason of
// metric.LayerIdentity, and adds the verdict. A sample that remains gets its Instance.Line and
// what is known of its instance beyond the report. A group where a kubelet wrote 0 for what it
// could not read gets the reason NoData.
func (identifier *Identifier) Process(facts *cluster.Facts, b *metric.Batch, now time.Time) {
	identifier.groupSamples(b, now)
	identifier.pods.Resolve(facts, b)
	if identifier.facts = facts; facts != nil {
		identifier.factsAt = identifier.node.OurTime(facts.At)
	}
	identifier.limits = run.Limits{Resolution: b.Resolution, Cores: facts.CoresOf(b), Now: identifier.node.Latest(now)}
	// Pods come first: the UID that is chosen for a pod decides about its containers.
	for _, pods := range [...]bool{true, false} {
		for i := range b.Samples {
			if (b.Samples[i].Entity.Kind == metric.Pod) == pods && identifier.leads(b, i) && !(identifier.alone(i) && identifier.judgeUnchanged(i)) {
				identifier.judgeEntity(i)
			}
		}
	}
	if identifier.chained {
		for i := range b.Samples {
			if followsAnother(&b.Samples[i]) {
				identifier.judgePart(i)
			}
		}
		identifier.mergePartialSamples(b)
	}
	if !b.Failed() {
		identifier.lastAnswer, identifier.lastAnswerAt = identifier.clock, identifier.node.OurTime(now)
		identifier.forget(b, identifier.clock-identifier.rememberFor(), identifier.answers)
		identifier.forgetOldPods(b)
	}
	identifier.batch, identifier.facts, identifier.subject, identifier.seen = nil, nil, subject{}, seen{}
}

// NeedsCrossCheck reports whether a second read is wanted: an entity is reported more than
// once, neither the report nor earlier rounds distinguish the samples, and the last second read
// was at least crossCheckEvery ago.
func (identifier *Identifier) NeedsCrossCheck(_ *cluster.Facts, b *metric.Batch, now time.Time) bool {
	identifier.groupSamples(b, now)
	if !identifier.chained || identifier.clock-identifier.lastCrossCheck < crossCheckEvery {
		return false
	}
	for i := range b.Samples {
		if !identifier.leads(b, i) || identifier.next[i] < 0 {
			continue
		}
		reports, nameless := 0, false
		for j := int32(i); j >= 0; j = identifier.next[j] {
			in := &b.Samples[j].Instance
			reports, nameless = reports+1, nameless || in.UID == "" && in.ID == ""
		}
		t, named := identifier.open(trackOf(b, i), identifier.lastAnswer, identifier.answers-1), 0
		for j := range t.lines {
			if t.lines[j].uid != "" {
				named++
			}
		}
		if nameless && (named < reports || identifier.isClose(t)) {
			identifier.lastCrossCheck = identifier.clock
			return true
		}
	}
	return false
}

// judgeEntity decides between the samples of one entity.
func (identifier *Identifier) judgeEntity(i int) {
	k := trackOf(identifier.batch, i)
	identifier.setSubject(i, identifier.open(k, identifier.lastAnswer, identifier.answers-1))
	identifier.t.firstSample = int32(i)
	identifier.limitDuplicates()
	identifier.match()
	identifier.markSwapped()
	identifier.applyCrossCheck()
	identifier.separateSwapped()
	identifier.joinPaths()
	for ci := range identifier.candidates {
		c := &identifier.candidates[ci]
		identifier.sample(c).Instance.Line = identifier.line(c).number()
	}
	unread := identifier.markUnread()
	identifier.applyFacts()
	identifier.applyPairRules()
	ambiguous := identifier.choose()
	identifier.t.answer, identifier.t.latest, identifier.t.unread = identifier.answers, 0, false
	for ci := range identifier.candidates {
		c := &identifier.candidates[ci]
		sample, l := identifier.sample(c), identifier.line(c)
		if !c.rejected && l.id != identifier.t.chosen && !identifier.alternates(l, sample) {
			identifier.addBaseline(c.sample, l)
		}
		identifier.follow(l, sample)
		identifier.t.latest, identifier.t.unread = max(identifier.t.latest, reportTime(sample)), identifier.t.unread || l.cpu < 0
		if sample.Instance.UID == "" {
			sample.Instance.UID = l.uid
		}
		if !c.rejected {
			identifier.accept(c, k, ambiguous)
		}
	}
	if unread {
		identifier.reportUnread()
	}
	identifier.shut(k, identifier.answers)
}

// accept makes a candidate the living instance of its entity, which has track k.
func (identifier *Identifier) accept(c *candidate, k int, ambiguous bool) {
	sample, l := identifier.sample(c), identifier.line(c)
	l.lost = metric.Measured
	if sample.Instance.Start == 0 {
		sample.Instance.Start, sample.Instance.Origin = l.start, l.origin
	}
	identifier.learnNames(&l.core, &sample.Instance)
	identifier.t.chosen = l.id
	if identifier.chained {
		identifier.winner[k] = c.sample
	}
	for g := range sample.Times {
		if ambiguous && sample.Times[g] != 0 && sample.Reasons[g] == metric.Unjudged {
			sample.Reasons[g] = metric.Ambiguous
		}
	}
}

// line returns the line of a candidate that has one.
func (identifier *Identifier) line(c *candidate) *line { return &identifier.t.lines[c.line] }

// sample returns the sample of a candidate.
func (identifier *Identifier) sample(c *candidate) *metric.Sample {
	return &identifier.batch.Samples[c.sample]
}

// alternates reports whether the line, which is reported alone, takes turns with the line that was
// chosen before, and their counters differ. They may be two cgroups of one container, and nothing
// shows which is its own.
func (identifier *Identifier) alternates(l *line, sample *metric.Sample) bool {
	if len(identifier.candidates) > 1 || l.lost != metric.Measured {
		return false
	}
	before := identifier.t.chosenLine()
	if before == nil {
		return false
	}
	_, ok := identifier.couldContinue(before, sample)
	return !ok
}

// addBaseline adds the line's reading of an earlier answer to the batch. Rate followed another line
// until now. A reading from about when the node's clock stepped is not added, nor one of a cgroup that
// had no processes then.
func (identifier *Identifier) addBaseline(sample int32, l *line) {
	stepped := identifier.clockStepped >= 0 && l.seen-identifier.clockStepped <= run.OldReading
	if l.cpu >= 0 && l.time != 0 && !stepped && l.lost != metric.DeadCgroup {
		identifier.batch.Baselines = append(identifier.batch.Baselines, metric.Baseline{Sample: sample, Time: l.time, CPU: l.cpu})
	}
}

// maxDuplicates is the largest number of samples of one entity that are compared with each
// other. A healthy node does not report three.
const maxDuplicates = 16

// limitDuplicates rejects the samples beyond maxDuplicates, with one verdict.
func (identifier *Identifier) limitDuplicates() {
	last := identifier.t.firstSample
	for n := 1; n < maxDuplicates && last >= 0; n++ {
		last = identifier.after(last)
	}
	if last < 0 || identifier.after(last) < 0 {
		return
	}
	extra := identifier.after(last)
	identifier.next[last] = -1
	identifier.addVerdict(&metric.Sample{Entity: identifier.batch.Samples[extra].Entity}, metric.CPU, metric.OverLimit, metric.Evidence{Limit: maxDuplicates})
	for ; extra >= 0; extra = identifier.next[extra] {
		identifier.batch.Samples[extra].Reject(metric.Discontinuous)
	}
}

// rememberFor returns how long a line is remembered that is not reported. For as long, a sample that lost to it stays
// rejected.
func (identifier *Identifier) rememberFor() time.Duration {
	return metric.LastKnownFor(identifier.batch.Interval)
}

// reportTime returns when the sample was taken, by the node's clock: the time of CPU, else of
// memory.
func reportTime(s *metric.Sample) int64 {
	if t := s.Times[metric.CPU]; t != 0 {
		return t
	}
	return s.Times[metric.Memory]
}
