package manager

import (
	"context"
	"time"
)

// readSlots bounds how many reads work at once. Each token in the channel is a read. A read that
// waits longer than slotTime for its source has given its slot back.
type readSlots chan struct{}

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
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	case <-time.After(patience):
		return false
	}
}

// give returns a slot that take got.
func (s readSlots) give() { <-s }
