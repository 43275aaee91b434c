package notify

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBurstsMakeFewCalls checks the calls of deliver. A burst gives two calls at once, and then one
// in each gap. A notice during a call gives another call. Without notices there is one call after
// each floor.
func TestBurstsMakeFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := MemoryPoll{Name: "a", Figure: 10}, MemoryPoll{Name: "b", Figure: 10}
		crossed := func(w MemoryPoll, workingSet int64) NoticeSource {
			return NoticeSource{Watch: w, Crossing: &Crossing{workingSet, w.Figure}}
		}
		text := func(name string, workingSet int64) string { return fmt.Sprintf("%s: working set %d", name, workingSet) }
		start := time.Now()
		at := func(ms time.Duration) time.Time { return start.Add(ms * time.Millisecond) }
		m := newMailbox()
		ctx, cancel := context.WithCancel(t.Context())
		type call struct {
			At      time.Duration // the time of the call
			Since   time.Duration // the notice's At
			Sources []string
		}
		var calls []call
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var sooner time.Duration
			m.deliver(ctx, time.Second, 100*time.Millisecond, func() time.Duration { return sooner }, func(n Notice) {
				c := call{time.Since(start), n.At.Sub(start), nil}
				for _, s := range n.Sources {
					if s.Timer() {
						c.Sources = append(c.Sources, "timer")
						continue
					}
					c.Sources = append(c.Sources, text(s.Watch.(MemoryPoll).Name, s.Crossing.WorkingSet))
				}
				calls = append(calls, c)
				time.Sleep(30 * time.Millisecond)        // a round takes time
				if sooner = time.Hour; len(calls) == 4 { // after the fourth call the timer is once shorter than the floor
					sooner = 200 * time.Millisecond
				}
			})
		}()
		for _, put := range []struct {
			ms time.Duration
			s  NoticeSource
		}{
			{50, crossed(a, 11)},
			{60, crossed(a, 12)}, // this comes during a call
			{110, crossed(b, 14)},
			{140, crossed(a, 18)},
			{300, crossed(b, 116)},
		} {
			time.Sleep(time.Until(at(put.ms)))
			m.add(time.Now(), put.s)
		}
		time.Sleep(time.Until(at(1600)))
		cancel()
		<-ended
		const ms = time.Millisecond
		want := []call{
			{50 * ms, 50 * ms, []string{text("a", 11)}},
			{80 * ms, 60 * ms, []string{text("a", 12)}},
			{150 * ms, 110 * ms, []string{text("b", 14), text("a", 18)}},
			{300 * ms, 300 * ms, []string{text("b", 116)}},
			{530 * ms, 530 * ms, []string{"timer"}}, // after the shorter interval
			{1530 * ms, 1530 * ms, []string{"timer"}},
		}
		if d := cmp.Diff(want, calls); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

func TestSoonerAheadOfRun(t *testing.T) {
	n, err := New(Options{MaxInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	n.WakeWithin(0)
	called := make(chan Notice, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = n.Run(ctx, func(_ context.Context, n Notice) { called <- n })
	})
	select {
	case c := <-called:
		if !c.Sources[0].Timer() {
			t.Errorf("got %v, want the timer", c)
		}
	case <-time.After(20 * time.Second):
		t.Error("not called ahead of the floor")
	}
	cancel()
	running.Wait()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestRunEndsWithItsContextAndNotTwice(t *testing.T) {
	n, err := New(Options{MaxInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	called, ended := make(chan Notice, 1000), make(chan error)
	run := func() error {
		return n.Run(ctx, func(_ context.Context, n Notice) {
			select {
			case called <- n:
			default:
			}
		})
	}
	go func() { ended <- run() }()
	if s := (<-called).Sources; !slices.ContainsFunc(s, NoticeSource.Timer) {
		t.Errorf("with nothing watched: %v", s)
	}
	if err := run(); err == nil {
		t.Error("second Run: no error")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v at the end of its context", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
