package manager

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// pool keeps batches to be filled again. The sources of one kind share one: a
// batch is in use for milliseconds of an interval, so a fleet of thousands
// needs a few dozen, where one spare batch for each source would hold hundreds
// of megabytes between rounds.
//
// The memory of a batch, its room, is kept apart from it, and is lent when the first
// sample is added. Of the sources that are read together, those whose answers have yet
// to come have no room, and the few that are worked on go round in the same.
type pool struct {
	put      func(*metric.Batch) // recycle, bound once
	allocate func(*metric.Batch) // furnish, bound once

	mu struct {
		sync.Mutex
		free  []*metric.Batch // without room
		rooms []room          // the last used first, for its memory is warm
	}
}

// room is the memory of a batch.
type room struct {
	samples  []metric.Sample
	verdicts []metric.Verdict
}

// fewVerdicts is how many verdicts a batch always has room for. A node that is read for
// the first time, or cannot be read, has two for each entity and half a kilobyte for
// each, which is far more than its samples; most rounds have none. Room that was not
// used in a round is given up.
const fewVerdicts = 16

// newPool returns a pool that keeps at most size batches, and as many rooms.
func newPool(size int) *pool {
	p := &pool{}
	p.mu.free, p.mu.rooms = make([]*metric.Batch, 0, size), make([]room, 0, size)
	p.put, p.allocate = p.recycle, p.ensureBuffers
	return p
}

// get returns an empty batch, which gets its memory later.
func (p *pool) get() *metric.Batch {
	p.mu.Lock()
	b := pop(&p.mu.free)
	p.mu.Unlock()
	if b == nil {
		b = &metric.Batch{}
	}
	b.SetAllocator(p.allocate)
	return b
}

// ensureBuffers gives a batch that has no sample yet the memory of an earlier one, if there is
// some.
func (p *pool) ensureBuffers(b *metric.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := pop(&p.mu.rooms)
	b.Samples, b.Verdicts = r.samples, append(r.verdicts, b.Verdicts...)
}

// recycle takes b and its CrossCheck back.
func (p *pool) recycle(b *metric.Batch) {
	if b.CrossCheck != nil {
		p.recycle(b.CrossCheck)
	}
	if cap(b.Verdicts) > fewVerdicts && 4*len(b.Verdicts) < cap(b.Verdicts) {
		b.Verdicts = nil
	}
	b.Reset()
	b.Resolution, b.Exhaustive, b.Cores = 0, false, 0
	r := room{b.Samples, b.Verdicts}
	b.Samples, b.Verdicts = nil, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	push(&p.mu.free, b)
	if cap(r.samples) > 0 || cap(r.verdicts) > 0 {
		push(&p.mu.rooms, r)
	}
}

// pop takes the last element; the zero value if there is none.
func pop[T any](from *[]T) (last T) {
	if n := len(*from); n > 0 {
		last, (*from)[n-1] = (*from)[n-1], last
		*from = (*from)[:n-1]
	}
	return last
}

// push appends v if there is room for it.
func push[T any](to *[]T, v T) {
	if len(*to) < cap(*to) {
		*to = append(*to, v)
	}
}
