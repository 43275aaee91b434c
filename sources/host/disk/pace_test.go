//go:build linux

package disk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	f := func(share float64, work, want time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			p, began := newPace(share), time.Now()
			for range stepsPerCheck - 1 {
				if err := p.step(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(work)
			if err := p.step(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != want {
				t.Errorf("share %v, work for %v: done after %v, want %v", share, work, got, want)
			}
		})
	}
	f(0.25, 10*time.Millisecond, 40*time.Millisecond)
	f(0.5, time.Second, 2*time.Second)
	f(0.25, 4*time.Millisecond, 4*time.Millisecond) // too little work for a pause
	f(1, time.Second, time.Second)
}

func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Second, enough)
		defer cancel()
		p, began := newPace(0.01), time.Now()
		p.steps = stepsPerCheck - 1
		time.Sleep(time.Second)
		if err := p.step(ctx); !errors.Is(err, enough) || time.Since(began) != 2*time.Second {
			t.Errorf("rested for %v and returned %v, want %v at 2s", time.Since(began), err, enough)
		}
	})
}
