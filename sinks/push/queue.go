package push

import (
	"sort"
	"sync"
	"time"
)

// queuedRequest is a full request that waits.
type queuedRequest struct {
	number uint64 // higher than that of each older request
	body   []byte
	items  int
	since  time.Time // of its first item
}

// queue has requests in order. Their number of bytes is limited. The one that is being sent stays
// in it until the receiver has it.
type queue struct {
	max    int64
	more   chan struct{} // with a buffer of one: there is a request
	change chan struct{} // with a buffer of one: there is a request more or less

	mu       sync.Mutex
	requests []queuedRequest
	sending  bool // the first request is being sent
	bytes    int64
	items    int
	next     uint64 // the number of the next request
	inLog    uint64 // the number of the last request that was written to the log
	blocks   bool   // requests are kept in files, so they count as whole blocks of a disk
}

func newQueue(max int64) *queue {
	return &queue{max: max, more: make(chan struct{}, 1), change: make(chan struct{}, 1), next: 1}
}

// put appends a request. If the queue is too large then, it drops the oldest requests, and
// returns how many items they had.
func (q *queue) put(request []byte, items int, since time.Time) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.add(queuedRequest{number: q.next, body: request, items: items, since: since})
}

// restore queues the requests of the log, which are older than those that wait. These get new numbers,
// because they are not in the log. The one that is being sent stays the first.
func (q *queue) restore(logged []queuedRequest) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.requests
	q.requests, q.bytes, q.items, q.blocks = nil, 0, 0, true
	if q.sending {
		first := waiting[0]
		if len(logged) > 0 {
			first.number = logged[0].number - 1
		}
		waiting = waiting[1:]
		dropped += q.add(first)
	}
	for _, p := range logged {
		dropped += q.add(p)
		q.inLog = p.number
	}
	for _, p := range waiting {
		p.number = q.next
		dropped += q.add(p)
	}
	return dropped
}

func (q *queue) add(p queuedRequest) (dropped int) {
	q.requests = append(q.requests, p)
	q.next = p.number + 1
	q.bytes += q.size(&p)
	q.items += p.items
	kept := 1
	if q.sending {
		kept = 2
	}
	for q.bytes > q.max && len(q.requests) > kept {
		if q.sending {
			q.requests[0], q.requests[1] = q.requests[1], q.requests[0]
		}
		dropped += q.requests[0].items
		q.removeFirst()
	}
	signal(q.more)
	signal(q.change)
	return dropped
}

// size returns how many bytes of the limit a request takes.
func (q *queue) size(p *queuedRequest) int64 {
	if q.blocks {
		return int64(walHead+len(p.body)+walBlock-1) / walBlock * walBlock
	}
	return int64(len(p.body))
}

// first returns the oldest request, to be sent; false if there is none. Then the caller
// calls done or postpone.
func (q *queue) first() (queuedRequest, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) == 0 {
		return queuedRequest{}, false
	}
	q.sending = true
	return q.requests[0], true
}

// done removes the request that first returned.
func (q *queue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending = false
	q.removeFirst()
	signal(q.change)
}

// postpone leaves the request that first returned in the queue.
func (q *queue) postpone() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sending = false
}

func (q *queue) removeFirst() {
	p := q.requests[0]
	q.requests[0] = queuedRequest{}
	q.requests = q.requests[1:]
	q.bytes -= q.size(&p)
	q.items -= p.items
}

// state returns the size of the queue and the time of its oldest item.
func (q *queue) state() (bytes int64, items int, since time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) > 0 {
		since = q.requests[0].since
	}
	return q.bytes, q.items, since
}

// waits reports whether the request with a number is in the queue.
func (q *queue) waits(number uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.from(number)
	return i < len(q.requests) && q.requests[i].number == number
}

// firstUnlogged returns the oldest request that is not in the log; false if there is none.
func (q *queue) firstUnlogged() (queuedRequest, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.from(q.inLog + 1); i < len(q.requests) {
		return q.requests[i], true
	}
	return queuedRequest{}, false
}

// logged records that the request with a number, and all older ones, are in the log.
func (q *queue) logged(number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inLog = number
}

// unlogged returns how many items are not in the log.
func (q *queue) unlogged() (items int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.requests[q.from(q.inLog+1):] {
		items += p.items
	}
	return items
}

// from returns the index of the first request with at least this number.
func (q *queue) from(number uint64) int {
	return sort.Search(len(q.requests), func(i int) bool { return q.requests[i].number >= number })
}

// signal sends to a channel with a buffer of one, unless there is a signal already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
