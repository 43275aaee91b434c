package identity

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// grouping says which samples of the current batch belong to the same entity.
type grouping struct {
	batch *metric.Batch
	size  int // number of samples
	// chained says that an entity has several samples, a part or a partial sample. The fields
	// below are valid only if it is true.
	chained       bool
	first, winner []int32 // by slot: the first sample of the entity, and the chosen one; -1 if none
	next          []int32 // the next sample of the same entity; -1 at the end
}

// groupSamples chains the samples of each entity. A second call with the same batch does
// nothing.
func (s *Identifier) groupSamples(b *metric.Batch, now time.Time) {
	if s.batch == b && s.size == len(b.Samples) {
		return
	}
	if s.now.IsZero() {
		s.now = now
	}
	if !b.Failed() {
		s.clock += now.Sub(s.now)
		s.answers++
	}
	s.now = now
	if s.node.Follow(b) {
		s.clockStepped = s.clock
		for k := range s.tracks {
			s.tracks[k].putForward(int64(s.node.StepSize))
		}
	}
	s.drift = s.clockUnsure(s.lastAnswer)
	s.batch, s.size, s.chained = b, len(b.Samples), false
	b.AssignSlots(&s.slots)
	if b.Failed() {
		return
	}
	if s.chained = s.assignTracks(b, s.lastAnswer, s.answers); s.chained {
		s.chain(b)
	}
}

func (e *entry) putForward(by int64) {
	e.shift += by
	if e.full != nil {
		for i := range e.full.lines {
			e.full.lines[i].shift += by
		}
	}
}

// chain fills in first and next.
func (s *Identifier) chain(b *metric.Batch) {
	s.first, s.winner = none(s.first, len(s.tracks)), none(s.winner, len(s.tracks))
	s.next = none(s.next, len(b.Samples))
	for i := len(b.Samples) - 1; i >= 0; i-- {
		k := trackOf(b, i)
		if followsAnother(&b.Samples[i]) {
			continue
		}
		next := s.first[k]
		if next >= 0 && isSameLine(&b.Samples[i], &b.Samples[next]) { // the node sent one line twice
			b.Samples[next].Reject(metric.Discontinuous)
			next = s.next[next]
		}
		s.next[i], s.first[k] = next, int32(i)
	}
	for k, first := range s.first {
		if first < 0 && s.tracks[k].id != 0 {
			s.open(k, s.lastAnswer, s.answers-1) // the batch does not report it
		}
	}
}

// isSameLine reports whether two samples of an entity are equal to the last digit. Two instances never
// are: a counter has nanoseconds.
func isSameLine(a, b *metric.Sample) bool {
	x, _ := a.Values.Get(metric.MemoryWorkingSet)
	y, _ := b.Values.Get(metric.MemoryWorkingSet)
	return a.Instance == b.Instance && x == y && !isUnread(a) && isSameReading(a, b)
}

// none returns a list of n times -1. It reuses the memory of old.
func none(old []int32, n int) []int32 {
	list := slices.Grow(old[:0], n)[:n]
	for i := range list {
		list[i] = -1
	}
	return list
}

// followsAnother reports whether a sample is judged together with its entity's main sample: it
// is a part or a partial sample.
func followsAnother(sample *metric.Sample) bool {
	return sample.Entity.Part != "" || isPartialSample(sample)
}

// leads reports whether sample i is the first of its entity. The entity is judged when its
// first sample is reached.
func (s *Identifier) leads(b *metric.Batch, i int) bool {
	return !s.chained || !followsAnother(&b.Samples[i]) && s.first[trackOf(b, i)] == int32(i)
}

// alone reports whether sample i, which leads, is the only sample of its entity.
func (s *Identifier) alone(i int) bool { return !s.chained || s.next[i] < 0 }

// after returns the next sample of i's entity; -1 if there is none.
func (s *Identifier) after(i int32) int32 {
	if !s.chained {
		return -1
	}
	return s.next[i]
}
