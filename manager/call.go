package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// grace is how long after its deadline a call may take to notice it. It is
// then abandoned.
const grace = time.Second

// fill is Source.Read or Witness.Testify.
type fill func(ctx context.Context, b *metric.Batch) error

// caller makes the calls of one source: one at a time, each in a slot, on a
// deadline and in a goroutine that can be left behind. It belongs to the round
// that runs.
type caller struct {
	timeout time.Duration
	lanes   lanes
	meters  *kindMeters

	began time.Time // when the last call was made
	late  bool      // the last call did not end before its deadline
	stuck bool      // an abandoned call still runs, as far as we know

	lane slots // which of the lanes the call's slot is of

	// Of the running call. They are left alone until ended has received, and
	// are fields so that a call allocates no closure.
	ctx    context.Context
	fill   fill
	batch  *metric.Batch
	invoke func()
	ended  chan error
}

func newCaller(timeout time.Duration, lanes lanes, meters *kindMeters) *caller {
	c := &caller{timeout: timeout, lanes: lanes, meters: meters, ended: make(chan error, 1)}
	c.invoke = func() { c.ended <- c.guarded() }
	return c
}

// admit waits for a slot, which call gives back. Its error says why there can be
// no call in this round.
func (c *caller) admit(ctx context.Context) error {
	if c.stillStuck() {
		return &metric.ReadError{Reason: metric.NodeTimeout,
			Err: fmt.Errorf("the read begun at %s ignores its deadline of %v and still runs", c.began.UTC().Format(time.RFC3339), c.timeout)}
	}
	c.lane = c.lanes.prompt
	if c.late {
		c.lane = c.lanes.late
	}
	c.meters.all.waiting.Inc()
	defer c.meters.all.waiting.Dec()
	if !c.lane.take(ctx, c.timeout) {
		return &metric.ReadError{Reason: metric.NodeTimeout,
			Err: fmt.Errorf("no read slot was free within %v: too many sources hang, or raise the number of concurrent reads", c.timeout)}
	}
	c.meters.all.inFlight.Inc()
	return nil
}

// call has f fill b, and returns its error. It must have been admitted. If f
// ignores its deadline or ctx, b is lost: it still belongs to the abandoned
// call, and kept is false.
func (c *caller) call(ctx context.Context, f fill, b *metric.Batch) (kept bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	c.began = time.Now()
	b.Began = c.began
	c.ctx, c.fill, c.batch = ctx, f, b
	go c.invoke()
	select {
	case err = <-c.ended:
		c.release()
	case <-ctx.Done():
		// The slot is free from here on, whatever the call does: whoever
		// hangs, hangs at no one's cost.
		c.release()
		if kept, err = c.awaitLate(); !kept {
			return false, err
		}
	}
	c.late = ctx.Err() != nil
	c.ctx, c.fill, c.batch = nil, nil, nil
	return true, judged(err)
}

func (c *caller) release() {
	c.lane.give()
	c.meters.all.inFlight.Dec()
}

// awaitLate gives a call past its deadline the grace to end, and abandons it
// after that.
func (c *caller) awaitLate() (kept bool, err error) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err = <-c.ended:
		return true, err
	case <-timer.C:
	}
	c.stuck, c.late = true, true
	c.meters.abandoned.Inc()
	c.meters.stuck.Inc()
	return false, &metric.ReadError{Reason: metric.NodeTimeout,
		Err: fmt.Errorf("the read ignored its deadline of %v and was abandoned: %w", c.timeout, context.DeadlineExceeded)}
}

// stillStuck reports whether an abandoned call runs, after a look whether it
// has ended. What it returned late is of no interest.
func (c *caller) stillStuck() bool {
	if c.stuck {
		select {
		case <-c.ended: //nolint:errcheck // what it returned late is of no interest
			c.unstuck()
		default:
		}
	}
	return c.stuck
}

// awaitStuck waits for an abandoned call to end, however long that takes.
func (c *caller) awaitStuck() {
	if c.stuck {
		<-c.ended //nolint:errcheck // what it returned late is of no interest
		c.unstuck()
	}
}

func (c *caller) unstuck() {
	c.stuck = false
	c.meters.stuck.Dec()
	c.ctx, c.fill, c.batch = nil, nil, nil
}

// guarded makes the call, and an error of a panic.
func (c *caller) guarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = caught(v)
		}
	}()
	return c.fill(c.ctx, c.batch)
}
