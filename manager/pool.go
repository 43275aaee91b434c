package manager

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// pool keeps batches to be filled again. The sources of one kind share one: a
// batch is in use for milliseconds of an interval, so a fleet of thousands
// needs a few dozen, where one spare batch for each source would hold hundreds
// of megabytes between rounds.
type pool struct {
	put func(*metric.Batch) // recycle, bound once

	mu struct {
		sync.Mutex
		free []*metric.Batch // the last used first, for its memory is warm
	}
}

// fewVerdicts is how many verdicts a batch always has room for. A node that is read for
// the first time, or cannot be read, has two for each entity and half a kilobyte for
// each, which is far more than its samples; most rounds have none. Room that was not
// used in a round is given up.
const fewVerdicts = 16

// newPool returns a pool that keeps at most size batches.
func newPool(size int) *pool {
	p := &pool{}
	p.mu.free = make([]*metric.Batch, 0, size)
	p.put = p.recycle
	return p
}

// get returns an empty batch.
func (p *pool) get() *metric.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.mu.free)
	if n == 0 {
		return &metric.Batch{}
	}
	b := p.mu.free[n-1]
	p.mu.free[n-1] = nil
	p.mu.free = p.mu.free[:n-1]
	return b
}

// recycle takes b and its witness back.
func (p *pool) recycle(b *metric.Batch) {
	if b.Witness != nil {
		p.recycle(b.Witness)
	}
	if cap(b.Verdicts) > fewVerdicts && 4*len(b.Verdicts) < cap(b.Verdicts) {
		b.Verdicts = nil
	}
	b.Reset()
	b.Clock, b.Exhaustive, b.Cores = 0, false, 0
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.free) < cap(p.mu.free) {
		p.mu.free = append(p.mu.free, b)
	}
}
