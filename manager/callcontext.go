package manager

import (
	"context"
	"slices"
	"sync"
	"time"
)

// callContext is the context.Context of one call, which the caller's watchdog cancels: at the
// deadline, when the source is no longer wanted, and when the call has ended. Unlike a
// context.WithDeadline it needs no timer of its own and no entry in its parent's children.
type callContext struct {
	parent   context.Context // has its values
	deadline time.Time

	mu struct {
		sync.Mutex
		err   error         // why it has ended; nil while it lasts
		done  chan struct{} // nil until somebody asks for it
		after []*afterwards
	}
}

// afterwards is a function to call when a callContext is cancelled.
type afterwards struct {
	of *callContext
	do func()
}

// Deadline returns when the call should have ended.
func (t *callContext) Deadline() (deadline time.Time, ok bool) { return t.deadline, true }

// Value returns what the parent has by a key.
func (t *callContext) Value(key any) any { return t.parent.Value(key) }

// Err returns why the call should end; nil while it may go on.
func (t *callContext) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.err
}

// Done returns a channel that is closed when the call should end.
func (t *callContext) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.done == nil {
		t.mu.done = make(chan struct{})
		if t.mu.err != nil {
			close(t.mu.done)
		}
	}
	return t.mu.done
}

// AfterFunc has do be called, in a goroutine of its own, when the call should end. stop
// prevents that, and reports false if it is too late. Package context uses it for the
// contexts that derive from this one.
func (t *callContext) AfterFunc(do func()) (stop func() bool) {
	a := &afterwards{t, do}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.err != nil {
		go do()
	} else {
		t.mu.after = append(t.mu.after, a)
	}
	return a.stop
}

func (a *afterwards) stop() bool {
	mu := &a.of.mu
	mu.Lock()
	defer mu.Unlock()
	i := slices.Index(mu.after, a)
	if i < 0 {
		return false
	}
	mu.after = slices.Delete(mu.after, i, i+1)
	return true
}

// end cancels the context with err, unless it was cancelled before.
func (t *callContext) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.err != nil {
		return
	}
	t.mu.err = err
	if t.mu.done != nil {
		close(t.mu.done)
	}
	for _, a := range t.mu.after {
		go a.do()
	}
	t.mu.after = nil
}
