package push

import (
	"sync"
	"time"
)

// parcel is a full request that waits.
type parcel struct {
	bytes []byte
	items int
	since time.Time // of its first item
}

// queue is parcels in order. Their number of bytes is limited.
type queue struct {
	max  int64
	more chan struct{} // with a buffer of one: there is a parcel

	mu      sync.Mutex
	parcels []parcel
	bytes   int64
	items   int
}

func newQueue(max int64) *queue { return &queue{max: max, more: make(chan struct{}, 1)} }

// put appends a request. If the queue is too large then, it drops the oldest requests, and
// returns how many items they had.
func (q *queue) put(request []byte, items int, since time.Time) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parcels = append(q.parcels, parcel{bytes: request, items: items, since: since})
	q.bytes += int64(len(request))
	q.items += items
	for q.bytes > q.max && len(q.parcels) > 1 {
		dropped += q.parcels[0].items
		q.take()
	}
	select {
	case q.more <- struct{}{}:
	default:
	}
	return dropped
}

// first removes and returns the oldest request; false if there is none.
func (q *queue) first() (parcel, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.parcels) == 0 {
		return parcel{}, false
	}
	return q.take(), true
}

func (q *queue) take() parcel {
	p := q.parcels[0]
	q.parcels[0] = parcel{}
	q.parcels = q.parcels[1:]
	q.bytes -= int64(len(p.bytes))
	q.items -= p.items
	return p
}

// state returns the size of the queue and the time of its oldest item.
func (q *queue) state() (bytes int64, items int, since time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.parcels) > 0 {
		since = q.parcels[0].since
	}
	return q.bytes, q.items, since
}
