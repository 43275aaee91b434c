package apiserver

import (
	"sort"
	"sync"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

// history is what has changed lately, for watches to be told. It holds a few dozen
// bytes a change: the object is written when it is told.
type history struct {
	begin time.Time // a watch may start from here or later
	size  int

	mu struct {
		sync.Mutex
		changes []simulator.Change
		since   int64         // every change after it is in changes
		until   int64         // up to when the fleet has been followed
		more    chan struct{} // closed when until has moved
		ended   bool
	}
}

func newHistory(size int, begin time.Time) *history {
	h := &history{begin: begin, size: size}
	h.mu.since, h.mu.until = begin.UnixNano(), begin.UnixNano()
	h.mu.more = make(chan struct{})
	return h
}

// add records what has changed up to now, and wakes the watches.
func (h *history) add(changes []simulator.Change, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if over := len(h.mu.changes) + len(changes) - h.size; over > 0 && len(h.mu.changes) > 0 {
		// Half goes at a time, so that moving the rest costs little a change.
		over = min(max(over, h.size/2), len(h.mu.changes))
		h.mu.since = h.mu.changes[over-1].At
		h.mu.changes = append([]simulator.Change(nil), h.mu.changes[over:]...)
	}
	h.mu.changes = append(h.mu.changes, changes...)
	h.mu.until = now.UnixNano()
	close(h.mu.more)
	h.mu.more = make(chan struct{})
}

// end wakes all watches for the last time.
func (h *history) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.ended = true
	close(h.mu.more)
	h.mu.more = make(chan struct{})
}

// after returns the changes after a moment, until when they are complete, and what
// tells that there is more. gone says that some are no longer known, ended that no
// more will come.
func (h *history) after(t int64) (changes []simulator.Change, until int64, more <-chan struct{}, gone, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.mu.changes
	i := sort.Search(len(all), func(i int) bool { return all[i].At > t })
	return all[i:len(all):len(all)], max(h.mu.until, t), h.mu.more, t < h.mu.since, h.mu.ended
}
