package manager

import (
	"context"
	"sync"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// item is what waits for a sink: a batch to write or, where batch is nil, a
// source to forget.
type item struct {
	batch  *metric.Batch
	facts  *cluster.Facts // with the batch, for a recorder
	now    time.Time
	source string
	node   metric.NodeName
}

// queue holds what waits for one sink, in order. Batches are bounded. A source
// to forget is always taken, for a lost one would be memory never freed; there
// are no more of them than there were sources.
//
// No goroutine waits for items. offer and forget report whether nobody is taking items out;
// their caller must then do so until the queue is empty.
type queue struct {
	limit int           // batches
	ended chan struct{} // closed when the queue is closed and empty

	mu struct {
		sync.Mutex
		room    sync.Cond // for room for another batch
		ring    []item    // of which count, from head, are in use
		head    int
		count   int
		batches int
		closed  bool
		seenTo  bool // somebody takes out what there is
	}
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit, ended: make(chan struct{})}
	q.mu.ring = make([]item, min(limit, 16))
	q.mu.room.L = &q.mu
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

// offer appends an item with a batch, if there is room for it. It reports whether the
// caller is to see to it.
func (q *queue) offer(it item) (room, yours bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.closed || q.mu.batches == q.limit {
		return false, false
	}
	q.mu.batches++
	return true, q.push(it)
}

// forget appends a source to forget, and reports whether the caller is to see to it.
func (q *queue) forget(source string, node metric.NodeName) (yours bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.mu.closed && q.push(item{source: source, node: node})
}

func (q *queue) push(it item) (yours bool) {
	if q.mu.count == len(q.mu.ring) {
		ring := make([]item, 2*len(q.mu.ring))
		n := copy(ring, q.mu.ring[q.mu.head:])
		copy(ring[n:], q.mu.ring[:q.mu.head])
		q.mu.ring, q.mu.head = ring, 0
	}
	q.mu.ring[(q.mu.head+q.mu.count)%len(q.mu.ring)] = it
	q.mu.count++
	yours = !q.mu.seenTo
	q.mu.seenTo = true
	return yours
}

// next removes the oldest item. It reports false if there is none: what is put in from
// then on is for another to see to.
func (q *queue) next() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.count == 0 {
		q.mu.seenTo = false
		q.endIfDone()
		return item{}, false
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

// close has the queue end once it is empty. Nothing is put in any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.closed = true
	q.endIfDone()
}

func (q *queue) endIfDone() {
	if !q.mu.closed || q.mu.seenTo {
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
