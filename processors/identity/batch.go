package identity

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// grouping shows which samples of the current batch belong to the same entity.
type grouping struct {
	batch *metric.Batch
	size  int // number of samples
	// chained reports that an entity has several samples, a part or a partial sample. The fields
	// below are valid only if it is true.
	chained             bool
	firstSample, winner []int32 // by slot: the first sample of the entity, and the chosen one; -1 if none
	next                []int32 // the next sample of the same entity; -1 at the end
}

// groupSamples chains the samples of each entity. A second call with the same batch does
// nothing.
func (identifier *Identifier) groupSamples(b *metric.Batch, now time.Time) {
	if identifier.batch == b && identifier.size == len(b.Samples) {
		return
	}
	if identifier.now.IsZero() {
		identifier.now = now
	}
	if !b.Failed() {
		identifier.clock += now.Sub(identifier.now)
		identifier.answers++
	}
	identifier.now = now
	if identifier.node.Follow(b) {
		identifier.clockStepped = identifier.clock
		for k := range identifier.tracks {
			identifier.tracks[k].putForward(int64(identifier.node.StepSize))
		}
	}
	identifier.drift = identifier.clockUnsure(identifier.lastAnswer)
	identifier.batch, identifier.size, identifier.chained = b, len(b.Samples), false
	b.AssignSlots(&identifier.slots)
	if b.Failed() {
		return
	}
	if identifier.chained = identifier.assignTracks(b, identifier.lastAnswer, identifier.answers); identifier.chained {
		identifier.chain(b)
	}
}

func (e *entry) putForward(d int64) {
	e.shift += d
	if e.full != nil {
		for i := range e.full.lines {
			e.full.lines[i].shift += d
		}
	}
}

// chain fills in firstSample and next.
func (identifier *Identifier) chain(b *metric.Batch) {
	identifier.firstSample, identifier.winner = none(identifier.firstSample, len(identifier.tracks)), none(identifier.winner, len(identifier.tracks))
	identifier.next = none(identifier.next, len(b.Samples))
	for i := len(b.Samples) - 1; i >= 0; i-- {
		k := trackOf(b, i)
		if followsAnother(&b.Samples[i]) {
			continue
		}
		next := identifier.firstSample[k]
		if next >= 0 && isSameLine(&b.Samples[i], &b.Samples[next]) { // the node sent one line twice
			b.Samples[next].Reject(metric.Discontinuous)
			next = identifier.next[next]
		}
		identifier.next[i], identifier.firstSample[k] = next, int32(i)
	}
	for k, first := range identifier.firstSample {
		if first < 0 && identifier.tracks[k].id != 0 {
			identifier.open(k, identifier.lastAnswer, identifier.answers-1) // the batch does not report it
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
func (identifier *Identifier) leads(b *metric.Batch, i int) bool {
	return !identifier.chained || !followsAnother(&b.Samples[i]) && identifier.firstSample[trackOf(b, i)] == int32(i)
}

// alone reports whether sample i, which leads, is the only sample of its entity.
func (identifier *Identifier) alone(i int) bool { return !identifier.chained || identifier.next[i] < 0 }

// after returns the next sample of i's entity; -1 if there is none.
func (identifier *Identifier) after(i int32) int32 {
	if !identifier.chained {
		return -1
	}
	return identifier.next[i]
}
