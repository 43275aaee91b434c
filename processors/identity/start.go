package identity

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// stillness is how many new readings that are equal to the last digit show that a counter is at
// rest.
const stillness = 3

// stillFor returns in how many new readings, at most stillness, the counter of the line did not
// move, sample included.
func (l *core) stillFor(sample *metric.Sample) uint8 {
	switch cpu, ok := sample.Values.Get(metric.CPUUsage); {
	case !ok || cpu == 0 || l.cpu < 0 || cpu < l.cpu:
		return 0
	case reportTime(sample) <= l.time:
		return l.still
	case cpu > l.cpu:
		return 0
	}
	return min(l.still+1, stillness)
}

// applyStart prefers the later start, and where starts are known and equal the counter that
// moves. Where a start is unknown, the counter that moves is chosen without evidence. The line
// that won because its counter moved may rest later.
func (s *Identifier) applyStart(t *track, facts *cluster.Facts, b *metric.Batch) {
	if s.remaining() < 2 {
		return
	}
	s.applyPresentRun(t, facts, b)
	latest := -1
	for i, c := range s.candidates {
		if c.rejected || t.start(c, b) == 0 {
			continue
		}
		if latest < 0 || t.start(c, b) > t.start(s.candidates[latest], b) {
			latest = i
		}
	}
	s.applyBirth(t, facts, b)
	tolerance := int64(max(2*b.Resolution, 100*time.Millisecond))
	if latest >= 0 {
		for i := range s.candidates {
			c := &s.candidates[i]
			if start := t.start(*c, b); !c.rejected && start != 0 && isLater(t.start(s.candidates[latest], b), start, tolerance) {
				s.rejectFor(t, c, s.candidates[latest], b, metric.OlderStart, ruleStart)
			}
		}
	}
	moving := -1
	for i, c := range s.candidates {
		if l := &t.lines[c.line]; !c.rejected && l.rate > 0 && l.stillFor(&b.Samples[c.sample]) == 0 {
			moving = i
		}
	}
	if moving < 0 {
		return
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		l := &t.lines[c.line]
		if c.rejected || l.id == t.moved || l.stillFor(&b.Samples[c.sample]) < stillness {
			continue
		}
		t.moved = t.lines[s.candidates[moving].line].id
		if t.start(*c, b) != 0 && t.start(s.candidates[moving], b) != 0 {
			s.rejectFor(t, c, s.candidates[moving], b, metric.OlderStart, ruleMovement)
		} else if l.id == t.chosen {
			t.chosen = t.moved // still without evidence: the younger one may rest
		}
	}
}

// applyPresentRun rejects candidates that started later than the run that the API server names,
// if it would name them by now: their start is by a clock that was put back since. But if the
// other one moved since the named run did, the API server may be late for longer.
func (s *Identifier) applyPresentRun(t *track, facts *cluster.Facts, b *metric.Batch) {
	for i := range s.candidates {
		present := &s.candidates[i]
		if present.rejected || present.run == nil {
			continue
		}
		rests := t.lines[present.line].stillFor(&b.Samples[present.sample])
		for j := range s.candidates {
			c := &s.candidates[j]
			l, start := &t.lines[c.line], t.start(*c, b)
			if c.rejected || c.run != nil || start-t.start(*present, b) <= int64(startJitter) || !s.wouldKnow(facts, start, l.origin, b) {
				continue
			}
			if rests <= l.stillFor(&b.Samples[c.sample]) && (rests < stillness || l.id != t.chosen) {
				s.rejectFor(t, c, *present, b, metric.OldContainer, ruleStart)
			}
		}
	}
}

// isLater reports whether one start is later than another by more than tolerance. Two starts that
// one clock cut to whole seconds order strictly.
func isLater(start, other, tolerance int64) bool {
	return start-other > tolerance || start > other && metric.IsWholeSecond(start) && metric.IsWholeSecond(other)
}

// startJitter is by how much a reported start may be wrong, with some margin.
const startJitter = 5 * time.Second

// applyBirth decides where one candidate has no start. It wins in two cases: its line appeared
// after the other one, with no more on its counter than it can have used since the previous
// answer; or the other candidate's start is long before that of the present run, as the API
// server reports it.
func (s *Identifier) applyBirth(t *track, facts *cluster.Facts, b *metric.Batch) {
	for i := range s.candidates {
		young := &s.candidates[i]
		if young.rejected || t.start(*young, b) != 0 {
			continue
		}
		y := &t.lines[young.line]
		for j := range s.candidates {
			old := &s.candidates[j]
			if o := &t.lines[old.line]; !old.rejected && y.born && o.first < y.first {
				s.rejectFor(t, old, *young, b, metric.OlderStart, ruleStart)
			}
		}
		c := facts.PodOf(b, int(young.sample)).Container(b.Samples[young.sample].Entity.Name)
		if c == nil || c.State != cluster.StateRunning || c.StartedAt.IsZero() {
			continue
		}
		for j := range s.candidates {
			old := &s.candidates[j]
			if start := t.start(*old, b); !old.rejected && start != 0 && c.StartedAt.UnixNano()-start > int64(startJitter) {
				s.rejectFor(t, old, *young, b, metric.OldContainer, ruleStart)
			}
		}
	}
}

// futureStart is how far a start must lie after its own reading to show that the node's clock
// was put back in between. A start that jitters, or one beside a cached reading, stays below
// it.
const futureStart = 35 * time.Second

// putBack is added to starts by a clock that was put back since. So they are before all others,
// and in their order: they are by one clock.
const putBack = -4_000_000_000 * int64(time.Second)

// start returns when the candidate's instance began; 0 if that is unknown, or known only from a
// cgroup's modification time.
func (t *track) start(c candidate, b *metric.Batch) int64 {
	l, in := &t.lines[c.line], &b.Samples[c.sample].Instance
	start, origin, path, id := l.start, l.origin, l.path, l.container
	if start == 0 {
		start, origin, path, id = in.Start, in.Origin, in.Path, in.ID
	}
	if start == 0 || origin == metric.StartCgroup || origin == metric.StartReported && path != "" && id == "" {
		return 0
	}
	start += l.shift
	if read := b.Samples[c.sample].Times[metric.CPU]; read != 0 && start-read > int64(futureStart) {
		if l.born && !slices.ContainsFunc(t.lines, func(o line) bool { return o.first > l.first }) {
			return read // it appeared last, so it is younger than the others, and only its start is wrong
		}
		return start + putBack // by a clock that was put back since
	}
	return start
}
