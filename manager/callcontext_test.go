package manager

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-metrics/weir/metric"
)

type key struct{}

// What derives from a term ends with it, and what was to be done afterwards is done, once.
func TestTermEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deadline := time.Now().Add(time.Minute)
		term := &callContext{parent: context.WithValue(t.Context(), key{}, "value"), deadline: deadline}
		child, cancel := context.WithTimeout(term, time.Hour)
		defer cancel()
		var done, stopped int
		count := func() { done++ }
		keep := term.AfterFunc(count)
		drop := term.AfterFunc(func() { stopped++ })
		if !drop() || drop() {
			t.Error("stop did not report that it was in time, and then that there was nothing to stop")
		}
		if at, ok := child.Deadline(); !ok || !at.Equal(deadline) || child.Value(key{}) != "value" {
			t.Errorf("got deadline %v (%v) and value %v, want %v and the parent's value", at, ok, child.Value(key{}), deadline)
		}
		if term.Err() != nil || child.Err() != nil {
			t.Errorf("it lasts, and says %v; what derives from it %v", term.Err(), child.Err())
		}
		term.end(context.DeadlineExceeded)
		term.end(context.Canceled) // too late to be the reason
		synctest.Wait()
		<-term.Done()
		<-child.Done()
		if got := context.Cause(child); got != context.DeadlineExceeded || term.Err() != context.DeadlineExceeded {
			t.Errorf("it ended with %v, and what derives from it with %v; want %v", term.Err(), got, context.DeadlineExceeded)
		}
		late := term.AfterFunc(count)
		synctest.Wait()
		if keep() || late() || done != 2 || stopped != 0 {
			t.Errorf("called %d and %d times, want twice and never; and nothing left to stop", done, stopped)
		}
	})
}

// A read that waits for its context is told when its time has come, and when its source is no
// longer wanted.
func TestReadIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []error
		waits := &place{read: func(ctx context.Context, _ int, _ *metric.Batch) error {
			<-ctx.Done()
			ends = append(ends, ctx.Err())
			return ctx.Err()
		}}
		h := build(t, Options{}, waits.spec("n1", 10*time.Second, time.Second))
		h.until(time.Second)
		if len(ends) != 1 || ends[0] != context.DeadlineExceeded {
			t.Errorf("after a second: got %v, want one %v", ends, context.DeadlineExceeded)
		}
		h.until(time.Duration(h.m.Status()[0].Due.Sub(h.start)) + 500*time.Millisecond)
		h.mustEnd()
		if len(ends) != 2 || ends[1] != context.Canceled {
			t.Errorf("after the end: got %v, want another, %v", ends, context.Canceled)
		}
	})
}

// A read that waits on the deadline itself and ends with it, as a dial does, is late, whether or
// not the watchdog came first.
func TestEndAtTheDeadlineIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := &place{read: func(ctx context.Context, _ int, _ *metric.Batch) error {
			deadline, _ := ctx.Deadline()
			time.Sleep(time.Until(deadline))
			return os.ErrDeadlineExceeded
		}}
		r := quiet(Options{}, dials)
		prompt := 0
		for range 50 {
			if r.round(); !r.caller.late {
				prompt++
			}
		}
		if prompt > 0 {
			t.Errorf("%d of 50 reads that ended at their deadline count as prompt, want none", prompt)
		}
		r.end()
	})
}
