package identity_test

import (
	"runtime"
	"testing"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/test/samplenodes"
)

// batchOf returns n's batch with its Layout, as a parser gives it.
func batchOf(n samplenodes.Node) *metric.Batch {
	b := n.Batch()
	b.Layout = metric.LayoutOf(b.Samples)
	return b
}

func TestUnchangedNodeAllocatesNothing(t *testing.T) {
	n := samplenodes.Node{Pods: 30, Containers: 2}
	for name, b := range map[string]*metric.Batch{"with a Layout": batchOf(n), "without": n.Batch()} {
		facts := n.Facts()
		s := identity.New(identity.Options{})
		now := n.Round(b, 0)
		s.Process(facts, b, now)
		round := 0
		got := testing.AllocsPerRun(100, func() {
			round++
			s.Process(facts, b, n.Round(b, round))
		})
		if got != 0 {
			t.Errorf("%s: %v allocations a round, want 0", name, got)
		}
		for i := range b.Samples {
			if b.Samples[i].Rejected() {
				t.Errorf("%s: %v was rejected", name, b.Samples[i].Entity)
			}
		}
	}
}

// What is remembered of a node of 30 pods and 60 containers, of which there may be
// thousands, is below 12 kB: with the table of slots, which all steps use.
func TestStateIsSmall(t *testing.T) {
	const nodes, limit = 100, 12_000
	n := samplenodes.Node{Pods: 30, Containers: 2}
	facts, b := n.Facts(), batchOf(n)
	states := make([]*identity.State, nodes)
	before := heap()
	for i := range states {
		states[i] = identity.New(identity.Options{})
		for round := range 3 {
			states[i].Process(facts, b, n.Round(b, round))
		}
	}
	if got := (heap() - before) / nodes; got > limit {
		t.Errorf("a node's state takes %d bytes, want at most %d", got, limit)
	}
	runtime.KeepAlive(states)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkProcess(b *testing.B) {
	for _, n := range samplenodes.Nodes {
		b.Run(n.String(), func(b *testing.B) {
			facts, batch := n.Facts(), batchOf(n)
			s := identity.New(identity.Options{})
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
