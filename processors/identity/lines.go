package identity

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// match fills identifier.candidates with the samples of the subject and assigns each one to a line. A sample
// that fits no line begins a new one.
func (identifier *Identifier) match() {
	t := identifier.t
	identifier.candidates = identifier.candidates[:0]
	for i := t.firstSample; i >= 0; i = identifier.after(i) {
		identifier.candidates = append(identifier.candidates, candidate{sample: i, line: -1, present: identifier.covered && identifier.isPresent(&identifier.batch.Samples[i].Instance)})
	}
	// Fast path: one sample continues the only line.
	if len(identifier.candidates) == 1 && len(t.lines) == 1 && !math.IsInf(identifier.cost(&identifier.candidates[0], &t.lines[0]), 1) {
		identifier.candidates[0].line = 0
		return
	}
	limit, kept := identifier.rememberFor(), identifier.newerThanLast()
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool { return identifier.clock-l.seen > limit && (l.id != kept || l.seen < 0) })
	for c, l := identifier.bestPair(); c != nil; c, l = identifier.bestPair() { // there are seldom more than two
		c.line = l
	}
	identifier.improvePairs()
	for ci := range identifier.candidates {
		if c := &identifier.candidates[ci]; c.line < 0 {
			identifier.beginLine(c)
		}
	}
}

// bestPair returns the candidate without a line and the line without a candidate that fit best; nil
// if none fit.
func (identifier *Identifier) bestPair() (best *candidate, bestLine int) {
	least := math.Inf(1)
	for ci := range identifier.candidates {
		c := &identifier.candidates[ci]
		if c.line >= 0 {
			continue
		}
		for li := range identifier.t.lines {
			l := &identifier.t.lines[li]
			if identifier.isTaken(l) || identifier.isRatherNew(l, identifier.sample(c)) {
				continue
			}
			cost := identifier.cost(c, l)
			if cost < least || cost == least && l.id == identifier.t.chosen && !math.IsInf(cost, 1) {
				least, best, bestLine = cost, c, li
			}
		}
	}
	return best, bestLine
}

// improvePairs exchanges the lines of two candidates where that saves a step of the cost: bestPair may
// have left one of them a line that it cannot well continue.
func (identifier *Identifier) improvePairs() {
	for i := range identifier.candidates {
		for j := range identifier.candidates[:i] {
			x, y := &identifier.candidates[j], &identifier.candidates[i]
			if x.line < 0 || y.line < 0 {
				continue
			}
			taken := identifier.cost(x, identifier.line(x)) + identifier.cost(y, identifier.line(y))
			if exchanged := identifier.cost(x, identifier.line(y)) + identifier.cost(y, identifier.line(x)); taken-exchanged >= costUnread {
				x.line, y.line = y.line, x.line
			}
		}
	}
}

// beginLine gives a candidate that continues no line a new one, with what is known of its beginning.
func (identifier *Identifier) beginLine(c *candidate) {
	sample := identifier.sample(c)
	identifier.startLine(c)
	l := identifier.line(c)
	l.born = identifier.isNewborn(sample, 0)
	if sample.Instance.Start == 0 && identifier.answers > 1 {
		l.appearedAfter = identifier.lastAnswerAt
	}
}

// startLine gives a candidate a line of its own.
func (identifier *Identifier) startLine(c *candidate) {
	identifier.lastID++
	identifier.t.lines = append(identifier.t.lines, lineOf(identifier.lastID, identifier.sample(c), identifier.clock, identifier.answers))
	c.line = len(identifier.t.lines) - 1
}

// isTaken reports whether a candidate has the line.
func (identifier *Identifier) isTaken(l *line) bool {
	for i := range identifier.candidates {
		if c := &identifier.candidates[i]; c.line >= 0 && identifier.line(c) == l {
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
func (identifier *Identifier) isNewborn(sample *metric.Sample, late time.Duration) bool {
	t := identifier.t
	if t.unread || t.latest == 0 || t.answer+1 != identifier.answers {
		return false
	}
	at, since := reportTime(sample), t.latest
	if identifier.drift {
		at, since = identifier.node.OurTime(identifier.now), identifier.lastAnswerAt-int64(late) // times across a step cannot be compared
	}
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	alive := run.CoresAllow(cpu, identifier.limits.Cores, at)
	return alive.Known() && at > since && !alive.EndsBefore(since)
}

// isRatherNew reports whether a sample without a name or start is more likely a new instance than
// the line's next report: two answers lacked the line, and the sample can have begun since the
// previous one.
func (identifier *Identifier) isRatherNew(l *line, sample *metric.Sample) bool {
	return identifier.answers-l.answer > 2 && isNameless(sample) && !l.repeats(sample) && identifier.isNewborn(sample, 0)
}

// wasContradicted reports whether the API server showed that the line is not the present run.
func (l *line) wasContradicted() bool {
	return l.lost == metric.OtherNode || l.lost == metric.OldPod || l.lost == metric.OldContainer
}

// isReplaced reports whether a sample is of the present run that the API server names, and the line
// is of another run.
func (identifier *Identifier) isReplaced(l *core, start int64) bool {
	r := &identifier.record
	if r.ID == "" || l.container == "" || l.container == r.ID || start > r.Start.Add(run.Cut).UnixNano() {
		return false
	}
	other := l.start
	if !r.LastStart.IsZero() {
		other = r.LastStart.UnixNano() // the line may have its name from that run, and its start from this one
	}
	return other == 0 || run.Apart(start, other) > run.Apart(start, r.Start.UnixNano())
}

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
func (identifier *Identifier) cost(c *candidate, l *line) float64 {
	sample := identifier.sample(c)
	start := sample.Instance.Start
	if c.present && (l.wasContradicted() && run.AssignmentDistance(l.start, start) > int64(run.Cut) || identifier.isReplaced(&l.core, start)) {
		return math.Inf(1)
	}
	cost := identifier.lineCost(l, sample)
	if l.answer+1 != identifier.answers {
		cost += costAbsent
	}
	return cost
}

// lineCost is the cost without what the API server reports.
func (identifier *Identifier) lineCost(l *line, sample *metric.Sample) float64 {
	in := &sample.Instance
	sameGroup := l.inode != 0 && in.Inode != 0
	if l.path != "" && in.Path != "" && l.path != in.Path || sameGroup && l.inode != in.Inode {
		return math.Inf(1)
	}
	return identifier.coreCost(&l.core, sample, sameGroup, identifier.clockUnsure(l.seen))
}

// coreCost is the cost without the comparison of cgroup paths. sameGroup reports that line and sample
// have the same inode, adrift that their times may lie on two sides of a clock step.
func (identifier *Identifier) coreCost(l *core, sample *metric.Sample, sameGroup, adrift bool) float64 {
	in := &sample.Instance
	named := sameGroup || l.container != "" && in.ID != ""
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	switch {
	case l.hasOtherName(in):
		return math.Inf(1)
	case !named && !adrift && identifier.startedLater(l, sample, cpu):
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
	return startCost(l.start, in.Start) + identifier.counterCost(l, sample, cpu, heading)
}

// hasOtherName reports whether the line and an instance have different UIDs or container IDs.
func (c *core) hasOtherName(in *metric.Instance) bool {
	return c.uid != "" && in.UID != "" && c.uid != in.UID || c.container != "" && in.ID != "" && c.container != in.ID
}

// counterCost returns the cost of a counter of a sample without a name. A counter that is equal to
// the last digit is the line's own.
func (identifier *Identifier) counterCost(l *core, sample *metric.Sample, cpu, heading float64) float64 {
	elapsed, start := reportTime(sample)-l.time, sample.Instance.Start
	switch {
	case elapsed < 0 && cpu <= l.cpu: // an older reading of the same line
		return math.Abs(cpu - heading)
	case elapsed < 0, elapsed == 0 && cpu != l.cpu && identifier.batch.Resolution < time.Second: // with a resolution of 1 s, both may be from the same second
		return math.Inf(1)
	case cpu < l.cpu && start != 0 && start <= l.time && (l.start == 0 || run.Apart(start, l.start) <= int64(run.Jitter)):
		return costCounter + l.cpu - cpu // a reset: the instance began before the line's last report
	case cpu < l.cpu:
		return math.Inf(1)
	case cpu == l.cpu:
		return 0
	case identifier.limits.Cores > 0 && cpu-l.cpu > identifier.limits.Cores*float64(elapsed+int64(run.CounterLag+identifier.limits.Resolution)):
		return costCounter + cpu - l.cpu
	}
	return math.Abs(cpu - heading)
}

// startedLater reports whether the sample's start shows that the sample is not of the line: it
// is later than the line's, the cores allow the counter since, and one of these is true: it is after
// the line's last report; the counter fell; the line has a name that the API server gave it, and the
// starts are far apart.
func (identifier *Identifier) startedLater(l *core, sample *metric.Sample, cpu float64) bool {
	start, at := sample.Instance.Start, reportTime(sample)
	if start == 0 || start == l.start || identifier.isWrongStart(l, start, at, cpu) {
		return false
	}
	later := l.start != 0 && start-l.start > int64(run.Jitter)
	switch {
	case l.cpu < 0: // l.time is unknown
		return later
	case start > l.time:
		return later || at >= l.time
	case start > l.time-int64(identifier.batch.Resolution), cpu > 0 && cpu < l.cpu && at > l.time:
		return later
	}
	return later && l.container != "" && start-l.start > int64(run.Far)
}

// isWrongStart reports whether a start cannot be that of a counter. It lies after its own reading,
// although the clock did not step and the line's counter goes on; or the cores do not allow the counter
// since. A start after its own reading allows it since the line's last report.
func (identifier *Identifier) isWrongStart(l *core, start, at int64, cpu float64) bool {
	if identifier.batch.NodeTime != 0 && cpu >= l.cpu && run.IsAfterReading(start, at, identifier.batch.Resolution) {
		return true
	}
	if start > at {
		start = l.time
	}
	return run.CoresAllow(cpu, identifier.limits.Cores, at+int64(identifier.limits.Resolution)).EndsBefore(start)
}

// startCost returns the cost of a line's start and a sample's. It grows with their distance. A
// jitter costs more than any likely distance of counters, and less than costAbsent.
func startCost(a, b int64) float64 {
	switch d := run.AssignmentDistance(a, b); {
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
func (identifier *Identifier) clockUnsure(seen time.Duration) bool {
	return identifier.clockStepped >= 0 && (seen <= identifier.clockStepped || identifier.clock-identifier.clockStepped <= run.OldReading)
}

// follow updates a line with its new report.
func (identifier *Identifier) follow(l *line, sample *metric.Sample) {
	adrift := identifier.clockUnsure(l.seen)
	l.seen, l.answer = identifier.clock, identifier.answers
	if o := &sample.Instance; o.Path != "" {
		if l.path == "" {
			l.class = classOf(o.Path)
		}
		l.path, l.inode = o.Path, o.Inode
	}
	l.core.follow(sample, adrift)
}

func (c *core) follow(sample *metric.Sample, adrift bool) {
	o := &sample.Instance
	cpu, ok := sample.Values.Get(metric.CPUUsage)
	// A start never moves later while the counter continues.
	if o.Start != 0 && (c.start == 0 || o.Start < c.start || ok && cpu < c.cpu && cpu > 0) {
		c.start, c.origin = o.Start, o.Origin
	}
	if o.UID != "" {
		c.uid = o.UID
	}
	if o.ID != "" {
		c.container = o.ID
	}
	if ok && (cpu != 0 || c.cpu <= 0 && o.Inode != 0) { // else it was not read: see markUnread
		c.followCounter(cpu, reportTime(sample), adrift)
	}
}

// followCounter updates a line with a counter that was read at the given time.
func (c *core) followCounter(cpu float64, at int64, adrift bool) {
	switch {
	case c.cpu < 0, adrift && cpu >= c.cpu:
		c.cpu, c.time = cpu, at
	case at > c.time:
		c.rate, c.still = 0, min(c.still+1, stillness)
		if cpu > c.cpu {
			c.rate, c.still = float32((cpu-c.cpu)/float64(at-c.time)), 0
		}
		c.cpu, c.time = cpu, at
	}
}
