package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// grace is how long after its deadline a call may take to notice it. It is
// then abandoned.
const grace = time.Second

// fill is Source.Read or SecondReader.ReadSecond.
type fill func(ctx context.Context, b *metric.Batch) error

// caller makes the calls of one source: one at a time, each in a slot and on a
// deadline. A call is made by the goroutine that wants it, for handing it to another
// and back costs more than all the rest of it. That goroutine is lost if the call
// ignores its deadline; then the watchdog, which is but a timer until that moment,
// goes on in its place.
//
// Fields outside mu belong to the round that runs.
type caller struct {
	timeout time.Duration
	limits  readLimits
	meters  *kindMeters

	began time.Time // when the last call was made
	late  bool      // the last call did not end before its deadline
	slots readSlots // where the call's slot is from

	mu struct {
		sync.Mutex
		phase phase
		watch *time.Timer   // while a call runs
		due   time.Time     // when watch has something to do
		lost  func(error)   // goes on when the call is abandoned
		ended chan struct{} // closed when an abandoned call ends
	}
}

// phase is how far a call has come.
type phase uint8

const (
	idle      phase = iota // there is none
	running                // it is in time, and has a slot
	late                   // it should have ended, and has the grace to
	abandoned              // it runs, and nobody waits for it
)

func newCaller(timeout time.Duration, limits readLimits, meters *kindMeters) *caller {
	return &caller{timeout: timeout, limits: limits, meters: meters}
}

// admit waits for a slot, which call gives back. Its error says why there can be
// no call in this round.
func (c *caller) admit(ctx context.Context) error {
	if c.stuck() {
		return &metric.ReadError{Reason: metric.NodeTimeout,
			Err: fmt.Errorf("the read begun at %s ignores its deadline of %v and still runs", c.began.UTC().Format(time.RFC3339), c.timeout)}
	}
	c.slots = c.limits.prompt
	if c.late {
		c.slots = c.limits.late
	}
	c.meters.all.waiting.Inc()
	defer c.meters.all.waiting.Dec()
	if !c.slots.take(ctx, c.timeout) {
		return &metric.ReadError{Reason: metric.NodeTimeout,
			Err: fmt.Errorf("no read slot was free within %v: too many sources hang, or raise the number of concurrent reads", c.timeout)}
	}
	c.meters.all.inFlight.Inc()
	return nil
}

// call has f fill b, and returns its error. It must have been admitted. If f
// ignores its deadline or ctx, b is lost, for it still belongs to f, and another
// goroutine calls lost with what is wrong. The caller's goroutine has then no more
// business with the source: kept is false, whenever f returns.
func (c *caller) call(ctx context.Context, f fill, b *metric.Batch, lost func(error)) (kept bool, err error) {
	c.began = time.Now()
	b.Began = c.began
	deadline := c.began.Add(c.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline) // 2 to 3 µs; a scrape of a node takes 320
	defer cancel()                                     // for what may still wait for it
	c.start(deadline, lost)
	err = guard(func() error { return f(ctx, b) })
	kept = c.finish()
	// Who waits on the deadline itself, as a dial does, may end before the watchdog comes.
	late := ctx.Err() != nil || !time.Now().Before(deadline)
	if !kept {
		return false, nil
	}
	c.late = late
	return true, judged(err)
}

// callAside does the same in a goroutine of its own, for a round that cannot be gone
// on with elsewhere.
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
	c.mu.phase, c.mu.lost, c.mu.due = running, lost, deadline
	if c.mu.watch == nil {
		c.mu.watch = time.AfterFunc(c.timeout, c.watch)
	} else {
		c.mu.watch.Reset(c.timeout)
	}
}

// finish ends a call, and reports whether it was still waited for.
func (c *caller) finish() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.mu.phase
	c.mu.phase, c.mu.lost = idle, nil
	switch was {
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

// watch looks after a call that is past its deadline, or past the grace after that.
func (c *caller) watch() {
	c.mu.Lock()
	if time.Now().Before(c.mu.due) { // it was set for a call that has just ended
		c.mu.Unlock()
		return
	}
	switch c.mu.phase {
	case running:
		c.overdue()
	case late:
		c.abandon() // unlocks
		return
	}
	c.mu.Unlock()
}

// cancelCall tells that the context of a call has ended, or that of the next will have: one
// that runs has only the grace left.
func (c *caller) cancelCall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.phase == running {
		c.overdue()
	}
}

// overdue gives a call whose context has ended the grace to notice. Its slot is free from
// now on, so that a call that hangs delays no other source. c.mu is held.
func (c *caller) overdue() {
	c.release()
	c.mu.phase, c.mu.due = late, time.Now().Add(grace)
	c.mu.watch.Reset(grace)
}

// abandon leaves a call behind, and goes on in its place. It lets go of c.mu, which is
// held.
func (c *caller) abandon() {
	c.mu.phase, c.late = abandoned, true
	c.mu.ended = make(chan struct{})
	lost := c.mu.lost
	c.mu.Unlock()
	c.meters.abandoned.Inc()
	c.meters.stuck.Inc()
	lost(&metric.ReadError{Reason: metric.NodeTimeout,
		Err: fmt.Errorf("the read ignored its deadline of %v and was abandoned: %w", c.timeout, context.DeadlineExceeded)})
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

// awaitStuck waits for an abandoned call to end, however long that takes.
func (c *caller) awaitStuck() {
	c.mu.Lock()
	ended := c.mu.ended
	c.mu.Unlock()
	if ended != nil {
		<-ended
	}
}
