package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/metric"
)

// Slots only save work: a batch with slots is stored like one without, whatever comes, goes,
// restarts or is reported twice, and in whatever order.
func TestSlotsChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fast := 0
	for range 60 {
		slotted, bare := New(Options{MaxEntities: 12}), New(Options{MaxEntities: 12})
		var slots metric.SlotTable
		var entities []metric.Entity
		var starts []int64
		for round := range 30 {
			if round == 0 || r.IntN(5) == 0 {
				entities, starts = nil, nil
				for range r.IntN(12) {
					e := on("n1", pod("shop", string(rune('a'+r.IntN(4)))))
					if r.IntN(2) == 0 {
						e = containerOf(e, string(rune('x'+r.IntN(3))))
					}
					entities, starts = append(entities, e), append(starts, int64(r.IntN(2)))
				}
			} else if len(entities) > 0 && r.IntN(4) == 0 {
				starts[r.IntN(len(starts))]++
			}
			b := at("s", "n1", time.Duration(round)*15*time.Second)
			for _, i := range r.Perm(len(entities)) {
				s := use(b, entities[i], r.Float64(), r.Float64())
				if s.Instance.Start = starts[i]; r.IntN(20) == 0 {
					s.Reject(metric.OldPod)
				}
			}
			other := &metric.Batch{}
			other.CopyFrom(b)
			slots.Assign(b)
			b.Share(1, nil)
			if f := slotted.mu.sources[sourceKey{"s", "n1"}]; f != nil && f.slotGeneration == b.SlotGeneration && b.SlotGeneration != 0 {
				fast++
			}
			write(t, slotted, b)
			write(t, bare, other)
			for _, kind := range []metric.Kind{metric.Pod, metric.Container} {
				got, want := slices.Collect(slotted.Snapshot().Samples(kind)), slices.Collect(bare.Snapshot().Samples(kind))
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(metric.Sample{}, metric.Values{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("round %d (-without +with slots):\n%s", round, diff)
				}
			}
		}
	}
	if fast < 200 {
		t.Errorf("only %d batches had the slots of before: nearly nothing was tried", fast)
	}
}
