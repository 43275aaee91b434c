package guard

import (
	"time"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/notify"
)

// Round is one look at the node. Nothing in it is changed once it is given out.
type Round struct {
	// Notice is what woke the guard.
	Notice notify.Notice
	// Read is when the fresh read ended, Decided when the decision was made, Ended when what
	// came of it was done: zero while it is being done.
	Read, Decided, Ended time.Time
	// Input and Decision are what was decided on, and what. With a collection the decision is
	// that before it until the collection has ended, and then the one after it.
	Input    *eviction.Input
	Decision *eviction.Decision
	// ReadErr is what could not be read, or which pods there are: the rest was decided on
	// all the same.
	ReadErr error
	// Outcomes are of collections first, then of pods.
	Outcomes []execute.Outcome
	// Since is when the first of the rounds ended whose outcomes this one only repeats; zero
	// if it repeats none.
	Since time.Time
	// Watching are the watches in force; Unwatched says what cannot be watched, and what
	// stands in.
	Watching  []notify.Watch
	Unwatched []error
}
