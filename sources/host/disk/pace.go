package disk

import (
	"context"
	"time"
)

// pace holds a scan to its share of time: after each stretch of work it rests as long as the
// share asks.
type pace struct {
	share float64
	steps int64
	since time.Time // when the stretch began
}

const (
	// glance is after how many steps the clock is read.
	glance = 256
	// stretch is the least work between two rests.
	stretch = 5 * time.Millisecond
)

func newPace(share float64) *pace { return &pace{share: share, since: time.Now()} }

// step is one more file, and returns an error once ctx has ended.
func (p *pace) step(ctx context.Context) error {
	if p.steps++; p.steps%glance != 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	worked := time.Since(p.since)
	if worked < stretch || p.share >= 1 {
		return nil
	}
	rest := time.NewTimer(time.Duration(float64(worked) * (1/p.share - 1)))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-rest.C:
	}
	p.since = time.Now()
	return nil
}
