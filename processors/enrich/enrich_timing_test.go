package enrich_test

import (
	"testing"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/enrich"
	"github.com/weir-metrics/weir/test/samplenodes"
)

// asking returns the facts of n, with a request for every container.
func asking(n samplenodes.Node) *cluster.Facts {
	facts := n.Facts()
	for _, p := range facts.PodsOn(samplenodes.Name) {
		for i := range p.Containers {
			for _, id := range [...]metric.ID{metric.CPURequest, metric.CPULimit, metric.MemoryRequest, metric.MemoryLimit} {
				p.Containers[i].Spec.Set(id, 1e8)
			}
		}
	}
	return facts
}

// resolved prepares b as identity does: it assigns slots and resolves the pods.
func resolved(b *metric.Batch, facts *cluster.Facts) *metric.Batch {
	b.AssignSlots(new(metric.SlotTable))
	new(cluster.PodCache).Resolve(facts, b)
	return b
}

func TestUnchangedNodeAllocatesNothing(t *testing.T) {
	n := samplenodes.Node{Pods: 30, Containers: 2}
	facts := asking(n)
	b := resolved(n.Batch(), facts)
	slots := b.Slots
	e := enrich.New()
	e.Process(facts, b, n.Round(b, 0))
	round := 0
	got := testing.AllocsPerRun(100, func() {
		round++
		now := n.Round(b, round)
		b.Slots = slots
		e.Process(facts, b, now)
	})
	if got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
	if v, _ := b.Samples[0].Values.Get(metric.CPURequest); v != 60e8 {
		t.Errorf("the node is asked for %v nanocores, want 60e8", v)
	}
}

func BenchmarkProcess(b *testing.B) {
	for _, n := range samplenodes.Nodes {
		b.Run(n.String(), func(b *testing.B) {
			facts := asking(n)
			batch := resolved(n.Batch(), facts)
			slots := batch.Slots
			e := enrich.New()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for i := range batch.Samples {
					batch.Samples[i].Values.Reset()
				}
				now := n.Round(batch, 0)
				batch.Slots = slots
				b.StartTimer()
				e.Process(facts, batch, now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n.Pods), "ns/pod")
		})
	}
}
