package identity

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// applyCrossCheck applies the batch's second read to the candidates: it says which counter
// belongs to which pod UID and start. The kubelet answers both reads from one cache, so the
// counters of a matching pair are equal or next to each other. A sample that was assigned to
// the line of another UID or start moves to its own line.
func (s *Identifier) applyCrossCheck(t *track, b *metric.Batch) {
	if b.CrossCheck == nil || len(s.candidates) < 2 {
		return
	}
	for ci := range s.candidates {
		c := &s.candidates[ci]
		w := s.crossCheckOf(t, b, c.sample)
		if w == nil {
			if w = s.onlyCrossCheckOf(b, ci); w == nil {
				continue
			}
		}
		if l := &t.lines[c.line]; !t.agrees(l, w) {
			c.line = -1
			for li := range t.lines {
				if l := &t.lines[li]; l.uid != "" && l.start != 0 && t.agrees(l, w) {
					c.line = li
				}
			}
			if c.line < 0 {
				s.startLine(t, c, &b.Samples[c.sample])
			}
		}
		for cj := range s.candidates[:ci] {
			if x := &s.candidates[cj]; x.crossChecked && x.line == c.line { // nothing says which of the two it was
				l := t.lines[x.line]
				s.startOwnLine(t, x, b)
				s.startLine(t, c, &b.Samples[c.sample])
				own := &t.lines[x.line]
				own.uid, own.start, own.origin, own.first = l.uid, l.start, l.origin, l.first
			}
		}
		c.crossChecked = true
		if l := &t.lines[c.line]; c.swapped && (l.uid == "" || l.start == 0) {
			s.startOwnLine(t, c, b) // the second read names the sample, not the line it was assigned to
		}
		l := &t.lines[c.line]
		l.uid = w.UID
		if l.start == 0 {
			l.start, l.origin = w.Start, w.Origin
		}
	}
	// A candidate begins a new line if a cross-check gave its line to another one.
	for ci := range s.candidates {
		for cj := range s.candidates {
			if c := &s.candidates[ci]; ci != cj && c.line == s.candidates[cj].line && !c.crossChecked {
				s.startLine(t, c, &b.Samples[c.sample])
			}
		}
	}
}

// agrees reports whether line l may be the instance that a second read names: neither UID nor
// start contradict it, and no other line of that UID has a nearer start.
func (t *track) agrees(l *line, w *metric.Instance) bool {
	if l.uid != "" && l.uid != w.UID {
		return false
	}
	if l.start == 0 || w.Start == 0 {
		return true
	}
	d := startDistance(l.start, w.Start)
	return d <= float64(startJitter) && !slices.ContainsFunc(t.lines, func(o line) bool {
		return o.uid == w.UID && o.start != 0 && startDistance(o.start, w.Start) < d
	})
}

// crossCheckOf returns the instance that the second read reports for a sample, if exactly one
// counter of the second read matches, and it matches no other candidate; else nil.
func (s *Identifier) crossCheckOf(t *track, b *metric.Batch, i int32) *metric.Instance {
	best, second, found := math.Inf(1), math.Inf(1), -1
	for wi := range b.CrossCheck.Samples {
		w := &b.CrossCheck.Samples[wi]
		if w.Entity != b.Samples[t.first].Entity || w.Instance.UID == "" {
			continue
		}
		d := distance(&b.Samples[i], w)
		if d < best {
			best, second, found = d, best, wi
		} else if d < second {
			second = d
		}
	}
	if found < 0 || best > float64(time.Second)*8 || second < 4*best+float64(20*time.Millisecond) {
		return nil
	}
	if s.otherIsAsNear(b, &b.CrossCheck.Samples[found], i, best) {
		return nil
	}
	return &b.CrossCheck.Samples[found].Instance
}

// onlyCrossCheckOf returns the instance that the second read reports for candidate ci, if there
// are two candidates and two instances, and the counters allow only one assignment of them.
func (s *Identifier) onlyCrossCheckOf(b *metric.Batch, ci int) *metric.Instance {
	if len(s.candidates) != 2 || s.cores <= 0 || s.drift {
		return nil
	}
	mine, other := &b.Samples[s.candidates[ci].sample], &b.Samples[s.candidates[1-ci].sample]
	var second []*metric.Sample
	for wi := range b.CrossCheck.Samples {
		if w := &b.CrossCheck.Samples[wi]; w.Entity == mine.Entity && w.Instance.UID != "" {
			second = append(second, w)
		}
	}
	if len(second) != 2 {
		return nil
	}
	straight := s.canBecome(mine, second[0]) && s.canBecome(other, second[1])
	crossed := s.canBecome(mine, second[1]) && s.canBecome(other, second[0])
	switch {
	case straight == crossed:
		return nil
	case straight:
		return &second[0].Instance
	default:
		return &second[1].Instance
	}
}

// canBecome reports whether a sample and one of the second read, which is cut to the second, may
// have one counter: between the two it did not fall, and did not grow faster than the node's
// cores allow.
func (s *Identifier) canBecome(sample, w *metric.Sample) bool {
	if unreadCPU(sample) || unreadCPU(w) {
		return false
	}
	x, _ := sample.Values.Get(metric.CPUUsage)
	y, _ := w.Values.Get(metric.CPUUsage)
	least, most := float64(reportTime(w)-reportTime(sample)), float64(reportTime(w)-reportTime(sample)+int64(time.Second))
	return y-x <= max(0, s.cores*most) && x-y <= max(0, -s.cores*least)
}

// otherIsAsNear reports whether a candidate other than but is about as near to the second read
// w as the distance d.
func (s *Identifier) otherIsAsNear(b *metric.Batch, w *metric.Sample, but int32, d float64) bool {
	for _, c := range s.candidates {
		if c.sample != but && distance(&b.Samples[c.sample], w) <= 4*d+float64(20*time.Millisecond) {
			return true
		}
	}
	return false
}

// distance returns how far apart two samples' CPU counters are, in nanoseconds.
func distance(a, b *metric.Sample) float64 {
	x, okX := a.Values.Get(metric.CPUUsage)
	y, okY := b.Values.Get(metric.CPUUsage)
	if !okX || !okY {
		return math.Inf(1)
	}
	return math.Abs(x - y)
}
