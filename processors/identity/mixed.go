package identity

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// mix marks candidates whose counters could as well go on from each other's
// lines.
func (s *State) mix(t *track, b *metric.Batch) {
	for i := range s.candidates {
		for j := range s.candidates {
			x, y := &s.candidates[i], &s.candidates[j]
			if i != j && !x.fresh && (y.fresh || i < j) && s.mixed(t, b, x, y) {
				x.mixed, y.mixed = true, true
			}
		}
	}
}

// blur gives lines of their own to candidates that are mixed up and of which no
// witness spoke: what was known of their lines is no longer known of either.
func (s *State) blur(t *track, b *metric.Batch) {
	for i := range s.candidates {
		if c := &s.candidates[i]; c.mixed && !c.heard {
			s.part(t, c, b)
		}
	}
}

// part gives a candidate a line of its own in place of the one it has.
func (s *State) part(t *track, c *candidate, b *metric.Batch) {
	t.lines[c.line].seen = -2 * s.memory(b) // it is done with
	s.begin(t, c, &b.Samples[c.sample])
}

// mixed reports whether x and y, which has a line or has just begun one, could be
// the other way round as well.
func (s *State) mixed(t *track, b *metric.Batch, x, y *candidate) bool {
	sx, sy := &b.Samples[x.sample], &b.Samples[y.sample]
	lx, ly := &t.lines[x.line], &t.lines[y.line]
	right, ok := s.may(lx, sx)
	if !ok {
		return false // the right one is far off already; the other way is no better
	}
	wrong, ok := s.may(lx, sy)
	if !ok {
		return false
	}
	if y.fresh {
		if !s.newborn(t, sx) {
			return false
		}
	} else {
		a, _ := s.may(ly, sy)
		c, ok := s.may(ly, sx)
		if !ok {
			return false
		}
		right, wrong = right+a, wrong+c
	}
	return wrong < 4*right+float64(time.Millisecond)
}

// may is fits for a counter that goes on without a name, and no faster than the
// node's cores allow.
func (s *State) may(l *line, sample *metric.Sample) (cost float64, ok bool) {
	cost, ok = s.fits(l, sample)
	cpu, _ := sample.Values.Get(metric.CPUUsage)
	i, o := &l.instance, &sample.Instance
	if !ok || cost >= unproven || i.ID != "" && o.ID != "" || i.Inode != 0 && o.Inode != 0 {
		return cost, false
	}
	elapsed := float64(reportTime(sample) - l.time)
	if s.cores > 0 && !s.adrift(l) && cpu-l.cpu > s.cores*(elapsed+float64(250*time.Millisecond)) {
		return cost, false
	}
	return cost, true
}

// close reports whether the counters of two lines are so near to each other that
// they may be mixed up.
func (s *State) close(t *track) bool {
	for i := range t.lines {
		for j := range t.lines[:i] {
			if s.cores > 0 && math.Abs(t.lines[i].cpu-t.lines[j].cpu) < s.cores*float64(time.Minute) {
				return true
			}
		}
	}
	return false
}
