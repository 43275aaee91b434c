package notify

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Notice is the reason for a new read of the node.
type Notice struct {
	// At is the time of the first of Sources, with a monotonic clock reading.
	At time.Time
	// Sources are in the order in which they came; there is at least one. A watch that gave several
	// notices is listed once, with the latest figures.
	Sources []NoticeSource
}

// String lists the sources.
func (n Notice) String() string {
	var words []string
	for _, s := range n.Sources {
		words = append(words, s.String())
	}
	return strings.Join(words, "; ")
}

// NoticeSource is a watch, or the timer, that gave notice.
type NoticeSource struct {
	// Watch is the watch that gave notice; nil for the timer.
	Watch Watch
	// Gone is set if the cgroup was removed, which ends the watch. An Update that has the watch again
	// tries to register it again.
	Gone bool
	// Crossing is set for a UsageThreshold. Stalled is set for a StallTrigger: it is the stall time
	// since its last notice, or since it was registered. Changes are set for EventCounters.
	Crossing *Crossing
	Stalled  time.Duration
	Changes  []CounterChange
}

// Crossing is the usage of a UsageThreshold at the time of the notice. The kernel gives notice in
// both directions.
type Crossing struct {
	Usage, Figure int64 // bytes
	// Read is set if weir found the crossing in a read, without a notice of the kernel: an update
	// moved the figure past the usage, or the usage had crossed the figure before it was registered.
	Read bool
}

// Above reports whether the usage is at or above the figure.
func (c Crossing) Above() bool { return c.Usage >= c.Figure }

// CounterChange is a change of a counter in an EventCounters file.
type CounterChange struct {
	Counter  string
	From, To uint64
}

// Timer reports whether the source is the timer.
func (s NoticeSource) Timer() bool { return s.Watch == nil }

// String returns what happened, for people.
func (s NoticeSource) String() string {
	switch {
	case s.Timer():
		return "timer"
	case s.Gone:
		return s.Watch.String() + ": the cgroup was removed"
	case s.Crossing != nil:
		side, how := "below", ""
		if s.Crossing.Above() {
			side = "at or above"
		}
		if s.Crossing.Read {
			how = ", found by reading"
		}
		return fmt.Sprintf("%s: usage %d, %s %d%s", s.Watch, s.Crossing.Usage, side, s.Crossing.Figure, how)
	case len(s.Changes) > 0:
		var words []string
		for _, c := range s.Changes {
			words = append(words, fmt.Sprintf("%s %d to %d", c.Counter, c.From, c.To))
		}
		return s.Watch.String() + ": " + strings.Join(words, ", ")
	case s.Watch == Poll{}:
		return "a poll of " + s.Watch.String()
	default:
		return fmt.Sprintf("%s: stalled for %s", s.Watch, s.Stalled)
	}
}

// mailbox collects sources until deliver takes them as one Notice.
type mailbox struct {
	// ready has one element while the mailbox is not empty.
	ready chan struct{}
	mu    struct {
		sync.Mutex
		Notice
	}
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// add adds a source with its time.
func (m *mailbox) add(at time.Time, s NoticeSource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mu.Sources) == 0 {
		m.mu.At = at
		m.ready <- struct{}{} // it never blocks, because takeAll empties both
	}
	i := slices.IndexFunc(m.mu.Sources, func(o NoticeSource) bool { return o.Watch.key() == s.Watch.key() })
	if i < 0 {
		m.mu.Sources = append(m.mu.Sources, s)
		return
	}
	m.mu.Sources[i] = m.mu.Sources[i].mergeLater(s)
}

// takeAll returns all sources as one Notice, and empties the mailbox.
func (m *mailbox) takeAll() Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.ready:
	default:
	}
	n := m.mu.Notice
	m.mu.Notice = Notice{}
	return n
}

// mergeLater merges a source with a later one of the same watch.
func (s NoticeSource) mergeLater(later NoticeSource) NoticeSource {
	later.Gone = later.Gone || s.Gone
	later.Stalled += s.Stalled
	if later.Crossing == nil {
		later.Crossing = s.Crossing
	}
	for _, c := range s.Changes {
		if i := slices.IndexFunc(later.Changes, func(l CounterChange) bool { return l.Counter == c.Counter }); i >= 0 {
			later.Changes[i].From = c.From
		} else {
			later.Changes = append(later.Changes, c)
		}
	}
	return later
}
