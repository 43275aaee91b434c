package manager

import (
	"context"
	"time"
)

// slots bounds how many reads run at once. Each token in the channel is a read.
type slots chan struct{}

// lanes are the slots of all sources. Sources whose last read timed out have
// slots of their own: however many nodes hang, they queue behind each other
// and never before one that answers.
type lanes struct {
	prompt, late slots
}

func newLanes(n int) lanes {
	late := max(1, n/4)
	return lanes{
		prompt: make(slots, max(1, n-late)),
		late:   make(slots, late),
	}
}

// take waits for a slot until ctx ends or patience runs out, and reports
// whether it got one.
func (s slots) take(ctx context.Context, patience time.Duration) bool {
	// Fast path: a free slot, no timer.
	select {
	case s <- struct{}{}:
		return true
	default:
	}
	// Slow path: stand in line; a channel serves its waiters in order.
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
func (s slots) give() { <-s }
