package rate_test

import (
	"testing"

	"github.com/weir-metrics/weir/internal/shapes"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/rate"
)

// laidOut returns b, as from a source that tells its layout or from one that does not.
func laidOut(b *metric.Batch, told bool) *metric.Batch {
	if told {
		b.Layout = metric.LayoutOf(b.Samples)
	}
	return b
}

func TestUnchangedNodeAllocatesNothing(t *testing.T) {
	for _, told := range []bool{false, true} {
		n := shapes.Node{Pods: 30, Containers: 2}
		facts, b := n.Facts(), laidOut(n.Batch(), told)
		s := rate.New(rate.Options{})
		for round := range 3 { // until each series is as long as it gets
			s.Process(facts, b, n.Round(b, round))
		}
		round := 2
		got := testing.AllocsPerRun(100, func() {
			round++
			s.Process(facts, b, n.Round(b, round))
		})
		if got != 0 {
			t.Errorf("layout told %v: %v allocations a round, want 0", told, got)
		}
		for i := range b.Samples {
			if v, ok := b.Samples[i].Values.Get(metric.CPUUsageRate); !ok || v != 1e8 {
				t.Errorf("layout told %v: %v uses %v nanocores (%v), want 1e8", told, b.Samples[i].Entity, v, ok)
			}
		}
	}
}

// BenchmarkProcess measures sources that tell their layout, and those that do not.
func BenchmarkProcess(b *testing.B) {
	for _, n := range shapes.Nodes {
		b.Run(n.String(), func(b *testing.B) { benchmarkProcess(b, n, true) })
		b.Run(n.String()+"/unlaid", func(b *testing.B) { benchmarkProcess(b, n, false) })
	}
}

func benchmarkProcess(b *testing.B, n shapes.Node, told bool) {
	facts, batch := n.Facts(), laidOut(n.Batch(), told)
	s := rate.New(rate.Options{})
	var pods metric.Pods
	round := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		now := n.Round(batch, round)
		batch.NodeTime = now.UnixNano() // as a kubelet tells
		batch.ResolvePods(facts, &pods) // as identity has done
		round++
		b.StartTimer()
		s.Process(facts, batch, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n.Pods), "ns/pod")
}
