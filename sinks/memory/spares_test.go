package memory

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// The content of a Snapshot does not change, however often its nodes are written afterwards.
// The memory of rounds that are in no Snapshot is reused.
func TestRoundsNobodySawAreWrittenOver(t *testing.T) {
	sink := New(Options{})
	round := 0
	writeBoth := func() {
		round++
		for n := range 2 {
			node := nodeName(n)
			b := at("s", node, time.Duration(round)*15*time.Second)
			use(b, on(node, pod("a", "web-"+string(node))), float64(round), 1)
			write(t, sink, b)
		}
	}
	arrays := map[*uint64]bool{}
	lastKnown := map[*Snapshot]float64{}
	for i := range 40 {
		writeBoth()
		if i%10 == 9 {
			lastKnown[sink.Snapshot()] = float64(round)
		}
		for _, f := range sink.mu.sources {
			arrays[&f.published.round.words[0]] = true
		}
	}
	for snap, want := range lastKnown {
		for n := range 2 {
			s, ok := snap.Lookup(on(nodeName(n), pod("a", "web-"+string(nodeName(n)))))
			if !ok {
				t.Fatalf("node %d is not in the snapshot of round %v", n, want)
			}
			value(t, s, metric.CPUUsageRate, want)
		}
	}
	// Each of the four Snapshots keeps two rounds, and three others follow it.
	if len(arrays) > 4*2+3 {
		t.Errorf("80 rounds, of which 8 were seen, were written to %d pieces of memory, want at most 11", len(arrays))
	}
}
