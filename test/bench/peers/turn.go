//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/weir-metrics/weir/test/bench/process"
)

// A Turn is one measured run of a program, alone on its cluster.
type Turn struct {
	Scenario string `json:"scenario"`
	Round    int    `json:"round"`
	Program  string `json:"program"`
	// Values are the measured numbers by key. Their units are in rows.
	Values map[string]float64 `json:"values"`
	// Requests has the duration of each request to its last byte, in milliseconds,
	// in the order of the requests, by kind.
	Requests map[string][]float64 `json:"requests,omitempty"`
}

func (t *Turn) set(key string, v float64) { t.Values[key] = v }

// atLeast keeps the larger of the old and the new value.
func (t *Turn) atLeast(key string, v float64) {
	if old, ok := t.Values[key]; !ok || v > old {
		t.Values[key] = v
	}
}

// turn runs and measures a program. It waits until the program has run for old.
func (w *environment) turn(ctx context.Context, p program, base string, old time.Duration, turn *Turn) error {
	t, err := w.startProgram(p, base)
	if err != nil {
		return err
	}
	defer t.Stop()
	if err := w.first(ctx, t, turn); err != nil {
		return err
	}
	w.logf("  first metric after %.1fs, 99%% after %.1fs", turn.Values["first"], turn.Values["most"])
	if err := t.Wait(ctx, max(w.options.Warm, old-time.Since(t.Began))); err != nil {
		return err
	}
	idle, err := w.steady(ctx, t, turn)
	if err != nil {
		return err
	}
	w.logf("  %.0f µs of CPU a node-scrape, %.0f MiB resident at the age of %.0fs", turn.Values["cpu"], turn.Values["rss"], turn.Values["age"])
	if err := w.fresh(ctx, t, turn); err != nil {
		return err
	}
	w.logf("  oldest sample %.2f resolutions behind its node", turn.Values["lag"])
	for _, r := range requests(w.fleet) {
		last, err := t.burst(ctx, r, w.options, idle, turn)
		if err != nil {
			return err
		}
		w.logf("  %-32s %4d times, p50 %7.2f ms, %d bytes", r.title, len(turn.Requests[r.key]), quantile(turn.Requests[r.key], .5), len(last.body))
		if r.key == "list json" { // without --quick, these requests have run without a pause for a whole resolution
			s, err := stale(w.fleet, last)
			if err != nil {
				return err
			}
			turn.set("lag loaded", quantile(s.lags, 1)/w.options.Resolution.Seconds())
		}
	}
	used, err := t.Usage()
	if err != nil {
		return err
	}
	turn.set("peak", mebibytes(used.Peak))
	return t.Alive()
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// first waits until pods of nearly every node are served. It lists one pod of
// each node, which costs a thirtieth of listing all.
func (w *environment) first(ctx context.Context, t *target, turn *Turn) error {
	const one = "/apis/metrics.k8s.io/v1beta1/namespaces/kube-system/pods?labelSelector=app%3Dnode-agent"
	return t.Until(ctx, "99% of nodes' pods to be served", 200*time.Millisecond, 5*time.Minute, func() (bool, error) {
		a, err := t.ask(ctx, one, asJSON, "", nil)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet, or has no metrics yet
		}
		served := bytes.Count(a.body, []byte(`"timestamp":`))
		since := time.Since(t.Began).Seconds()
		if _, seen := turn.Values["first"]; served > 0 && !seen {
			turn.set("first", since)
		}
		if served*100 < w.options.Shape.Nodes*99 {
			return false, nil
		}
		turn.set("most", since)
		return true, nil
	})
}

// steady measures CPU and memory over a window without requests. It returns the
// CPU seconds per second.
func (w *environment) steady(ctx context.Context, t *target, turn *Turn) (idle float64, err error) {
	before, failedBefore, err := t.counts(ctx)
	if err != nil {
		return 0, err
	}
	used, err := t.Usage()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	sampling, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	var sizes []float64
	wait.Go(func() {
		for t.Wait(sampling, time.Second) == nil {
			if now, err := t.Usage(); err == nil {
				sizes = append(sizes, mebibytes(now.Resident))
			}
		}
	})
	err = t.Wait(ctx, wholeRounds(w.options.Window, w.options.Resolution))
	stop()
	wait.Wait()
	if err != nil {
		return 0, err
	}
	after, err := t.Usage()
	if err != nil {
		return 0, err
	}
	lasted := time.Since(began)
	scrapes, failed, err := t.counts(ctx)
	if err != nil {
		return 0, err
	}
	turn.set("failed", max(0, failed-failedBefore)) // weir's is a gauge of the reads that fail at present
	want := float64(w.options.Shape.Nodes) * lasted.Seconds() / w.options.Resolution.Seconds()
	if got := scrapes - before; math.Abs(got-want) > 0.1*want+1 {
		w.logf("  NOTE: %s read nodes %.0f times, %.0f were due; %.0f reads failed", t.Name, got, want, failed-failedBefore)
	}
	turn.set("scrapes", scrapes-before)
	turn.set("window", lasted.Seconds())
	turn.set("cpu", float64((after.CPU-used.CPU).Microseconds())/(scrapes-before))
	turn.set("rss", median(sizes))
	turn.set("age", began.Sub(t.Began).Seconds())
	return (after.CPU - used.CPU).Seconds() / lasted.Seconds(), nil
}

// wholeRounds rounds a window up to a multiple of the resolution, because
// metrics-server reads all nodes at the beginning of each.
func wholeRounds(window, resolution time.Duration) time.Duration {
	return max(1, (window+resolution-1)/resolution) * resolution
}

// fresh measures the staleness of LISTs at several moments, at different parts
// of a resolution.
func (w *environment) fresh(ctx context.Context, t *target, turn *Turn) error {
	resolution := w.options.Resolution
	var lags, ages []float64
	for range w.options.Looks {
		a, err := t.ask(ctx, podsPath, asJSON, "", nil)
		if err != nil {
			return err
		}
		s, err := stale(w.fleet, a)
		if err != nil {
			return err
		}
		lags, ages = append(lags, s.lags...), append(ages, s.ages...)
		turn.set("served", float64(len(s.lags)))
		if t.Name == weirName {
			worst, compared, err := exactness(ctx, w.fleet, t.base, t.client)
			if err != nil {
				return err
			}
			turn.atLeast("rate error", worst)
			turn.set("rates compared", turn.Values["rates compared"]+float64(compared))
		}
		// The smaller part of the golden section: such steps never repeat a part of the
		// resolution.
		if err := t.Wait(ctx, time.Duration(0.382*float64(resolution))); err != nil {
			return err
		}
	}
	turn.set("lag", quantile(lags, 1)/resolution.Seconds())
	turn.set("lag p50", quantile(lags, .5)/resolution.Seconds())
	turn.set("oldest", quantile(ages, 1)/resolution.Seconds())
	turn.set("newest", quantile(ages, 0)/resolution.Seconds())
	return nil
}

// floor measures a plain fetch of what both programs read.
func (w *environment) floor(ctx context.Context, self, name string, turn *Turn) error {
	o := w.options
	args := []string{
		"floor", "--ca-file=" + w.ca, fmt.Sprintf("--nodes=%d", o.Shape.Nodes), fmt.Sprintf("--port=%d", w.port),
		"--resolution=" + o.Resolution.String(), fmt.Sprintf("--as-peer=%v", name == peerFetch),
	}
	if name == beatFetch {
		args = append(args, "--together="+beat.String())
	}
	c, err := process.Start(w.dir, "floor", nil, self, args...)
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := c.Wait(ctx, wholeRounds(2*o.Resolution, o.Resolution)); err != nil {
		return err
	}
	var before, after fetched
	usedBefore, err := c.Usage()
	if err != nil {
		return err
	}
	if err := c.Said(&before); err != nil {
		return err
	}
	if err := c.Wait(ctx, wholeRounds(o.FloorWindow, o.Resolution)); err != nil {
		return err
	}
	used, err := c.Usage()
	if err != nil {
		return err
	}
	if err := c.Said(&after); err != nil {
		return err
	}
	if after.Failed > before.Failed || after.Scrapes == before.Scrapes {
		return fmt.Errorf("measure the fetch floor: %d fetches failed, %d did not", after.Failed-before.Failed, after.Scrapes-before.Scrapes)
	}
	scrapes := float64(after.Scrapes - before.Scrapes)
	turn.set("scrapes", scrapes)
	turn.set("cpu", float64((used.CPU-usedBefore.CPU).Microseconds())/scrapes)
	turn.set("bytes", float64(after.Bytes-before.Bytes)/scrapes)
	w.logf("  %.0f µs of CPU a fetch of %.0f bytes", turn.Values["cpu"], turn.Values["bytes"])
	return nil
}
