package rate_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/rate"
	"github.com/weir-metrics/weir/test/samplenodes"
)

func TestUnchangedNodeAllocatesNothing(t *testing.T) {
	n := samplenodes.Node{Pods: 30, Containers: 2}
	facts, b := n.Facts(), n.Batch()
	s := rate.New(rate.Options{})
	for round := range 3 { // until each series has its full length
		s.Process(facts, b, n.Round(b, round))
	}
	round := 2
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
	for _, n := range samplenodes.Nodes {
		b.Run(n.String(), func(b *testing.B) { benchmarkProcess(b, n) })
	}
}

func benchmarkProcess(b *testing.B, n samplenodes.Node) {
	facts, batch := n.Facts(), n.Batch()
	s := rate.New(rate.Options{})
	var slots metric.SlotTable
	var pods cluster.PodCache
	round := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		now := n.Round(batch, round)
		batch.NodeTime = now.UnixNano() // as a kubelet reports it
		slots.Assign(batch)             // identity does this in a pipeline
		pods.Resolve(facts, batch)
		round++
		b.StartTimer()
		s.Process(facts, batch, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n.Pods), "ns/pod")
}

// BenchmarkFleet measures one source of a thousand, as /metrics/resource reports it: its state
// has left the processor's caches since its last round.
func BenchmarkFleet(b *testing.B) {
	n := samplenodes.Node{Pods: 30, Containers: 2}
	facts, batch := n.Facts(), n.Batch()
	for i := range batch.Samples {
		batch.Samples[i].Instance.UID, batch.Samples[i].Instance.ID = "", ""
	}
	fleet := make([]*rate.Calculator, 1000)
	slots := make([]metric.SlotTable, len(fleet))
	pods := make([]cluster.PodCache, len(fleet))
	for i := range fleet {
		fleet[i] = rate.New(rate.Options{})
	}
	var took time.Duration
	turn := func(i int) {
		now := n.Round(batch, i/len(fleet))
		i %= len(fleet)
		batch.NodeTime = now.UnixNano()
		slots[i].Assign(batch)
		pods[i].Resolve(facts, batch)
		began := time.Now()
		fleet[i].Process(facts, batch, now)
		took += time.Since(began)
	}
	done := 0
	for ; done < 3*len(fleet); done++ {
		turn(done)
	}
	took = 0
	for b.Loop() {
		turn(done)
		done++
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/turn")
	b.ReportMetric(0, "ns/op")
}
