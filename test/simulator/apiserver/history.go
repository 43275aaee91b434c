package apiserver

import (
	"sort"
	"sync"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

// history has the last changes, for watches. It needs a few dozen bytes for
// each change, because objects are encoded when they are sent.
type history struct {
	begin time.Time // watches may start from this time or later
	size  int

	mu struct {
		sync.Mutex
		changes []simulator.PodChange
		since   int64         // changes has every change after this time
		until   int64         // changes has every change up to this time
		more    chan struct{} // closed when until has changed
		ended   bool
	}
}

func newHistory(size int, begin time.Time) *history {
	h := &history{begin: begin, size: size}
	h.mu.since, h.mu.until = begin.UnixNano(), begin.UnixNano()
	h.mu.more = make(chan struct{})
	return h
}

// add records the changes up to now, and wakes the watches.
func (h *history) add(changes []simulator.PodChange, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if over := len(h.mu.changes) + len(changes) - h.size; over > 0 && len(h.mu.changes) > 0 {
		// Half of the changes are removed at a time, so that moving the rest costs
		// little per change.
		over = min(max(over, h.size/2), len(h.mu.changes))
		h.mu.since = h.mu.changes[over-1].At
		h.mu.changes = append([]simulator.PodChange(nil), h.mu.changes[over:]...)
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

// after returns the changes after t, the time up to which they are complete,
// and a channel that is closed when there are more. gone says that some changes
// after t are no longer in the history. ended says that there will be no more.
func (h *history) after(t int64) (changes []simulator.PodChange, until int64, more <-chan struct{}, gone, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.mu.changes
	i := sort.Search(len(all), func(i int) bool { return all[i].At > t })
	return all[i:len(all):len(all)], max(h.mu.until, t), h.mu.more, t < h.mu.since, h.mu.ended
}
