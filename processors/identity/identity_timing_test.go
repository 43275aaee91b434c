package identity_test

import (
	"runtime"
	"testing"

	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/test/samplenodes"
)

func TestUnchangedNodeAllocatesNothing(t *testing.T) {
	n := samplenodes.Node{Pods: 30, Containers: 2}
	facts, b := n.Facts(), n.Batch()
	s := identity.New()
	s.Process(facts, b, n.Round(b, 0))
	round := 0
	got := testing.AllocsPerRun(100, func() {
		round++
		s.Process(facts, b, n.Round(b, round))
	})
	if got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
	for i := range b.Samples {
		if b.Samples[i].Rejected() {
			t.Errorf("%v was rejected", b.Samples[i].Entity)
		}
	}
}

// The state of a node of 30 pods and 60 containers is below 24 kB. A cluster may have thousands
// of nodes. The entities take 12 kB of it, and all steps find them by slot.
func TestStateIsSmall(t *testing.T) {
	const nodes, limit = 100, 24_000
	n := samplenodes.Node{Pods: 30, Containers: 2}
	facts, b := n.Facts(), n.Batch()
	states := make([]*identity.Identifier, nodes)
	before := heap()
	for i := range states {
		states[i] = identity.New()
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
			facts, batch := n.Facts(), n.Batch()
			s := identity.New()
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
