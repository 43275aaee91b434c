package identity

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// markSwapped marks candidates that may have changed places: each counter could continue the
// other's line as well, or one line is missing and the counter could continue either.
func (identifier *Identifier) markSwapped() {
	for i := range identifier.candidates {
		x := &identifier.candidates[i]
		l := identifier.line(x)
		if l.isNew() {
			continue
		}
		for j := range identifier.candidates {
			y := &identifier.candidates[j]
			if other := identifier.line(y); i != j && (other.isNew() || i < j) && identifier.couldBeSwapped(x, y) {
				x.markSwapped(l, other)
				y.markSwapped(l, other)
			}
		}
		if missing := identifier.findMissingLine(x); missing != nil {
			x.markSwapped(l, missing)
			x.missingLine = missing.id
		}
	}
}

// markSwapped records that a candidate could continue either line.
func (c *candidate) markSwapped(a, b *line) {
	c.match, c.firstAnswer = swapped, max(c.firstAnswer, a.firstAnswer, b.firstAnswer)
}

// findMissingLine returns a line that the previous answer reported and this one does not, if
// the candidate could continue it as well as its own line. Nothing says then which of the two
// lines is missing. It returns nil if there is no such line.
func (identifier *Identifier) findMissingLine(c *candidate) *line {
	sample, own := identifier.sample(c), identifier.line(c)
	right, ok := identifier.couldContinue(own, sample)
	if !ok || own.repeats(sample) {
		return nil
	}
	for i := range identifier.t.lines {
		l := &identifier.t.lines[i]
		if l.answer+1 != identifier.answers || identifier.isTaken(l) || l.cpu == own.cpu && l.time == own.time {
			continue
		}
		startsKnown := l.start != 0 && sample.Instance.Start != 0
		if wrong, ok := identifier.couldContinue(l, sample); ok && confusable(right, wrong) && (!startsKnown || wrong == 0) {
			return l
		}
	}
	return nil
}

// separateSwapped gives new lines to candidates that may have changed places, if no second read
// names them. What was known of their old lines is no longer true of either. A missing line
// counts as one that lost to the candidate without evidence, so that the candidate stays
// Ambiguous.
func (identifier *Identifier) separateSwapped() {
	for i := range identifier.candidates {
		c := &identifier.candidates[i]
		if c.match != swapped {
			continue
		}
		identifier.startOwnLine(c)
		for j := range identifier.t.lines {
			if l := &identifier.t.lines[j]; c.missingLine != 0 && l.id == c.missingLine {
				l.lost, l.rule, l.lostTo = metric.Ambiguous, ruleContinuity, identifier.line(c).id
			}
		}
	}
}

// startOwnLine gives a swapped candidate a new line in place of its present one. The instance is
// at least as old as the newest line that it may be.
func (identifier *Identifier) startOwnLine(c *candidate) {
	identifier.line(c).seen = -2 * identifier.rememberFor() // the next match drops it
	identifier.startLine(c)
	identifier.line(c).firstAnswer = c.firstAnswer
}

// couldBeSwapped reports whether the counters of x and y could belong to each other's lines as
// well, and no start reports that they do not. The rates of the counters are no evidence: any line
// may become faster or slower. The line of x is an old one. That of y may be new.
func (identifier *Identifier) couldBeSwapped(x, y *candidate) bool {
	sx, sy, lx, ly := identifier.sample(x), identifier.sample(y), identifier.line(x), identifier.line(y)
	if lx.cpu < 0 && ly.cpu < 0 && !isSameReading(sx, sy) {
		return isNameless(sx) && isNameless(sy) && !(isUnread(sx) && isUnread(sy)) // nothing shows which line belongs to which sample
	}
	right, ok := identifier.couldContinue(lx, sx)
	if !ok || identifier.isSettled(x, y) {
		return false // if the assignment that was taken fits badly itself, the other one is no better
	}
	wrong, ok := identifier.couldContinue(lx, sy)
	if ly.isNew() {
		if isUnread(sy) { // it may be any line's
			wrong, ok = float64(run.AssignmentDistance(lx.start, sy.Instance.Start)), true
		}
		return ok && identifier.isNewborn(sx, run.OldestReading) && confusable(right, wrong)
	}
	straight, _ := identifier.couldContinue(ly, sy)
	crossed, possible := identifier.couldContinue(ly, sx)
	return ok && possible && confusable(right+straight, wrong+crossed)
}

// isSettled reports whether the samples of x and y cannot have changed places, or it does not matter:
// they are equal, or one has its line's counter to the last digit.
func (identifier *Identifier) isSettled(x, y *candidate) bool {
	lx, ly := identifier.line(x), identifier.line(y)
	if isSameReading(identifier.sample(x), identifier.sample(y)) && (ly.isNew() || lx.cpu == ly.cpu && lx.time == ly.time) {
		return true
	}
	return lx.cpu != ly.cpu && (lx.repeats(identifier.sample(x)) || !ly.isNew() && ly.repeats(identifier.sample(y)))
}

// isNameless reports whether nothing but the counter shows which instance the sample is of.
func isNameless(sample *metric.Sample) bool {
	o := &sample.Instance
	return o.Start == 0 && o.ID == "" && o.UID == "" && o.Path == ""
}

// repeats reports whether the sample has the line's counter to the last digit. No other
// instance's counter has.
func (l *line) repeats(sample *metric.Sample) bool {
	cpu, ok := sample.Values.Get(metric.CPUUsage)
	return ok && cpu > 0 && cpu == l.cpu
}

// confusable reports whether the starts fit hardly worse to the other assignment of samples to
// lines than to the one that was taken. right and wrong are the sums of their distances.
func confusable(right, wrong float64) bool { return wrong <= 2*right+float64(run.Cut) }

// isSameReading reports whether two samples have the same CPU counter and time.
func isSameReading(a, b *metric.Sample) bool {
	return distanceOf(a, b) == 0 && a.Times[metric.CPU] == b.Times[metric.CPU]
}

// couldContinue reports whether the sample could be the line's next report by its counter: it
// did not fall, and did not grow faster than the node's cores allow. It returns how far the
// starts are apart. Samples that an ID or inode identifies are not compared.
func (identifier *Identifier) couldContinue(l *line, sample *metric.Sample) (starts float64, ok bool) {
	o := &sample.Instance
	cost := identifier.lineCost(l, sample) - startCost(l.start, o.Start)
	if !(cost < costUnread) || l.container != "" && o.ID != "" || l.inode != 0 && o.Inode != 0 {
		return 0, false
	}
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	elapsed := time.Duration(reportTime(sample)-l.time) + run.CounterLag
	if identifier.clockUnsure(l.seen) {
		elapsed = identifier.clock - l.seen + run.OldestReading
	}
	if identifier.limits.Cores > 0 && cpu-l.cpu > identifier.limits.Cores*float64(elapsed) {
		return 0, false
	}
	return float64(run.AssignmentDistance(l.start, o.Start)), true
}

// isClose reports whether the counters of two lines are so near to each other that the lines may
// be confused within a minute.
func (identifier *Identifier) isClose(t *track) bool {
	for i := range t.lines {
		for j := range t.lines[:i] {
			if identifier.limits.Cores > 0 && math.Abs(t.lines[i].cpu-t.lines[j].cpu) < identifier.limits.Cores*float64(time.Minute) {
				return true
			}
		}
	}
	return false
}
