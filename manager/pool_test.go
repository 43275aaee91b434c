package manager

import (
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// A node that is read for the first time fills a batch with verdicts. The memory for them is
// kept only while it is used.
func TestPoolGivesUpRoomForVerdicts(t *testing.T) {
	p := newPool(1)
	for _, round := range []struct{ verdicts, kept int }{{180, 180}, {90, 180}, {10, 0}, {fewVerdicts, fewVerdicts}, {0, fewVerdicts}} {
		b := p.get()
		b.EnsureBuffers()
		if cap(b.Verdicts) < round.verdicts {
			b.Verdicts = make([]metric.Verdict, 0, round.verdicts)
		}
		b.Verdicts = b.Verdicts[:round.verdicts]
		p.recycle(b)
		got := 0
		if n := len(p.mu.buffers); n > 0 {
			got = cap(p.mu.buffers[n-1].verdicts)
		}
		if got != round.kept {
			t.Errorf("room after a round with %d verdicts: got %d, want %d", round.verdicts, got, round.kept)
		}
	}
}

// A batch gets memory when its first sample is added. Batches that are filled one after the
// other use the same memory.
func TestPoolAllocatesLate(t *testing.T) {
	p := newPool(4)
	all := []*metric.Batch{p.get(), p.get(), p.get()}
	var at *metric.Sample
	for i, b := range all {
		if got := cap(b.Samples); got != 0 {
			t.Errorf("batch %d waits with room for %d samples, want 0", i, got)
		}
		got := b.Add(metric.Entity{Kind: metric.Node, Node: "n1"})
		if i > 0 && got != at {
			t.Errorf("batch %d: got memory of its own, want that of the one before", i)
		}
		at = got
		p.recycle(b)
	}
	if got := len(p.mu.buffers); got != 1 {
		t.Errorf("rooms: got %d, want 1", got)
	}
}

// A node with very many samples fills a batch once. Its memory is not kept for the others.
func TestPoolGivesUpRoomForManySamples(t *testing.T) {
	p := newPool(1)
	for _, round := range []struct{ samples, kept int }{{100, 100}, {10, 100}, {4 * manySamples, 4 * manySamples}, {2 * manySamples, 4 * manySamples}, {100, 0}} {
		b := p.get()
		b.EnsureBuffers()
		if cap(b.Samples) < round.samples {
			b.Samples = make([]metric.Sample, 0, round.samples)
		}
		b.Samples = b.Samples[:round.samples]
		p.recycle(b)
		got := 0
		if n := len(p.mu.buffers); n > 0 {
			got = cap(p.mu.buffers[n-1].samples)
		}
		if got != round.kept {
			t.Errorf("room after a round with %d samples: got %d, want %d", round.samples, got, round.kept)
		}
	}
}
