package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// Notice is the reason for a new read of the node.
type Notice struct {
	// At is the time of the first of Sources, with a monotonic clock reading.
	At time.Time
	// Sources are in the order in which they came; there is at least one. A watch that gave several
	// notices is listed once, with the latest figures.
	Sources []NoticeSource
}

// String returns what gave notice, for people.
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
	switch m, isMemory := s.Watch.(MemoryPoll); {
	case s.Timer():
		return "timer"
	case isMemory && s.Crossing != nil:
		side := "is back at"
		if s.Crossing.Above() {
			side = "passed"
		}
		return fmt.Sprintf("%s, as %s %s %s", m.Name, m.Used(), side, humanize.Bytes(float64(s.Crossing.Figure)))
	case s.Watch == Poll{}:
		return "a poll of " + s.Watch.String()
	}
	return s.Watch.String()
}
