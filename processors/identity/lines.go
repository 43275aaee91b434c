package identity

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// match fills s.candidates with the samples of the subject and assigns each one to a line. A sample
// that fits no line begins a new one.
func (s *Identifier) match() {
	t := s.t
	s.candidates = s.candidates[:0]
	for i := t.first; i >= 0; i = s.after(i) {
		s.candidates = append(s.candidates, candidate{sample: i, line: -1, present: s.covered && s.isPresent(&s.batch.Samples[i].Instance)})
	}
	s.podLine = s.lineOfPod(t.first)
	// Fast path: one sample continues the only line.
	if len(s.candidates) == 1 && len(t.lines) == 1 && !math.IsInf(s.cost(&s.candidates[0], &t.lines[0]), 1) {
		s.candidates[0].line = 0
		return
	}
	limit, kept := s.rememberFor(), s.newerThanLast()
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool { return s.clock-l.seen > limit && (l.id != kept || l.seen < 0) })
	remembered, continued := len(t.lines) > 0, false
	for c, l := s.bestPair(); c != nil; c, l = s.bestPair() { // there are seldom more than two
		c.line, continued = l, true
	}
	s.improvePairs()
	for ci := range s.candidates {
		if c := &s.candidates[ci]; c.line < 0 {
			s.beginLine(c)
			s.line(c).renewed = remembered && !continued
		}
	}
}

// bestPair returns the candidate without a line and the line without a candidate that fit best; nil
// if none fit.
func (s *Identifier) bestPair() (best *candidate, bestLine int) {
	least := math.Inf(1)
	for ci := range s.candidates {
		c := &s.candidates[ci]
		if c.line >= 0 {
			continue
		}
		for li := range s.t.lines {
			l := &s.t.lines[li]
			if s.isTaken(l) || s.isRatherNew(l, s.sample(c)) {
				continue
			}
			cost := s.cost(c, l)
			if cost < least || cost == least && l.id == s.t.chosen && !math.IsInf(cost, 1) {
				least, best, bestLine = cost, c, li
			}
		}
	}
	return best, bestLine
}

// improvePairs exchanges the lines of two candidates where that saves a step of the cost: bestPair may
// have left one of them a line that it cannot well continue.
func (s *Identifier) improvePairs() {
	for i := range s.candidates {
		for j := range s.candidates[:i] {
			x, y := &s.candidates[j], &s.candidates[i]
			if x.line < 0 || y.line < 0 {
				continue
			}
			taken := s.cost(x, s.line(x)) + s.cost(y, s.line(y))
			if exchanged := s.cost(x, s.line(y)) + s.cost(y, s.line(x)); taken-exchanged >= costUnread {
				x.line, y.line = y.line, x.line
			}
		}
	}
}

// beginLine gives a candidate that continues no line a new one, with what is known of its beginning.
func (s *Identifier) beginLine(c *candidate) {
	sample := s.sample(c)
	s.startLine(c)
	l := s.line(c)
	l.born = s.isNewborn(sample, 0)
	if sample.Instance.Start == 0 && s.answers > 1 {
		l.appearedAfter = s.lastAnswerAt
	}
	if isUnread(sample) && s.t.answer+1 == s.answers && !s.t.unread {
		l.unreadSince = s.t.latest // its first counter may tell
	}
}

// startLine gives a candidate a line of its own.
func (s *Identifier) startLine(c *candidate) {
	s.lastID++
	s.t.lines = append(s.t.lines, lineOf(s.lastID, s.sample(c), s.clock, s.answers))
	c.line, c.newLine = len(s.t.lines)-1, true
}

// isTaken reports whether a candidate has the line.
func (s *Identifier) isTaken(l *line) bool {
	for i := range s.candidates {
		if c := &s.candidates[i]; c.line >= 0 && s.line(c) == l {
			return true
		}
	}
	return false
}

// isUnread reports whether a sample has no CPU counter, or a 0, which may mean that the kubelet
// could not read it.
func isUnread(sample *metric.Sample) bool {
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	return !reported || cpu == 0
}

// isNewborn reports whether a sample that continues no line began after the previous answer: that
// answer reported the entity without this sample, and the cores allow the sample's counter since. A
// line in that answer whose counter was never read may have been this one. late is by how much the
// previous answer may have been late, which only matters across a step of the node's clock.
func (s *Identifier) isNewborn(sample *metric.Sample, late time.Duration) bool {
	t := s.t
	if t.unread || t.latest == 0 || t.answer+1 != s.answers {
		return false
	}
	at, since := reportTime(sample), t.latest
	if s.drift {
		at, since = s.now.UnixNano(), s.lastAnswerAt-int64(late) // times across a step cannot be compared
	}
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	alive := run.CoresAllow(cpu, s.limits.Cores, at)
	return alive.Known() && at > since && !alive.EndsBefore(since)
}

// isRatherNew reports whether a sample without a name or start is more likely a new instance than
// the line's next report: two answers lacked the line, and the sample can have begun since the
// previous one.
func (s *Identifier) isRatherNew(l *line, sample *metric.Sample) bool {
	return s.answers-l.answer > 2 && isNameless(sample) && !l.repeats(sample) && s.isNewborn(sample, 0)
}

// wasContradicted reports whether the API server showed that the line is not the present run.
func (l *line) wasContradicted() bool {
	return l.lost == metric.OtherNode || l.lost == metric.OldPod || l.lost == metric.OldContainer
}

// isReplaced reports whether a sample is of the present run that the API server names, and the line
// is of another run.
func (s *Identifier) isReplaced(l *core, start int64) bool {
	r := &s.record
	if r.ID == "" || l.container == "" || l.container == r.ID || start > r.Start.Add(run.Cut).UnixNano() {
		return false
	}
	other := l.start
	if !r.LastStart.IsZero() {
		other = r.LastStart.UnixNano() // the line may have its name from that run, and its start from this one
	}
	return other == 0 || distance(start, other) > distance(start, r.Start.UnixNano())
}

// distance returns how far two known times are apart, in nanoseconds.
func distance(a, b int64) int64 { return max(a-b, b-a) }

// The steps of a cost, the largest first: the starts are further apart than any error, they differ by
// more than a jitter or one is unknown, the counter fell or grew faster than the cores allow, a counter
// could not be read, the previous answer did not report the line. Each step outweighs all smaller ones. Below the steps the cost is
// the distance of the counter, in nanoseconds, from where the line was heading.
const (
	costOtherStart   = 1e18
	costUnsureStart  = 2e17
	costCounter      = 1e17
	costUnread       = 1e16
	costAbsent       = 1e15
	costOfNanosecond = 1e5 // of a jitter: it outweighs the counters
)

// cost returns how badly a candidate fits a line as its next report; infinity if it cannot be that. Of
// several assignments the one with the smallest costs is taken. The sum of the increases cannot
// decide: it is the same for all assignments.
func (s *Identifier) cost(c *candidate, l *line) float64 {
	sample := s.sample(c)
	start := sample.Instance.Start
	if c.present && (l.wasContradicted() && run.Distance(l.start, start) > int64(run.Cut) || s.isReplaced(&l.core, start)) || l.isBeforePod(s.podLine) {
		return math.Inf(1)
	}
	cost := s.lineCost(l, sample)
	if l.answer+1 != s.answers {
		cost += costAbsent
	}
	return cost
}

// lineCost is the cost without what the API server reports and the pod's own counter show.
func (s *Identifier) lineCost(l *line, sample *metric.Sample) float64 {
	in := &sample.Instance
	sameGroup := l.inode != 0 && in.Inode != 0
	if l.path != "" && in.Path != "" && l.path != in.Path || sameGroup && l.inode != in.Inode {
		return math.Inf(1)
	}
	return s.coreCost(&l.core, sample, sameGroup, s.clockUnsure(l.seen))
}

// coreCost is the cost without the comparison of cgroup paths. sameGroup says that line and sample
// have the same inode, adrift that their times may lie on two sides of a clock step.
func (s *Identifier) coreCost(l *core, sample *metric.Sample, sameGroup, adrift bool) float64 {
	in := &sample.Instance
	named := sameGroup || l.container != "" && in.ID != ""
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	switch {
	case l.hasOtherName(in):
		return math.Inf(1)
	case !named && !adrift && s.startedLater(l, sample, cpu):
		return math.Inf(1)
	case !reported || l.cpu < 0 || cpu == 0: // a 0 may mean that the kubelet could not read it
		return startCost(l.start, in.Start) + costUnread
	}
	heading := l.cpu + float64(l.rate)*float64(reportTime(sample)-l.time)
	switch {
	case named:
		return startCost(l.start, in.Start) + math.Abs(cpu-heading)
	case adrift: // times from before and after a step cannot be compared, only counters
		if cpu < l.cpu && (l.start == 0 || l.start != in.Start) {
			return math.Inf(1)
		}
		return startCost(l.start, in.Start) + math.Abs(cpu-l.cpu)
	}
	return startCost(l.start, in.Start) + s.counterCost(l, sample, cpu, heading)
}

// hasOtherName reports whether the line and an instance have different UIDs or container IDs.
func (l *core) hasOtherName(in *metric.Instance) bool {
	return l.uid != "" && in.UID != "" && l.uid != in.UID || l.container != "" && in.ID != "" && l.container != in.ID
}

// counterCost returns the cost of a counter of a sample without a name. A counter that is equal to
// the last digit is the line's own.
func (s *Identifier) counterCost(l *core, sample *metric.Sample, cpu, heading float64) float64 {
	elapsed, start := reportTime(sample)-l.time, sample.Instance.Start
	switch {
	case elapsed < 0 && cpu <= l.cpu: // an older reading of the same line
		return math.Abs(cpu - heading)
	case elapsed < 0, elapsed == 0 && cpu != l.cpu && s.batch.Resolution < time.Second: // with a resolution of 1 s, both may be from the same second
		return math.Inf(1)
	case cpu < l.cpu && start != 0 && start <= l.time && (l.start == 0 || distance(start, l.start) <= int64(run.Jitter)):
		return costCounter + l.cpu - cpu // a reset: the instance began before the line's last report
	case cpu < l.cpu:
		return math.Inf(1)
	case cpu == l.cpu:
		return 0
	case s.limits.Cores > 0 && cpu-l.cpu > s.limits.Cores*float64(elapsed+int64(run.CounterLag+s.limits.Resolution)):
		return costCounter + cpu - l.cpu
	}
	return math.Abs(cpu - heading)
}

// startedLater reports whether the sample's start shows that the sample is not of the line: it
// is later than the line's, the cores allow the counter since, and one of these is true: it is after
// the line's last report; the counter fell; the line has a name that the API server gave it, and the
// starts are far apart.
func (s *Identifier) startedLater(l *core, sample *metric.Sample, cpu float64) bool {
	start, at := sample.Instance.Start, reportTime(sample)
	wrong := s.batch.NodeTime != 0 && start-at > int64(run.Cut+s.batch.Resolution) && cpu >= l.cpu // the clock did not step
	if start == 0 || start == l.start || wrong || s.exceedsCores(cpu, start, l.time, at) {
		return false
	}
	later := l.start != 0 && start-l.start > int64(run.Jitter)
	switch {
	case l.cpu < 0: // l.time is unknown
		return later
	case l.start > l.time && start > l.time: // the clock was put back since the line began
		return distance(start, l.start) > int64(run.Jitter)
	case start > l.time:
		return later || at >= l.time
	case start > l.time-int64(s.batch.Resolution), cpu > 0 && cpu < l.cpu && at > l.time:
		return later
	}
	return later && l.container != "" && start-l.start > int64(run.Far)
}

// exceedsCores reports whether a counter is larger than the cores allow since start; since the
// previous report if the start lies after its own reading and is therefore wrong.
func (s *Identifier) exceedsCores(cpu float64, start, last, at int64) bool {
	if start > at {
		start = last
	}
	return run.CoresAllow(cpu, s.limits.Cores, at+int64(s.limits.Resolution)).EndsBefore(start)
}

// startCost returns the cost of a line's start and a sample's. It grows with their distance. A
// jitter costs more than any likely distance of counters, and less than costAbsent.
func startCost(a, b int64) float64 {
	switch d := run.Distance(a, b); {
	case d <= int64(run.Jitter):
		return float64(d) * costOfNanosecond
	case d <= int64(run.Far):
		return costUnsureStart + float64(d)
	default:
		return costOtherStart + float64(d)
	}
}

// clockUnsure reports whether a time that was read at seen, by our clock, may be from before a
// step of the node's clock, and the next one from after it.
func (s *Identifier) clockUnsure(seen time.Duration) bool {
	return s.clockStepped >= 0 && (seen <= s.clockStepped || s.clock-s.clockStepped <= run.OldReading)
}

// follow updates a line with its new report.
func (s *Identifier) follow(l *line, sample *metric.Sample) {
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
		l.born = !slices.ContainsFunc(s.t.lines, func(o line) bool { return (o.id == l.id) != s.usedSince(&o, l.unreadSince) })
	}
}

// usedSince reports whether the line's counter is no larger than what the node's cores can have
// used since the given time.
func (s *Identifier) usedSince(l *line, since int64) bool {
	return l.cpu <= s.limits.Cores*float64(l.time-since)
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
	if ok && (cpu != 0 || l.cpu <= 0 && o.Inode != 0) { // else it was not read: see markUnread
		l.followCounter(cpu, reportTime(sample), adrift)
	}
}

// followCounter updates a line with a counter that was read at the given time.
func (l *core) followCounter(cpu float64, at int64, adrift bool) {
	switch {
	case l.cpu < 0, adrift && cpu >= l.cpu:
		l.cpu, l.time = cpu, at
	case at > l.time:
		l.rate, l.still = 0, min(l.still+1, stillness)
		if cpu > l.cpu {
			l.rate, l.still = float32((cpu-l.cpu)/float64(at-l.time)), 0
		}
		l.cpu, l.time = cpu, at
	}
}
