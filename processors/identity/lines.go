package identity

import (
	"math"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// match fills s.candidates with the samples of t and gives each its line, a new
// one where none fits.
func (s *State) match(t *track, b *metric.Batch) {
	s.candidates = s.candidates[:0]
	for i := t.first; i >= 0; i = s.next[i] {
		s.candidates = append(s.candidates, candidate{sample: i, line: -1})
	}
	// Fast path: one sample, and the line that was believed last goes on.
	if len(s.candidates) == 1 && len(t.lines) == 1 {
		if _, ok := t.lines[0].fits(&b.Samples[t.first], s.cores); ok {
			s.candidates[0].line = 0
			return
		}
	}
	limit := s.memory(b)
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool { return s.clock-l.seen > limit })
	for { // the best pair first; there are seldom more than two of each
		bestCost, bestC, bestL := math.Inf(1), -1, -1
		for ci := range s.candidates {
			if s.candidates[ci].line >= 0 {
				continue
			}
			for li := range t.lines {
				if s.taken(li) {
					continue
				}
				cost, ok := t.lines[li].fits(&b.Samples[s.candidates[ci].sample], s.cores)
				if ok && cost < bestCost {
					bestCost, bestC, bestL = cost, ci, li
				}
			}
		}
		if bestC < 0 {
			break
		}
		s.candidates[bestC].line = bestL
	}
	for ci := range s.candidates {
		c := &s.candidates[ci]
		if c.line >= 0 {
			continue
		}
		sample := &b.Samples[c.sample]
		s.lastID++
		t.lines = append(t.lines, line{id: s.lastID, instance: sample.Instance, cpu: -1, seen: s.clock, lost: metric.Measured})
		c.line = len(t.lines) - 1
	}
}

func (s *State) taken(line int) bool {
	for i := range s.candidates {
		if s.candidates[i].line == line {
			return true
		}
	}
	return false
}

// A start that differs outweighs any distance between counters; a counter that
// fell outweighs that only just less.
const (
	startMismatch = 1e18
	counterFell   = 1e17
)

// fits reports whether sample may be the line's next report, and how badly it
// fits: the distance of its counter, in nanoseconds, from where the line was
// heading, and a large sum more where the starts differ. Of several
// assignments the one with the smallest such distances is taken; the sum of
// increases would not tell them apart, being the same for all.
func (l *line) fits(sample *metric.Sample, cores float64) (cost float64, ok bool) {
	i, o := &l.instance, &sample.Instance
	switch {
	case i.UID != "" && o.UID != "" && i.UID != o.UID,
		i.ID != "" && o.ID != "" && i.ID != o.ID,
		i.Path != "" && o.Path != "" && i.Path != o.Path,
		i.Inode != 0 && o.Inode != 0 && i.Inode != o.Inode:
		return 0, false
	}
	named := i.ID != "" && o.ID != "" || i.Inode != 0 && o.Inode != 0
	if i.Start != 0 && o.Start != 0 && i.Start != o.Start {
		cost = startMismatch
	}
	cpu, reported := sample.Values.Get(metric.CPUUsage)
	if !reported || l.cpu < 0 || cpu == 0 { // a 0 may mean "unread": it proves nothing
		return cost, true
	}
	elapsed := float64(reportTime(sample) - l.time)
	if named {
		return cost + math.Abs(cpu-l.cpu-l.rate*elapsed), true
	}
	switch {
	case cpu < l.cpu && o.Start != 0 && o.Start <= l.time:
		return cost + counterFell, true // a reset: it began before the line's last report
	case elapsed < 0 && cpu <= l.cpu: // an older reading of the same line
	case cpu < l.cpu:
		return 0, false
	case elapsed == 0 && cpu != l.cpu:
		return 0, false
	case elapsed < 0 && cpu > l.cpu:
		return 0, false
	case o.Start > l.time && (cores <= 0 || cpu <= cores*float64(reportTime(sample)-o.Start)):
		return 0, false // it began after the line's last report, and has had time for its counter
	}
	return cost + math.Abs(cpu-l.cpu-l.rate*elapsed), true
}

// follow brings a line up to its new report.
func (s *State) follow(l *line, sample *metric.Sample) {
	o := &sample.Instance
	l.seen = s.clock
	l.instance.Processes = o.Processes
	cpu, ok := sample.Values.Get(metric.CPUUsage)
	// A start never moves later while the counter goes on.
	if o.Start != 0 && (l.instance.Start == 0 || o.Start < l.instance.Start || ok && cpu < l.cpu && cpu > 0) {
		l.instance.Start, l.instance.Origin = o.Start, o.Origin
	}
	if o.UID != "" {
		l.instance.UID = o.UID
	}
	if o.ID != "" {
		l.instance.ID = o.ID
	}
	if o.Path != "" {
		l.instance.Path, l.instance.Inode = o.Path, o.Inode
	}
	at := reportTime(sample)
	if !ok || cpu == 0 && l.cpu > 0 {
		return
	}
	switch {
	case l.cpu < 0:
		l.cpu, l.time = cpu, at
	case at > l.time:
		if cpu > l.cpu {
			l.rate, l.still = (cpu-l.cpu)/float64(at-l.time), 0
		} else {
			l.rate = 0
			l.still++
		}
		l.cpu, l.time = cpu, at
	}
}

// hear takes in what the batch's witness says of the candidates: which counter
// belongs to which pod UID and start. Both views come from one cache of the
// kubelet's, so the right pair's counters are equal or next to each other.
func (s *State) hear(t *track, b *metric.Batch) {
	if b.Witness == nil || len(s.candidates) < 2 {
		return
	}
	e := b.Samples[t.first].Entity
	for ci := range s.candidates {
		c := &s.candidates[ci]
		l := &t.lines[c.line]
		if l.instance.UID != "" {
			continue
		}
		sample := &b.Samples[c.sample]
		best, second, found := math.Inf(1), math.Inf(1), -1
		for wi := range b.Witness.Samples {
			w := &b.Witness.Samples[wi]
			if w.Entity != e || w.Instance.UID == "" {
				continue
			}
			d := distance(sample, w)
			if d < best {
				best, second, found = d, best, wi
			} else if d < second {
				second = d
			}
		}
		// Believed only if this line's counter is plainly the witness's, and
		// the next best is plainly not.
		if found < 0 || best > float64(time.Second)*8 || second < 4*best+float64(20*time.Millisecond) {
			continue
		}
		if s.nearer(b, &b.Witness.Samples[found], c.sample, best) {
			continue
		}
		w := &b.Witness.Samples[found].Instance
		l.instance.UID = w.UID
		if l.instance.Start == 0 {
			l.instance.Start, l.instance.Origin = w.Start, w.Origin
		}
	}
}

// nearer reports whether another candidate is as near to the witness w.
func (s *State) nearer(b *metric.Batch, w *metric.Sample, but int32, d float64) bool {
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
