package notify

import (
	"fmt"
	"strings"
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
	// Crossing is set for a MemoryPoll.
	Crossing *Crossing
}

// Crossing is the working set of a MemoryPoll at the time of the notice, in bytes.
type Crossing struct{ WorkingSet, Figure int64 }

// Above reports whether the working set is above the figure, so that the threshold is met.
func (c Crossing) Above() bool { return c.WorkingSet > c.Figure }

// Timer reports whether the source is the timer.
func (s NoticeSource) Timer() bool { return s.Watch == nil }

// String returns what happened, for people.
func (s NoticeSource) String() string {
	switch {
	case s.Timer():
		return "timer"
	case s.Crossing != nil:
		side := "not above"
		if s.Crossing.Above() {
			side = "above"
		}
		return fmt.Sprintf("%s: working set %d, %s %d", s.Watch, s.Crossing.WorkingSet, side, s.Crossing.Figure)
	case s.Watch == Poll{}:
		return "a poll of " + s.Watch.String()
	}
	return s.Watch.String()
}
