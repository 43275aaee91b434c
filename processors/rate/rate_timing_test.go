package rate_test

import (
	"testing"

	"github.com/weir-metrics/weir/internal/shapes"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/rate"
)

func TestUnchangedNodeAllocatesNothing(t *testing.T) {
	n := shapes.Node{Pods: 30, Containers: 2}
	facts, b := n.Facts(), n.Batch()
	s := rate.New(rate.Options{})
	now := n.Round(b, 0)
	s.Process(facts, b, now)
	round := 0
	got := testing.AllocsPerRun(100, func() {
		round++
		s.Process(facts, b, n.Round(b, round))
	})
	if got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
	for i := range b.Samples {
		if v, ok := b.Samples[i].Values.Get(metric.CPUUsageRate); !ok || v != 1e8 {
			t.Errorf("%v uses %v nanocores (%v), want 1e8", b.Samples[i].Entity, v, ok)
		}
	}
}

func BenchmarkProcess(b *testing.B) {
	for _, n := range shapes.Nodes {
		b.Run(n.String(), func(b *testing.B) {
			facts, batch := n.Facts(), n.Batch()
			s := rate.New(rate.Options{})
			round := 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				now := n.Round(batch, round)
				round++
				b.StartTimer()
				s.Process(facts, batch, now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n.Pods), "ns/pod")
		})
	}
}
