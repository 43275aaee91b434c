package manager

import (
	"context"
	"time"
)

// readSlots bounds how many reads run at once. Each token in the channel is a read.
type readSlots chan struct{}

// readLimits bound the reads of all sources. Sources that timed out in their last read have a
// limit of their own: nodes that hang wait for each other and never delay one that answers.
type readLimits struct {
	prompt, late readSlots
}

func newReadLimits(n int) readLimits {
	late := max(1, n/4)
	return readLimits{
		prompt: make(readSlots, max(1, n-late)),
		late:   make(readSlots, late),
	}
}

// take waits for a slot until ctx ends or patience runs out, and reports
// whether it got one.
func (s readSlots) take(ctx context.Context, patience time.Duration) bool {
	// Fast path: a free slot, no timer.
	select {
	case s <- struct{}{}:
		return true
	default:
	}
	// Slow path: wait; a channel serves its waiters in order.
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}

// give returns a slot that take got.
func (s readSlots) give() { <-s }
