package identity

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// match fills s.candidates with the samples of t and assigns each one to a line. A sample that
// fits no line begins a new one.
func (s *Identifier) match(t *track, facts *cluster.Facts, b *metric.Batch) {
	s.candidates = s.candidates[:0]
	for i := t.first; i >= 0; i = s.after(i) {
		s.candidates = append(s.candidates, candidate{sample: i, line: -1})
		if factsCover(facts, &b.Samples[i].Entity) {
			s.candidates[len(s.candidates)-1].run = presentRun(facts, b, int(i))
		}
	}
	pod := s.podLine(b, t.first)
	// Fast path: one sample continues the only line.
	if len(s.candidates) == 1 && len(t.lines) == 1 && !t.lines[0].precedes(pod) {
		if _, ok := s.fits(&t.lines[0], &b.Samples[t.first]); ok && !replaces(s.candidates[0].run, b.Samples[t.first].Instance.Start, &t.lines[0].core) {
			s.candidates[0].line = 0
			return
		}
	}
	limit, kept := s.rememberFor(b), s.newerThanLast(t, b)
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool { return s.clock-l.seen > limit && (l.id != kept || l.seen < 0) })
	remembered, continued := len(t.lines) > 0, false
	for { // there are seldom more than two samples and two lines
		c, l := s.bestPair(t, b, pod)
		if c < 0 {
			break
		}
		s.candidates[c].line, continued = l, true
	}
	for ci := range s.candidates {
		c := &s.candidates[ci]
		if c.line >= 0 {
			continue
		}
		sample := &b.Samples[c.sample]
		s.startLine(t, c, sample)
		l := &t.lines[c.line]
		l.renewed = remembered && !continued
		if l.born = s.newborn(t, sample, 0); sample.Instance.Start == 0 && s.answers > 1 {
			l.appearedAfter = s.lastAnswerAt
		}
		if unreadCPU(sample) && t.answer+1 == s.answers && !t.unread {
			l.unreadSince = t.latest // its first counter may tell
		}
	}
}

// bestPair returns the candidate without a line and the line without a candidate that fit best, or -1
// if none fit.
func (s *Identifier) bestPair(t *track, b *metric.Batch, pod *core) (bestCandidate, bestLine int) {
	bestCost := math.Inf(1)
	bestCandidate, bestLine = -1, -1
	for ci := range s.candidates {
		if s.candidates[ci].line >= 0 {
			continue
		}
		sample := &b.Samples[s.candidates[ci].sample]
		for li := range t.lines {
			l := &t.lines[li]
			if s.taken(li) || replaces(s.candidates[ci].run, sample.Instance.Start, &l.core) || l.precedes(pod) || s.isRatherNew(t, l, sample) {
				continue
			}
			cost, ok := s.fits(l, sample)
			if l.answer+1 != s.answers {
				cost += absentPenalty
			}
			if ok && (cost < bestCost || cost == bestCost && l.id == t.chosen) {
				bestCost, bestCandidate, bestLine = cost, ci, li
			}
		}
	}
	return bestCandidate, bestLine
}

// startLine gives a candidate a line of its own.
func (s *Identifier) startLine(t *track, c *candidate, sample *metric.Sample) {
	s.lastID++
	t.lines = append(t.lines, lineOf(s.lastID, sample, s.clock, s.answers))
	c.line, c.newLine = len(t.lines)-1, true
}

// unreadCPU reports whether a sample has no CPU counter, or a 0, which may mean that the kubelet
// could not read it.
func unreadCPU(sample *metric.Sample) bool {
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	return !reported || cpu == 0
}

// newborn reports whether a sample that continues no line began after the previous answer: that
// answer reported the entity without this sample, and the sample's counter is no larger than
// what the node's cores can have used since. A line in that answer whose counter was never read
// may have been this one. late is by how much the previous answer may have been late, which only
// matters across a step of the node's clock.
func (s *Identifier) newborn(t *track, sample *metric.Sample, late time.Duration) bool {
	cpu, ok := sample.Values.Get(metric.CPUUsage)
	since := reportTime(sample) - t.latest
	if s.drift {
		since = s.now.UnixNano() - s.lastAnswerAt + int64(late) // times across a step cannot be compared
	}
	return ok && cpu > 0 && !t.unread && t.latest != 0 && t.answer+1 == s.answers && s.cores > 0 && since > 0 && cpu <= s.cores*float64(since)
}

// isRatherNew reports whether a sample without a name or start is more likely a new instance than
// the line's next report: two answers lacked the line, and the sample can have begun since the
// previous one.
func (s *Identifier) isRatherNew(t *track, l *line, sample *metric.Sample) bool {
	return s.answers-l.answer > 2 && nameless(sample) && !l.repeats(sample) && s.newborn(t, sample, 0)
}

// replaces reports whether a sample with this start is of the present run, by the API server, and
// the line is known to be another run. run is nil if the sample is of no present run.
func replaces(run *cluster.Container, start int64, l *core) bool {
	if run == nil || run.ID == "" || l.container == "" || l.container == run.ID || start > run.StartedAt.Add(startSlack).UnixNano() {
		return false
	}
	other := l.start
	if last := run.LastStartedAt(); !last.IsZero() {
		other = last.UnixNano() // the line may have its name from that run, and its start from this one
	}
	return other == 0 || apart(start, other) > apart(start, run.StartedAt.UnixNano())
}

// taken reports whether a candidate has the line.
func (s *Identifier) taken(line int) bool {
	for i := range s.candidates {
		if s.candidates[i].line == line {
			return true
		}
	}
	return false
}

// Costs that fits adds to the distance between counters, the largest first: the starts differ
// by more than a minute, they differ by more than a jitter or one is unknown, the counter fell, a
// counter could not be read, the previous answer did not report the line. Each cost outweighs
// all smaller ones.
const (
	startMismatch = 1e18
	startUnsure   = 2e17
	counterFell   = 1e17
	unproven      = 1e16
	absentPenalty = 1e15
)

// fits reports whether sample may be the line's next report, and how badly it fits. The cost is
// the distance, in nanoseconds, of its counter from where the line was heading, and the
// constants above. Of several assignments, the one with the smallest costs is taken. The sum of
// the increases cannot decide: it is the same for all assignments.
func (s *Identifier) fits(l *line, sample *metric.Sample) (cost float64, ok bool) {
	o := &sample.Instance
	if l.path != "" && o.Path != "" && l.path != o.Path || l.inode != 0 && o.Inode != 0 && l.inode != o.Inode {
		return 0, false
	}
	return s.goesOn(&l.core, sample, l.inode != 0 && o.Inode != 0, s.clockUnsure(l.seen))
}

// goesOn is fits without the comparison of cgroup paths. sameGroup says that line and sample
// have the same inode, adrift that their times may lie on two sides of a clock step.
func (s *Identifier) goesOn(l *core, sample *metric.Sample, sameGroup, adrift bool) (cost float64, ok bool) {
	o := &sample.Instance
	if l.uid != "" && o.UID != "" && l.uid != o.UID || l.container != "" && o.ID != "" && l.container != o.ID {
		return 0, false
	}
	named := sameGroup || l.container != "" && o.ID != ""
	cost = startCost(l.start, o.Start)
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	if !named && !adrift && s.startedLater(l, sample, cpu) {
		return 0, false
	}
	if !reported || l.cpu < 0 || cpu == 0 { // a 0 may mean that the kubelet could not read it
		return cost + unproven, true
	}
	elapsed := float64(reportTime(sample) - l.time)
	if named {
		return cost + math.Abs(cpu-l.cpu-float64(l.rate)*elapsed), true
	}
	if adrift {
		// Times from before and after a step cannot be compared. Only the counters can.
		if cpu < l.cpu && (l.start == 0 || l.start != o.Start) {
			return 0, false
		}
		return cost + math.Abs(cpu-l.cpu), true
	}
	switch {
	case elapsed < 0 && cpu <= l.cpu: // an older reading of the same line
	case cpu < l.cpu && o.Start != 0 && o.Start <= l.time:
		return cost + counterFell + l.cpu - cpu, true // a reset: the instance began before the line's last report
	case cpu < l.cpu:
		return 0, false
	case elapsed == 0 && cpu != l.cpu && s.batch.Resolution < time.Second: // with a resolution of 1 s, both may be from the same second
		return 0, false
	case elapsed < 0 && cpu > l.cpu:
		return 0, false
	case cpu == l.cpu:
		return cost, true // no other instance has the same counter to the last digit
	}
	return cost + math.Abs(cpu-l.cpu-float64(l.rate)*elapsed), true
}

// startedLater reports whether the sample's start shows that the sample is not of the line: it
// is later than the line's, the counter is no larger than what the cores can have used since,
// and one of these is true: it is after the line's last report; the counter fell; the line has
// a name that the API server gave it, and the starts are more than a minute apart.
func (s *Identifier) startedLater(l *core, sample *metric.Sample, cpu float64) bool {
	start := sample.Instance.Start
	if start == 0 || start == l.start || s.cores > 0 && cpu > s.cores*lifeOf(start, l.time, sample) {
		return false
	}
	later := l.start != 0 && start-l.start > int64(startJitter)
	at := reportTime(sample)
	switch {
	case s.batch.NodeTime != 0 && start-at > int64(startSlack+s.batch.Resolution) && cpu >= l.cpu:
		return false // the clock did not step, so the start is wrong
	case l.cpu < 0: // l.time is unknown
		return later
	case l.start > l.time && start > l.time: // the clock was put back since the line began
		return apart(start, l.start) > int64(startJitter)
	case start > l.time:
		return later || at >= l.time
	case start > l.time-int64(s.batch.Resolution), cpu > 0 && cpu < l.cpu && at > l.time:
		return later
	}
	return later && l.container != "" && start-l.start > int64(startError)
}

// lifeOf returns for how long, in nanoseconds, an instance that began after the last report of
// another one can have lived: since its start, or since that report if the start lies after the
// instance's own reading and is therefore wrong.
func lifeOf(start, last int64, sample *metric.Sample) float64 {
	at := reportTime(sample)
	if start > at {
		start = last
	}
	return float64(at - start)
}

// startError is by how much a reported start may be wrong at most.
const startError = time.Minute

// startCost returns the cost of a line's start and a sample's. It grows with their distance. A
// jitter costs more than any likely distance of counters, and less than absentPenalty.
func startCost(a, b int64) float64 {
	switch d := startDistance(a, b); {
	case d <= float64(startJitter):
		return d * 1e5
	case d <= float64(startError):
		return startUnsure + d
	default:
		return startMismatch + d
	}
}

// startDistance returns how far two starts are apart, in nanoseconds. It is 0 if one is the
// other one cut to the second, as a second read reports it. A start that is unknown counts as
// 20 s from any other: it is no reason to prefer it to a known one that jitters.
func startDistance(a, b int64) float64 {
	cut := func(start int64) int64 { return start - start%int64(time.Second) }
	switch {
	case a == 0 || b == 0:
		return float64(20 * time.Second)
	case a == b, cut(a) == b, a == cut(b):
		return 0
	}
	return float64(apart(a, b))
}

// apart returns how far two times are apart, in nanoseconds.
func apart(a, b int64) int64 { return max(a-b, b-a) }

// steppedReadings is for how long after a step of its clock a node may report times from before
// it. Statistics lag by less than this.
const steppedReadings = 35 * time.Second

// clockUnsure reports whether a time that was read at seen, by our clock, may be from before a
// step of the node's clock, and the next one from after it.
func (s *Identifier) clockUnsure(seen time.Duration) bool {
	return s.clockStepped >= 0 && (seen <= s.clockStepped || s.clock-s.clockStepped <= steppedReadings)
}

// follow updates a line of t with its new report.
func (s *Identifier) follow(t *track, l *line, sample *metric.Sample) {
	adrift, unread := s.clockUnsure(l.seen), l.cpu < 0
	l.seen, l.answer = s.clock, s.answers
	if o := &sample.Instance; o.Path != "" {
		if l.path == "" {
			l.class = classOf(o.Path)
		}
		l.path, l.inode = o.Path, o.Inode
	}
	l.core.follow(sample, adrift)
	if unread && l.cpu >= 0 && l.unreadSince != 0 && !adrift {
		l.born = !slices.ContainsFunc(t.lines, func(o line) bool { return (o.id == l.id) != s.usedSince(&o, l.unreadSince) })
	}
}

// usedSince reports whether the line's counter is no larger than what the node's cores can have
// used since the given time.
func (s *Identifier) usedSince(l *line, since int64) bool {
	return l.cpu <= s.cores*float64(l.time-since)
}

func (l *core) follow(sample *metric.Sample, adrift bool) {
	o := &sample.Instance
	cpu, ok := sample.Values.Get(metric.CPUUsage)
	// A start never moves later while the counter continues.
	if o.Start != 0 && (l.start == 0 || o.Start < l.start || ok && cpu < l.cpu && cpu > 0) {
		l.start, l.origin = o.Start, o.Origin
	}
	if o.UID != "" {
		l.uid = o.UID
	}
	if o.ID != "" {
		l.container = o.ID
	}
	at := reportTime(sample)
	if !ok || cpu == 0 && (l.cpu > 0 || o.Inode == 0) { // not read: see markUnread
		return
	}
	switch {
	case l.cpu < 0, adrift && cpu >= l.cpu:
		l.cpu, l.time = cpu, at
	case at > l.time:
		if cpu > l.cpu {
			l.rate, l.still = float32((cpu-l.cpu)/float64(at-l.time)), 0
		} else {
			l.rate = 0
			l.still = min(l.still+1, stillness)
		}
		l.cpu, l.time = cpu, at
	}
}
