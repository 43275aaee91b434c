package memory

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// scale is a cluster to measure.
type scale struct{ nodes, pods, containers int }

func (s scale) String() string {
	return fmt.Sprintf("%dnodes×%dpods×%d", s.nodes, s.pods, s.containers)
}

var clusters = []scale{{10, 30, 2}, {1000, 30, 2}}

// filled returns a sink after so many rounds, with the names of its nodes.
func filled(b *testing.B, s scale, rounds int) (*Sink, *cluster, []*nodeNames) {
	b.Helper()
	c := kubelet(s.nodes, s.pods, s.containers)
	sink := New(Options{})
	names := make([]*nodeNames, s.nodes)
	for n := range names {
		names[n] = c.names(n)
	}
	for round := range rounds {
		for _, n := range names {
			_ = sink.Write(b.Context(), c.fill(&c.batch, n, round))
		}
	}
	return sink, c, names
}

// BenchmarkWrite is one unchanged node's round.
func BenchmarkWrite(b *testing.B) {
	for _, s := range clusters {
		b.Run(s.String(), func(b *testing.B) {
			sink, c, names := filled(b, s, 3)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				batch := c.fill(&c.batch, names[i%len(names)], 3+i/len(names))
				b.StartTimer()
				if err := sink.Write(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory reports what a cluster takes after 15 minutes.
func BenchmarkMemory(b *testing.B) {
	for _, s := range clusters {
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				_, _, names := filled(b, s, 0)
				before := heap()
				sink := New(Options{})
				c := kubelet(s.nodes, s.pods, s.containers)
				const rounds = 61
				for round := range rounds {
					for _, n := range names {
						_ = sink.Write(b.Context(), c.fill(&c.batch, n, round))
					}
				}
				c.batch = metric.Batch{}
				total := float64(heap() - before)
				entities := float64(sink.Stats().Entities)
				points := entities * 2 * rounds
				history := float64(sink.Stats().HistoryBytes)
				b.ReportMetric(history/points, "B/point")
				b.ReportMetric(total/entities, "B/entity")
				b.ReportMetric(total/(1<<20), "MiB")
				runtime.KeepAlive(sink)
				runtime.KeepAlive(names)
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	sink, _, _ := filled(b, clusters[0], 1)
	b.ReportAllocs()
	for b.Loop() {
		sink.Snapshot()
	}
}

// BenchmarkRead goes through all pods and containers, as a LIST does.
func BenchmarkRead(b *testing.B) {
	for _, s := range clusters {
		sink, _, names := filled(b, s, 60)
		snap := sink.Snapshot()
		b.Run("Each/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, k := range []metric.Kind{metric.Pod, metric.Container} {
					snap.Each(k, func(*metric.Sample) bool { return true })
				}
			}
		})
		b.Run("Samples/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, k := range []metric.Kind{metric.Pod, metric.Container} {
					for range snap.Samples(k) {
					}
				}
			}
		})
		e := names[len(names)/2].containers[7]
		e.Node = ""
		b.Run("Lookup/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := snap.Lookup(e); !ok {
					b.Fatal("not found")
				}
			}
		})
		b.Run("History/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := len(snap.History(e, metric.CPUUsageRate, epoch.Add(-time.Hour), epoch.Add(time.Hour))); got != 60 {
					b.Fatalf("got %d points", got)
				}
			}
		})
		b.Run("Totals/"+s.String(), func(b *testing.B) {
			for b.Loop() {
				snap.sum()
			}
		})
	}
}
