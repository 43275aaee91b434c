package push_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/push"
)

// counted is a Format that counts points.
type counted int

func (*counted) Describe(int, *metric.Sample) (int, bool) { return 0, false }

func (c *counted) Add(push.Point[int]) { *c++ }

func (*counted) Encode([]byte) []byte { return nil }

// clusterMemory is a snapshot of the memory that a cluster uses now.
type clusterMemory struct{}

func (clusterMemory) Each(kind metric.Kind, do func(*metric.Sample) bool) {
	if kind != metric.Cluster {
		return
	}
	s := metric.Sample{Entity: metric.Entity{Kind: metric.Cluster}}
	group := metric.Catalogue[metric.MemoryWorkingSet].Group
	s.Times[group], s.Reasons[group] = time.Now().UnixNano(), metric.Measured
	s.Values.Set(metric.MemoryWorkingSet, 4096)
	do(&s)
}

// Sums are sent every Interval, however long a sample may wait for a full request. Only then is a
// snapshot taken: the rounds that it holds cost the memory sink their buffers.
func TestSumsEveryInterval(t *testing.T) {
	for _, flush := range []time.Duration{time.Nanosecond, 2 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var points counted
			views := 0
			s, err := push.New(push.Options{
				URL: "http://receiver", HTTP: config.DefaultHTTPClientConfig, Flush: flush, Interval: 15 * time.Second,
				View: func() push.SnapshotReader { views++; return clusterMemory{} },
			}, "test", &points)
			if err != nil {
				t.Fatal(err)
			}
			s.SetSend(func(context.Context, []byte) (int, error) { return 0, nil })
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = s.Run(ctx) })
			time.Sleep(time.Minute + time.Second) // of the bubble's clock
			cancel()
			running.Wait()
			if points != 4 || views != 4 {
				t.Errorf("flush %v: %d sums of %d snapshots were sent in a minute, want 4 of 4", flush, points, views)
			}
		})
	}
}
