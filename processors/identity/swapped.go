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
				first := max(t.lines[x.line].first, t.lines[y.line].first)
				x.swapped, y.swapped = true, true
				x.first, y.first = max(x.first, first), max(y.first, first)
			}
		}
		if c := &s.candidates[i]; !c.newLine && len(t.lines) > 1 {
			if l := s.findMissingLine(t, b, c); l != nil {
				c.swapped, c.missingLine = true, l.id
				c.first = max(c.first, t.lines[c.line].first, l.first)
			}
		}
	}
}

// findMissingLine returns a line that the previous answer reported and this one does not, if
// the candidate could continue it as well as its own line. Nothing says then which of the two
// lines is missing. It returns nil if there is no such line.
func (s *Identifier) findMissingLine(t *track, b *metric.Batch, c *candidate) *line {
	sample, own := &b.Samples[c.sample], &t.lines[c.line]
	right, ok := s.couldContinue(own, sample)
	if !ok || own.repeats(sample) {
		return nil
	}
	for i := range t.lines {
		l := &t.lines[i]
		if l.answer+1 != s.answers || s.taken(i) || l.cpu == own.cpu && l.time == own.time {
			continue
		}
		startsKnown := l.start != 0 && sample.Instance.Start != 0
		if wrong, ok := s.couldContinue(l, sample); ok && confusable(right, wrong) && (!startsKnown || wrong == 0) {
			return l
		}
	}
	return nil
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

// startOwnLine gives a swapped candidate a new line in place of its present one. The instance is
// at least as old as the newest line that it may be.
func (s *Identifier) startOwnLine(t *track, c *candidate, b *metric.Batch) {
	t.lines[c.line].seen = -2 * s.rememberFor(b) // the next match drops it
	s.startLine(t, c, &b.Samples[c.sample])
	t.lines[c.line].first = c.first
}

// couldBeSwapped reports whether the counters of x and y could belong to each other's lines as
// well, and no start says that they do not. The rates of the counters are no evidence: any line
// may become faster or slower. The line of x is an old one. That of y may be new.
func (s *Identifier) couldBeSwapped(t *track, b *metric.Batch, x, y *candidate) bool {
	sx, sy := &b.Samples[x.sample], &b.Samples[y.sample]
	lx, ly := &t.lines[x.line], &t.lines[y.line]
	if sameReading(sx, sy) && (y.newLine || lx.cpu == ly.cpu && lx.time == ly.time) {
		return false // the number is the same either way
	}
	if lx.cpu < 0 && lx.unreadSince == 0 && (y.newLine || ly.cpu < 0 && ly.unreadSince == 0) {
		return nameless(sx) && nameless(sy) && !(unreadCPU(sx) && unreadCPU(sy)) // nothing says which line belongs to which sample
	}
	if lx.cpu != ly.cpu && (lx.repeats(sx) || !y.newLine && ly.repeats(sy)) {
		return false
	}
	right, ok := s.couldContinue(lx, sx)
	if !ok {
		return false // the assignment that was taken fits badly itself; the other one is no better
	}
	wrong, ok := s.couldContinue(lx, sy)
	if y.newLine && unreadCPU(sy) { // it may be any line's
		wrong, ok = startDistance(lx.start, sy.Instance.Start), true
	}
	if !ok {
		return false
	}
	if y.newLine {
		return s.newborn(t, sx, steppedElapsed) && confusable(right, wrong)
	}
	a, _ := s.couldContinue(ly, sy)
	c, ok := s.couldContinue(ly, sx)
	return ok && confusable(right+a, wrong+c)
}

// nameless reports whether nothing but the counter shows which instance the sample is of.
func nameless(sample *metric.Sample) bool {
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
func confusable(right, wrong float64) bool { return wrong <= 2*right+float64(startSlack) }

// sameReading reports whether two samples have the same CPU counter and time.
func sameReading(a, b *metric.Sample) bool {
	x, okX := a.Values.Get(metric.CPUUsage)
	y, okY := b.Values.Get(metric.CPUUsage)
	return okX && okY && x == y && a.Times[metric.CPU] == b.Times[metric.CPU]
}

// couldContinue reports whether the sample could be the line's next report by its counter: it
// did not fall, and did not grow faster than the node's cores allow. It returns how far the
// starts are apart. Samples that an ID or inode identifies are not compared.
func (s *Identifier) couldContinue(l *line, sample *metric.Sample) (starts float64, ok bool) {
	cost, ok := s.fits(l, sample)
	o := &sample.Instance
	if !ok || cost-startCost(l.start, o.Start) >= unproven || l.container != "" && o.ID != "" || l.inode != 0 && o.Inode != 0 {
		return 0, false
	}
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	elapsed := time.Duration(reportTime(sample)-l.time) + 250*time.Millisecond
	if s.clockUnsure(l.seen) {
		elapsed = s.clock - l.seen + steppedElapsed
	}
	if s.cores > 0 && cpu-l.cpu > s.cores*float64(elapsed) {
		return 0, false
	}
	return startDistance(l.start, o.Start), true
}

// steppedElapsed is added to the time between two answers where the times of their readings
// cannot be compared: the earlier reading may have been this old.
const steppedElapsed = 2 * time.Minute

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
