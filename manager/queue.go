package manager

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// item is what waits for a sink: a batch to write or, if batch is nil, a source to forget.
type item struct {
	batch  *metric.Batch
	facts  *cluster.Facts // with the batch, for a recorder
	now    time.Time
	source string
	node   metric.NodeName
}

// queue holds what waits for one sink, in order. Batches are bounded. A source to forget is
// always taken, because its memory would never be freed; there are no more of them than there
// were sources.
//
// No goroutine waits for items. offer and forget report whether their caller must take the items
// out (call next) until the queue is empty.
type queue struct {
	limit int           // batches
	ended chan struct{} // closed when the queue is closed and empty

	mu struct {
		sync.Mutex
		space    sync.Cond // for another batch
		items    []item    // those before head were taken out
		head     int
		batches  int // in items
		closed   bool
		draining bool // a goroutine takes the items out
	}
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit, ended: make(chan struct{})}
	q.mu.space.L = &q.mu
	return q
}

// await waits for space for another batch, until ctx ends. It reports whether there is space.
func (q *queue) await(ctx context.Context) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.batches < q.limit {
		return !q.mu.closed
	}
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.mu.space.Broadcast()
	})()
	for q.mu.batches == q.limit && !q.mu.closed && ctx.Err() == nil {
		q.mu.space.Wait()
	}
	return q.mu.batches < q.limit && !q.mu.closed
}

// offer appends an item with a batch, if there is space for it. drain reports that the caller must
// take the items out.
func (q *queue) offer(it item) (taken, drain bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed || q.mu.batches == q.limit {
		return false, false
	}
	q.mu.batches++
	return true, q.push(it)
}

// forget appends a source to forget. drain reports that the caller must take the items out.
func (q *queue) forget(source string, node metric.NodeName) (drain bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.mu.closed && q.push(item{source: source, node: node})
}

func (q *queue) push(it item) (drain bool) {
	q.mu.items = append(q.mu.items, it)
	drain = !q.mu.draining
	q.mu.draining = true
	return drain
}

// next removes the oldest item. If it returns false there is none, and another goroutine drains
// the items that come later.
func (q *queue) next() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.items) == 0 {
		q.mu.draining = false
		q.endIfDone()
		return item{}, false
	}
	it := q.mu.items[q.mu.head]
	q.mu.items[q.mu.head] = item{}
	if q.mu.head++; 2*q.mu.head >= len(q.mu.items) {
		q.mu.items, q.mu.head = slices.Delete(q.mu.items, 0, q.mu.head), 0
	}
	if it.batch != nil {
		q.mu.batches--
		q.mu.space.Signal()
	}
	return it, true
}

// close makes the queue end when it is empty. It takes no more items.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.closed = true
	q.endIfDone()
}

func (q *queue) endIfDone() {
	if !q.mu.closed || q.mu.draining {
		return
	}
	select {
	case <-q.ended:
	default:
		close(q.ended)
	}
}

// length returns how many batches wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.batches
}
