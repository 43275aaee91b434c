package identity

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// markSwapped marks candidates whose counters could as well go on from each other's
// lines.
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

// findMissingLine returns the line that was reported last time and is missed now, if the
// candidate could go on from it as well as from its own: which of them is missed
// nothing tells then. It returns 0 if there is none.
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

// separateSwapped gives lines of their own to candidates that are mixed up and of which no
// second read came: what was known of their lines is no longer known of either. One that
// is left of two is believed, but for no reason.
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

// startOwnLine gives a candidate a line of its own in place of the one it has.
func (s *Identifier) startOwnLine(t *track, c *candidate, b *metric.Batch) {
	t.lines[c.line].seen = -2 * s.rememberFor(b) // it is done with
	s.startLine(t, c, &b.Samples[c.sample])
}

// couldBeSwapped reports whether x and y, which has a line or has just begun one, could be
// the other way round as well.
func (s *Identifier) couldBeSwapped(t *track, b *metric.Batch, x, y *candidate) bool {
	sx, sy := &b.Samples[x.sample], &b.Samples[y.sample]
	lx, ly := &t.lines[x.line], &t.lines[y.line]
	if sameReading(sx, sy) && (y.newLine || lx.cpu == ly.cpu && lx.time == ly.time) {
		return false // the number is the same either way
	}
	right, ok := s.couldContinue(lx, sx)
	if !ok {
		return false // the right one is far off already; the other way is no better
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

// unpaced reports whether the line was seen once only, so that nothing says how fast
// its counter goes.
func (l *line) unpaced() bool { return l.rate == 0 && l.still == 0 }

// confusable reports whether an assignment of counters to lines is hardly worse
// than the one that was preferred.
func confusable(right, wrong float64) bool { return wrong < 4*right+float64(time.Millisecond) }

// sameReading reports whether two samples say the same of the CPU.
func sameReading(a, b *metric.Sample) bool {
	x, okX := a.Values.Get(metric.CPUUsage)
	y, okY := b.Values.Get(metric.CPUUsage)
	return okX && okY && x == y && a.Times[metric.CPU] == b.Times[metric.CPU]
}

// couldContinue is fits for a counter that goes on without a name, and no faster than the
// node's cores allow.
func (s *Identifier) couldContinue(l *line, sample *metric.Sample) (cost float64, ok bool) {
	cost, ok = s.fits(l, sample)
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	o := &sample.Instance
	if apart := l.start - o.Start; cost >= startMismatch && max(apart, -apart) > int64(startJitter) {
		cost -= startMismatch // its starts are not to be followed
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

// close reports whether the counters of two lines are so near to each other that
// they may be mixed up.
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
