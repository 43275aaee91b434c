package identity

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// markSwapped marks candidates that may have changed places: each counter could continue the
// other's line as well, or one line is missing and the counter could continue either.
func (s *Identifier) markSwapped(t *track, b *metric.Batch) {
	for i := range s.candidates {
		for j := range s.candidates {
			x, y := &s.candidates[i], &s.candidates[j]
			if i != j && !x.newLine && (y.newLine || i < j) && s.couldBeSwapped(t, b, x, y) {
				x.swapped, y.swapped = true, true
			}
		}
		if c := &s.candidates[i]; !c.newLine && len(t.lines) > 1 {
			c.missingLine = s.findMissingLine(t, b, c)
			c.swapped = c.swapped || c.missingLine != 0
		}
	}
}

// findMissingLine returns a line that the previous answer reported and this one does not, if
// the candidate could continue it as well as its own line. Nothing says then which of the two
// lines is missing. It returns 0 if there is no such line.
func (s *Identifier) findMissingLine(t *track, b *metric.Batch, c *candidate) uint32 {
	sample, own := &b.Samples[c.sample], &t.lines[c.line]
	right, ok := s.couldContinue(own, sample)
	if !ok || !sameStart(own.start, sample.Instance.Start) {
		return 0
	}
	for i := range t.lines {
		l := &t.lines[i]
		if !sameStart(l.start, sample.Instance.Start) || l.answer+1 != s.answers || s.taken(i) || l.cpu == own.cpu && l.time == own.time {
			continue
		}
		if wrong, ok := s.couldContinue(l, sample); ok && (own.unpaced() || l.unpaced() || confusable(right, wrong)) {
			return l.id
		}
	}
	return 0
}

// separateSwapped gives new lines to candidates that may have changed places, if no second read
// names them. What was known of their old lines is no longer true of either. A missing line
// counts as one that lost to the candidate without evidence, so that the candidate stays
// Ambiguous.
func (s *Identifier) separateSwapped(t *track, b *metric.Batch) {
	for i := range s.candidates {
		c := &s.candidates[i]
		if !c.swapped || c.crossChecked {
			continue
		}
		s.startOwnLine(t, c, b)
		for j := range t.lines {
			if l := &t.lines[j]; c.missingLine != 0 && l.id == c.missingLine {
				l.lost, l.rule, l.lostTo = metric.Ambiguous, ruleContinuity, t.lines[c.line].id
			}
		}
	}
}

// startOwnLine gives a candidate a new line in place of its present one.
func (s *Identifier) startOwnLine(t *track, c *candidate, b *metric.Batch) {
	t.lines[c.line].seen = -2 * s.rememberFor(b) // the next match drops it
	s.startLine(t, c, &b.Samples[c.sample])
}

// couldBeSwapped reports whether the counters of x and y could belong to each other's lines as
// well. The line of x is an old one. That of y may be new.
func (s *Identifier) couldBeSwapped(t *track, b *metric.Batch, x, y *candidate) bool {
	sx, sy := &b.Samples[x.sample], &b.Samples[y.sample]
	lx, ly := &t.lines[x.line], &t.lines[y.line]
	if sameReading(sx, sy) && (y.newLine || lx.cpu == ly.cpu && lx.time == ly.time) {
		return false // the number is the same either way
	}
	right, ok := s.couldContinue(lx, sx)
	if !ok {
		return false // the assignment that was taken fits badly itself; the other one is no better
	}
	wrong, ok := s.couldContinue(lx, sy)
	if !ok {
		return false
	}
	if y.newLine {
		if !s.newborn(t, sx) {
			return false
		}
	} else {
		a, _ := s.couldContinue(ly, sy)
		c, ok := s.couldContinue(ly, sx)
		if !ok {
			return false
		}
		right, wrong = right+a, wrong+c
	}
	return lx.unpaced() || !y.newLine && ly.unpaced() || confusable(right, wrong)
}

// unpaced reports whether the line has one reading only, so that the rate of its counter is
// unknown.
func (l *line) unpaced() bool { return l.rate == 0 && l.still == 0 }

// confusable reports whether the other assignment of counters to lines is hardly worse than the
// one that was taken. right and wrong are their costs.
func confusable(right, wrong float64) bool { return wrong < 4*right+float64(time.Millisecond) }

// sameReading reports whether two samples have the same CPU counter and time.
func sameReading(a, b *metric.Sample) bool {
	x, okX := a.Values.Get(metric.CPUUsage)
	y, okY := b.Values.Get(metric.CPUUsage)
	return okX && okY && x == y && a.Times[metric.CPU] == b.Times[metric.CPU]
}

// couldContinue is fits for samples that no ID or inode identifies. It also returns false if
// the counter grew faster than the node's cores allow.
func (s *Identifier) couldContinue(l *line, sample *metric.Sample) (cost float64, ok bool) {
	cost, ok = s.fits(l, sample)
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	o := &sample.Instance
	if apart := l.start - o.Start; cost >= startMismatch && max(apart, -apart) > int64(startJitter) {
		cost -= startMismatch // starts this far apart do not decide here
	}
	if !ok || cost >= unproven || l.container != "" && o.ID != "" || l.inode != 0 && o.Inode != 0 {
		return cost, false
	}
	elapsed := float64(reportTime(sample) - l.time)
	if s.cores > 0 && !s.clockUnsure(l.seen) && cpu-l.cpu > s.cores*(elapsed+float64(250*time.Millisecond)) {
		return cost, false
	}
	return cost, true
}

// close reports whether the counters of two lines are so near to each other that the lines may
// be confused.
func (s *Identifier) close(t *track) bool {
	for i := range t.lines {
		for j := range t.lines[:i] {
			if s.cores > 0 && math.Abs(t.lines[i].cpu-t.lines[j].cpu) < s.cores*float64(time.Minute) {
				return true
			}
		}
	}
	return false
}
