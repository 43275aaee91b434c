package manager

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-metrics/weir/metric"
)

func TestReadiness(t *testing.T) {
	// so many sources that were read so often without error, or fail
	sources := func(twice, once, failing int) []SourceStatus {
		var all []SourceStatus
		add := func(n, successes int, err error) {
			for range n {
				all = append(all, SourceStatus{Name: "n", Interval: 15 * time.Second, Timeout: 10 * time.Second, Successes: successes, Err: err})
			}
		}
		add(twice, 2, nil)
		add(once, 1, nil)
		add(failing, 7, errors.New("refused"))
		return all
	}
	for _, c := range []struct {
		says    string
		sources []SourceStatus
		up      time.Duration
		want    string
	}{
		{"all read twice", sources(20, 0, 0), 10 * time.Second, ""},
		{"95% read twice", sources(19, 1, 0), 10 * time.Second, ""},
		{"less", sources(18, 1, 0), 10 * time.Second, "waiting for second reads: 18 of 19 reachable sources have been read twice (ready without them in 30s)"},
		{"failing ones do not count", sources(19, 1, 500), 10 * time.Second, ""},
		{"but are told", sources(0, 1, 5), 10 * time.Second, "waiting for second reads: 0 of 1 reachable sources have been read twice, 5 more fail (ready without them in 30s)"},
		{"all fail", sources(0, 0, 2), 10 * time.Second, "waiting for a source that answers: all 2 fail, n with: refused (ready without them in 30s)"},
		{"patience ends after two intervals and a timeout", sources(0, 0, 2), 40 * time.Second, ""},
		{"no source", nil, 10 * time.Second, "waiting for a source: there is none yet (ready without one in 30s)"},
		{"no source at all", nil, 40 * time.Second, ""},
	} {
		got := ""
		if err := readiness(c.sources, c.up); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.says, got, c.want)
		}
	}
}

func TestReadyOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var facts atomic.Pointer[metric.Facts]
		facts.Store(&metric.Facts{})
		if err := New(Options{}).Ready(); err == nil {
			t.Errorf("Ready before Run: got nil, want an error")
		}
		h := build(t, Options{Facts: facts.Load}, healthy().spec("a", interval, timeout))
		h.until(time.Second)
		ready := func(want string) {
			t.Helper()
			got := ""
			if err := h.m.Ready(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("Ready after %v: got %q, want %q", time.Since(h.start), got, want)
			}
		}
		ready("waiting for the API server's list of nodes and pods")
		facts.Store(facts.Load().With(metric.FactsChange{Synced: true}))
		ready("waiting for second reads: 0 of 1 reachable sources have been read twice (ready without them in 34s)")
		h.until(10 * time.Second)
		ready("")
		// A node that appears later does not take it back.
		h.provide(healthy().spec("a", interval, timeout), healthy().spec("b", interval, timeout))
		h.until(11 * time.Second)
		ready("")
		h.mustEnd()
	})
}
