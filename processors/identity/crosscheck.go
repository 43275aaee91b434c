package identity

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// applyCrossCheck applies the batch's second read to the candidates: it shows which counter
// belongs to which pod UID and start. The kubelet answers both reads from one cache, so the
// counters of a matching pair are equal or next to each other. A sample that was assigned to
// the line of another UID or start moves to its own line.
func (identifier *Identifier) applyCrossCheck() {
	if identifier.batch.CrossCheck == nil {
		return
	}
	for ci := range identifier.candidates {
		c := &identifier.candidates[ci]
		if w := identifier.crossCheckOf(c.sample); w != nil {
			identifier.giveName(c, w)
		}
	}
	// A candidate begins a new line if a cross-check gave its line to another one.
	for ci := range identifier.candidates {
		for cj := range identifier.candidates {
			if c := &identifier.candidates[ci]; ci != cj && c.line == identifier.candidates[cj].line && c.match != named {
				identifier.startLine(c)
			}
		}
	}
}

// giveName gives a candidate the line of the instance that the second read names, and its UID and
// start. If the second read names one line for two samples, both get new ones.
func (identifier *Identifier) giveName(c *candidate, w *metric.Instance) {
	if !identifier.t.agrees(identifier.line(c), w) {
		identifier.moveToLine(c, w)
	}
	for i := range identifier.candidates {
		if x := &identifier.candidates[i]; x != c && x.match == named && x.line == c.line { // nothing shows which of the two it was
			l := *identifier.line(x)
			identifier.startOwnLine(x)
			identifier.startLine(c)
			own := identifier.line(x)
			own.uid, own.start, own.origin, own.firstAnswer = l.uid, l.start, l.origin, l.firstAnswer
		}
	}
	wasSwapped := c.match == swapped
	c.match = named
	if l := identifier.line(c); wasSwapped && (l.uid == "" || l.start == 0) {
		identifier.startOwnLine(c) // the second read names the sample, not the line it was assigned to
	}
	l := identifier.line(c)
	l.uid = w.UID
	if l.start == 0 {
		l.start, l.origin = w.Start, w.Origin
	}
}

// moveToLine assigns a candidate to the line that the second read names; to a new one if there is
// none.
func (identifier *Identifier) moveToLine(c *candidate, w *metric.Instance) {
	c.line = -1
	for li := range identifier.t.lines {
		if l := &identifier.t.lines[li]; l.uid != "" && l.start != 0 && identifier.t.agrees(l, w) {
			c.line = li
		}
	}
	if c.line < 0 {
		identifier.startLine(c)
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
	d := run.AssignmentDistance(l.start, w.Start)
	return d <= int64(run.Jitter) && !slices.ContainsFunc(t.lines, func(o line) bool {
		return o.uid == w.UID && o.start != 0 && run.AssignmentDistance(o.start, w.Start) < d
	})
}

// crossCheckOf returns the instance that the second read reports for a sample, if exactly one
// counter of the second read matches, and it matches no other candidate; else nil.
func (identifier *Identifier) crossCheckOf(i int32) *metric.Instance {
	b := identifier.batch
	best, second, found := math.Inf(1), math.Inf(1), -1
	for wi := range b.CrossCheck.Samples {
		w := &b.CrossCheck.Samples[wi]
		if w.Entity != b.Samples[i].Entity || w.Instance.UID == "" {
			continue
		}
		d := distanceOf(&b.Samples[i], w)
		if d < best {
			best, second, found = d, best, wi
		} else if d < second {
			second = d
		}
	}
	if found < 0 || best > float64(time.Second)*8 || second < 4*best+float64(20*time.Millisecond) {
		return nil
	}
	if identifier.otherIsAsNear(&b.CrossCheck.Samples[found], i, best) {
		return nil
	}
	return &b.CrossCheck.Samples[found].Instance
}

// otherIsAsNear reports whether a candidate other than but is about as near to the second read
// w as the distance d.
func (identifier *Identifier) otherIsAsNear(w *metric.Sample, except int32, d float64) bool {
	for _, c := range identifier.candidates {
		if c.sample != except && distanceOf(&identifier.batch.Samples[c.sample], w) <= 4*d+float64(20*time.Millisecond) {
			return true
		}
	}
	return false
}

// distanceOf returns how far apart two samples' CPU counters are, in nanoseconds.
func distanceOf(a, b *metric.Sample) float64 {
	x, okX := a.Values.Get(metric.CPUUsage)
	y, okY := b.Values.Get(metric.CPUUsage)
	if !okX || !okY {
		return math.Inf(1)
	}
	return math.Abs(x - y)
}
