// Package guard joins the parts of eviction on one node: a notice of the kernel leads to
// one fresh read, one decision, and what comes of it.
package guard

import (
	"context"
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
	// came of it was done.
	Read, Decided, Ended time.Time
	Input                *eviction.Input
	Decision             *eviction.Decision
	Outcomes             []execute.Outcome
	// Watching are the watches in force; Unwatched says what the kernel refused.
	Watching  []notify.Watch
	Unwatched []error
}

// Guard guards one node.
type Guard struct{}

// Last returns the newest round; nil before the first.
func (g *Guard) Last() *Round { return nil }

// Acts returns the rounds, newest first, in which something was done or would have been: a few.
func (g *Guard) Acts() []*Round { return nil }

// Run guards until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
