package manager

import (
	"context"
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// item is what waits for a sink: a batch to write or, where batch is nil, a
// source to forget.
type item struct {
	batch  *metric.Batch
	facts  *metric.Facts // with the batch, for a recorder
	now    time.Time
	source string
	node   metric.NodeName
}

// queue holds what waits for one sink, in order. Batches are bounded. A source
// to forget is always taken, for a lost one would be memory never freed; there
// are no more of them than there were sources.
type queue struct {
	limit int // batches

	mu struct {
		sync.Mutex
		waiting sync.Cond // for something to write
		room    sync.Cond // for room for another batch
		ring    []item    // of which count, from head, are in use
		head    int
		count   int
		batches int
		closed  bool
	}
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.mu.ring = make([]item, min(limit, 16))
	q.mu.waiting.L, q.mu.room.L = &q.mu, &q.mu
	return q
}

// await waits for room for another batch, until ctx ends.
func (q *queue) await(ctx context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.batches < q.limit {
		return
	}
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.mu.room.Broadcast()
	})()
	for q.mu.batches == q.limit && !q.mu.closed && ctx.Err() == nil {
		q.mu.room.Wait()
	}
}

// offer appends an item with a batch and reports whether there was room for it.
func (q *queue) offer(it item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed || q.mu.batches == q.limit {
		return false
	}
	q.mu.batches++
	q.push(it)
	return true
}

// forget appends a source to forget.
func (q *queue) forget(source string, node metric.NodeName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.mu.closed {
		q.push(item{source: source, node: node})
	}
}

func (q *queue) push(it item) {
	if q.mu.count == len(q.mu.ring) {
		ring := make([]item, 2*len(q.mu.ring))
		n := copy(ring, q.mu.ring[q.mu.head:])
		copy(ring[n:], q.mu.ring[:q.mu.head])
		q.mu.ring, q.mu.head = ring, 0
	}
	q.mu.ring[(q.mu.head+q.mu.count)%len(q.mu.ring)] = it
	q.mu.count++
	q.mu.waiting.Signal()
}

// next waits for the oldest item and removes it. It reports false when the
// queue is closed and empty.
func (q *queue) next() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.mu.count == 0 {
		if q.mu.closed {
			return item{}, false
		}
		q.mu.waiting.Wait()
	}
	it := q.mu.ring[q.mu.head]
	q.mu.ring[q.mu.head] = item{}
	q.mu.head = (q.mu.head + 1) % len(q.mu.ring)
	q.mu.count--
	if it.batch != nil {
		q.mu.batches--
		q.mu.room.Signal()
	}
	return it, true
}

// close lets next end once the queue is empty. Nothing is taken any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.closed = true
	q.mu.waiting.Broadcast()
}

// length returns how many batches wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.batches
}
