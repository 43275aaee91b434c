package notify

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Notice is the reason to read the node again.
type Notice struct {
	// At is when the first of Sources came, with a monotonic clock reading.
	At time.Time
	// Sources are in the order in which they came; there is at least one. A watch that gave
	// notice several times is listed once, with the latest figures.
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

// NoticeSource is one thing that gave notice.
type NoticeSource struct {
	// Watch is what was asked for; nil for the timer.
	Watch Watch
	// Gone: the cgroup was removed, and the watch ended. The next Update that names it tries
	// again.
	Gone bool
	// Crossing is set for a UsageThreshold. Stalled is set for a StallTrigger: the stall time
	// since its last notice, or since it was registered. Changes are set for EventCounters.
	Crossing *Crossing
	Stalled  time.Duration
	Changes  []CounterChange
}

// Crossing is the usage of a UsageThreshold when the notice came. The kernel gives notice in both
// directions.
type Crossing struct {
	Usage, Figure int64 // bytes
	// Read: weir found the crossing by reading, without a notice of the kernel. The figure was
	// updated past the usage, or the usage had crossed it before it was registered.
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

// String says what happened.
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

// add adds a source that came at a time.
func (m *mailbox) add(at time.Time, s NoticeSource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mu.Sources) == 0 {
		m.mu.At = at
		m.ready <- struct{}{} // never blocks: takeAll empties both
	}
	i := slices.IndexFunc(m.mu.Sources, func(o NoticeSource) bool { return o.Watch.key() == s.Watch.key() })
	if i < 0 {
		m.mu.Sources = append(m.mu.Sources, s)
		return
	}
	m.mu.Sources[i] = m.mu.Sources[i].mergeLater(s)
}

// takeAll returns what has come, and empties the mailbox.
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

// mergeLater joins a source with a later one of the same watch.
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
