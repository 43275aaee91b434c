package manager

import (
	"context"
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// grace is how long after its deadline a call may take to notice it. It is
// then abandoned.
const grace = time.Second

// fill is Source.Read or Spec.ReadSecond.
type fill func(ctx context.Context, b *metric.Batch) error

// slotTime is how long a call keeps its slot at most. A node that answers takes milliseconds. A call
// that waits longer uses no processor, and goes on without a slot. So 128 slots suffice for 3,840
// nodes that hang and are read every 15 s, and others need not wait for them.
const slotTime = 500 * time.Millisecond

// caller makes the calls of one source: one at a time, each with a slot and a deadline. The
// goroutine of the round makes the call itself, because another goroutine costs more than the
// rest of the call. If the call ignores its deadline, the watchdog, a timer, continues the round.
//
// Fields outside mu belong to the round that runs.
type caller struct {
	timeout time.Duration
	slots   readSlots
	meters  *kindMeters

	began time.Time // when the last call began

	mu struct {
		sync.Mutex
		phase    phase
		watch    *time.Timer   // the watchdog, while a call runs
		due      time.Time     // when the watchdog acts
		deadline time.Time     // of the call
		lost     func(error)   // continues the round when the call is abandoned
		ended    chan struct{} // closed when an abandoned call ends
	}
}

// phase is the state of a call.
type phase uint8

const (
	idle      phase = iota // no call runs
	running                // with a slot
	waiting                // before its deadline, without a slot
	late                   // after its deadline, within the grace
	abandoned              // it runs, but no round waits for it
)

// awaitSlot waits for a slot, which call gives back. The error says why no call is possible in this
// round.
func (c *caller) awaitSlot(ctx context.Context) error {
	if c.stuck() {
		return metric.ReadErrorf(metric.NodeTimeout, "the read begun at %s ignores its deadline of %v and still runs", c.began.UTC().Format(time.RFC3339), c.timeout)
	}
	c.meters.all.waiting.Inc()
	defer c.meters.all.waiting.Dec()
	if !c.slots.take(ctx, c.timeout) {
		return metric.ReadErrorf(metric.NodeTimeout, "no read slot was free within %v: weir needs more processors, or raise --max-reads", c.timeout)
	}
	c.meters.all.inFlight.Inc()
	return nil
}

// call calls f with b after awaitSlot, and returns its error. If f ignores its deadline or ctx, b
// stays with f, and another goroutine calls lost with the error. When f returns, kept is false,
// and this goroutine must not use the source any more.
func (c *caller) call(ctx context.Context, f fill, b *metric.Batch, lost func(error)) (kept bool, err error) {
	c.began = time.Now()
	b.Began = c.began
	deadline := c.began.Add(c.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	c.start(deadline, lost)
	err = guard(func() error { return f(ctx, b) })
	if !c.finish() {
		return false, nil
	}
	return true, judged(err)
}

// callAside is call in another goroutine, for a round that no other goroutine can continue.
func (c *caller) callAside(ctx context.Context, f fill, b *metric.Batch) (kept bool, err error) {
	type outcome struct {
		kept bool
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		if kept, err := c.call(ctx, f, b, func(err error) { ended <- outcome{false, err} }); kept {
			ended <- outcome{true, err}
		}
	}()
	o := <-ended
	return o.kept, o.err
}

// start begins to watch a call.
func (c *caller) start(deadline time.Time, lost func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := min(slotTime, c.timeout)
	c.mu.phase, c.mu.lost, c.mu.due, c.mu.deadline = running, lost, c.began.Add(keep), deadline
	if c.mu.watch == nil {
		c.mu.watch = time.AfterFunc(keep, c.watch)
	} else {
		c.mu.watch.Reset(keep)
	}
}

// finish ends a call. It returns false if the call was abandoned.
func (c *caller) finish() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.mu.phase
	c.mu.phase, c.mu.lost = idle, nil
	switch old {
	case running:
		c.release()
	case abandoned:
		c.meters.stuck.Dec()
		close(c.mu.ended)
		return false
	}
	c.mu.watch.Stop()
	return true
}

// watch is what the watchdog does.
func (c *caller) watch() {
	if lost := c.nextPhase(); lost != nil {
		lost(metric.ReadErrorf(metric.NodeTimeout, "the read ignored its deadline of %v and was abandoned: %w", c.timeout, context.DeadlineExceeded))
	}
}

// nextPhase takes the slot of a call that has had it for long enough, gives a call some time to
// return after its deadline, and then abandons it. If it abandons the call, it returns the
// function that continues the round.
func (c *caller) nextPhase() (lost func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.mu.due) { // the timer was set for an earlier call
		return nil
	}
	switch c.mu.phase {
	case running:
		c.release()
		c.mu.phase, c.mu.due = waiting, c.mu.deadline
		c.mu.watch.Reset(time.Until(c.mu.deadline))
	case waiting:
		c.overdue()
	case late:
		c.mu.phase = abandoned
		c.mu.ended = make(chan struct{})
		c.meters.abandoned.Inc()
		c.meters.stuck.Inc()
		return c.mu.lost
	}
	return nil
}

// cancelCall reports that the context of calls has ended: a call that runs has only the grace left.
func (c *caller) cancelCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.phase == running || c.mu.phase == waiting {
		c.overdue()
	}
}

// overdue gives a call some time to return after its context has ended. The caller holds c.mu.
func (c *caller) overdue() {
	if c.mu.phase == running {
		c.release()
	}
	c.mu.phase, c.mu.due = late, time.Now().Add(grace)
	c.mu.watch.Reset(grace)
}

func (c *caller) release() {
	c.slots.give()
	c.meters.all.inFlight.Dec()
}

// stuck reports whether an abandoned call still runs.
func (c *caller) stuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.phase == abandoned
}

// awaitStuck waits for an abandoned call to end.
func (c *caller) awaitStuck() {
	c.mu.Lock()
	ended := c.mu.ended
	c.mu.Unlock()
	if ended != nil {
		<-ended
	}
}
