package manager

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// pool keeps batches to be filled again. The sources of one kind share one pool: a batch is in
// use for milliseconds of an interval, so thousands of sources need a few dozen. A batch for each
// source would take hundreds of megabytes.
//
// The memory of a batch is kept apart from it. A batch gets it with its first sample, so a
// batch that waits for an answer has none.
type pool struct {
	put      func(*metric.Batch) // recycle, bound once
	allocate func(*metric.Batch) // ensureBuffers, bound once

	mu struct {
		sync.Mutex
		free    []*metric.Batch // without buffers
		buffers []buffers       // the last is used first: it is in the processor's caches
	}
}

// buffers are the memory of a batch.
type buffers struct {
	samples  []metric.Sample
	verdicts []metric.Verdict
}

// fewVerdicts is how many verdicts a batch always has memory for. A node that is read for the
// first time, or cannot be read, has two verdicts of half a kilobyte for each entity, which is far
// more than its samples; most rounds have none. Memory that a round did not use is freed.
const fewVerdicts = 16

// manySamples is more than nearly all nodes have. Memory for more that a round did not use is freed,
// so that one node cannot enlarge all buffers.
const manySamples = 4096

// newPool returns a pool that keeps at most size batches, and as many buffers.
func newPool(size int) *pool {
	p := &pool{}
	p.mu.free, p.mu.buffers = make([]*metric.Batch, 0, size), make([]buffers, 0, size)
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

// ensureBuffers gives a batch without samples the memory of an earlier one, if there is some.
func (p *pool) ensureBuffers(b *metric.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := pop(&p.mu.buffers)
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
	if cap(b.Samples) > manySamples && 4*len(b.Samples) < cap(b.Samples) {
		b.Samples = nil
	}
	b.Reset()
	b.Resolution, b.Exhaustive, b.Cores = 0, false, 0
	r := buffers{b.Samples, b.Verdicts}
	b.Samples, b.Verdicts = nil, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	push(&p.mu.free, b)
	if cap(r.samples) > 0 || cap(r.verdicts) > 0 {
		push(&p.mu.buffers, r)
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

// push appends v if its capacity suffices.
func push[T any](to *[]T, v T) {
	if len(*to) < cap(*to) {
		*to = append(*to, v)
	}
}
