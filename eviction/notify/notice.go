package notify

import (
	"fmt"
	"strings"
	"time"
)

// Notice is the reason to look anew.
type Notice struct {
	// At is when the first of Sources came, with a monotonic reading.
	At time.Time
	// Sources are what woke us, in the order they came: one at least. A watch that gave
	// notice more than once is there once, as it was last.
	Sources []Source
}

// String lists the sources.
func (n Notice) String() string {
	var words []string
	for _, s := range n.Sources {
		words = append(words, s.String())
	}
	return strings.Join(words, "; ")
}

// Source is one thing that gave notice.
type Source struct {
	// Watch is what was asked for; nil for the timer.
	Watch Watch
	// Gone says that the cgroup was removed. It is watched no longer; the next Update
	// that names it tries again.
	Gone bool
	// Crossing is set for a Threshold, Stalled for a Trigger (how much the stall of its
	// cgroup grew since it last gave notice, or since it was set), Changes for Events.
	Crossing *Crossing
	Stalled  time.Duration
	Changes  []Change
}

// Crossing is how a Threshold stood when the notice came. The kernel gives notice in both
// directions.
type Crossing struct {
	Usage, Figure int64 // bytes
	// Read says that it was found by reading, not told by the kernel: the figure moved
	// past the usage, or the usage had crossed it before the kernel was asked.
	Read bool
}

// Above says that the usage is at or above the figure.
func (c Crossing) Above() bool { return c.Usage >= c.Figure }

// Change is of a counter of an Events file.
type Change struct {
	Counter  string
	From, To uint64
}

// Timer says that nothing gave notice, but that the time was up.
func (s Source) Timer() bool { return s.Watch == nil }

func (s Source) looked() bool {
	_, ok := s.Watch.(Look)
	return ok
}

// String is what happened, in a few words.
func (s Source) String() string {
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
	case s.looked():
		return "a look at " + s.Watch.String()
	default:
		return fmt.Sprintf("%s: stalled for %s", s.Watch, s.Stalled)
	}
}
