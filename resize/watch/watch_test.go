package watch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/watch"
)

var start = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const mi = 1 << 20

// pod returns a ready pod whose container app is to request 100m and 64Mi.
func pod(change func(*watch.Pod, *watch.Container)) watch.Pod {
	c := watch.Container{Name: "app", Requests: resize.Amounts{CPU: resize.Of(100), Memory: resize.Of(64 * mi)},
		Used: resize.Amounts{CPU: resize.Of(50), Memory: resize.Of(40 * mi)}, At: start}
	p := watch.Pod{Name: "web-1", Ready: true}
	if change != nil {
		change(&p, &c)
	}
	p.Containers = []watch.Container{c}
	return p
}

// TestLook looks every ten seconds at a pod that changes, and expects what hurts at the last look, and nothing
// at those before.
func TestLook(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	type look struct {
		change func(*watch.Pod, *watch.Container)
		waits  watch.Waits
	}
	cpu := func(millicores int64, reading int) look {
		return look{change: func(_ *watch.Pod, c *watch.Container) {
			c.Used.CPU, c.At = resize.Of(millicores), start.Add(time.Duration(reading)*15*time.Second)
		}}
	}
	unready := look{change: func(p *watch.Pod, _ *watch.Container) { p.Ready = false }}
	for name, c := range map[string]struct {
		before watch.Waits
		looks  []look
		want   string
	}{
		"nothing": {looks: []look{{}, {}, {}}},
		"a restart": {looks: []look{{}, {change: func(_ *watch.Pod, c *watch.Container) { c.Restarts, c.LastEnd = 1, "OOMKilled, exit code 137" }}},
			want: "app of web-1 was restarted: OOMKilled, exit code 137"},
		"an eviction":           {looks: []look{{change: func(p *watch.Pod, _ *watch.Container) { p.Ended = "Failed Evicted" }}}, want: "pod web-1 ended: Failed Evicted"},
		"memory at the request": {looks: []look{{change: func(_ *watch.Pod, c *watch.Container) { c.Used.Memory = resize.Of(64 * mi) }}}},
		"memory above the request": {looks: []look{{change: func(_ *watch.Pod, c *watch.Container) { c.Used.Memory = resize.Of(65 * mi) }}},
			want: "app of web-1 uses 65Mi of memory, more than the 64Mi that it is to request"},
		"CPU above the request in one reading": {looks: []look{cpu(150, 1), cpu(150, 1), cpu(150, 1), cpu(150, 1)}},
		"CPU above the request, with a pause":  {looks: []look{cpu(150, 1), cpu(150, 2), cpu(90, 3), cpu(150, 4), cpu(150, 5)}},
		"CPU above the request in three readings": {looks: []look{cpu(150, 1), cpu(150, 2), cpu(150, 2), cpu(150, 3)},
			want: "app of web-1 uses 150m of CPU, more than the 100m that it requests, in 3 readings in a row"},
		"not ready for a moment":     {looks: []look{unready, unready, {}, unready, unready}},
		"not ready":                  {looks: []look{unready, unready, unready}, want: "pod web-1, which was ready, has not been ready for 20s"},
		"throttled as before":        {before: watch.Waits{Throttled: share(0.5)}, looks: []look{{waits: watch.Waits{Throttled: share(0.55)}}}},
		"throttled more than before": {before: watch.Waits{Throttled: share(0.5)}, looks: []look{{waits: watch.Waits{Throttled: share(0.75)}}}, want: "the CPU limit holds back threads of web-1 for 0.75 s each second, 0.50 s before"},
		"waits for CPU":              {before: watch.Waits{CPU: share(0.05)}, looks: []look{{waits: watch.Waits{CPU: share(0.4)}}}, want: "pod web-1 waits for CPU 40% of the time, 5% before"},
		"waits for memory":           {looks: []look{{waits: watch.Waits{Memory: share(0.2)}}}, want: "pod web-1 waits for memory 20% of the time, 0% before"},
	} {
		w := watch.New([]watch.Pod{pod(nil)}, map[string]watch.Waits{"web-1": c.before})
		for i, l := range c.looks {
			got, want := "", ""
			if i == len(c.looks)-1 {
				want = c.want
			}
			if h := w.Look(start.Add(time.Duration(i)*10*time.Second), []watch.Pod{pod(l.change)}, map[string]watch.Waits{"web-1": l.waits}); h != nil {
				got = h.Message
				if h.Pod != "web-1" || h.Restart != strings.Contains(got, "restarted") {
					t.Errorf("%s: it is of pod %q, restart %v", name, h.Pod, h.Restart)
				}
			}
			if got != want {
				t.Errorf("%s: look %d: got %q, want %q", name, i+1, got, want)
			}
		}
	}
}

// TestLookAtNewPod compares a pod that came after the change with its first state.
func TestLookAtNewPod(t *testing.T) {
	w := watch.New(nil, nil)
	restarts := func(n int32) []watch.Pod {
		return []watch.Pod{pod(func(_ *watch.Pod, c *watch.Container) { c.Restarts = n })}
	}
	if h := w.Look(start, restarts(3), nil); h != nil {
		t.Errorf("at first: got %q, want nothing", h.Message)
	}
	if h := w.Look(start, restarts(4), nil); h == nil || h.Message != "app of web-1 was restarted: why is not known" {
		t.Errorf("after a restart: got %v", h)
	}
}
