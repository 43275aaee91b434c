package manager

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Each node that is read has metrics with its name: whether it answers, how long that takes, and
// how far its clock is ahead.
func TestNodeMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &place{read: func(_ context.Context, _ int, b *metric.Batch) error {
			time.Sleep(2 * time.Second) // in a synctest bubble
			b.NodeTime = time.Now().Add(90 * time.Second).Truncate(time.Second).UnixNano()
			b.Add(metric.Entity{Kind: metric.Node, Node: b.Node})
			return nil
		}}
		dead := &place{read: func(context.Context, int, *metric.Batch) error { return errors.New("no route to host") }}
		excluded := Spec{Name: "excluded/c", Kind: "excluded", Node: "c", Interval: interval, Unread: errors.New("not selected")}
		h := build(t, Options{}, slow.spec("a", interval, timeout), dead.spec("b", interval, timeout), excluded)
		h.until(5 * time.Second)
		h.wantMetric(1, "weir_node_up", "node=a")
		h.wantMetric(2, "weir_node_read_duration_seconds", "node=a")
		if ahead := h.metric("weir_node_clock_ahead_seconds", "node=a"); ahead < 89.5 || ahead > 90.5 {
			t.Errorf("the clock is %v ahead, want 90 or, as the answer has whole seconds, up to half a second more or less", ahead)
		}
		h.wantMetric(0, "weir_node_up", "node=b")
		if families, err := h.registry.Gather(); err != nil {
			t.Error(err)
		} else {
			want := map[string]int{"weir_node_up": 2, "weir_node_read_duration_seconds": 2, "weir_node_clock_ahead_seconds": 1}
			for _, f := range families {
				if n, ok := want[f.GetName()]; ok && len(f.Metric) != n {
					t.Errorf("%s has %d series, want %d: excluded nodes and unknown clocks have none", f.GetName(), len(f.Metric), n)
				}
			}
		}
		h.mustEnd()
	})
}

// A node that answers slowly reported its time at some moment of the read.
func TestClockAhead(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ told, want time.Duration }{
		{-31 * time.Second, -30500 * time.Millisecond},
		{0, 0},
		{4 * time.Second, 0},
		{5 * time.Second, 0},
		{95 * time.Second, 90500 * time.Millisecond},
	} {
		b := &metric.Batch{Began: began, Ended: began.Add(5 * time.Second), NodeTime: began.Add(c.told).UnixNano()}
		if got := clockAhead(b); got != c.want {
			t.Errorf("told %v after the read of 5s began: %v ahead, want %v", c.told, got, c.want)
		}
	}
}
