package metric_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Entities come, go, repeat and change their order. An entity keeps its slot while it is
// reported or kept, and a slot that is given again has no state of the entity before.
func TestSlotsAgreeWithAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	reused := 0
	for fixture := range 200 {
		var table metric.SlotTable
		var state []metric.Entity // by slot, as in a step
		slots := map[metric.Entity]uint32{}
		var last []metric.Entity
		for round := range 40 {
			b := &metric.Batch{}
			switch r.IntN(5) {
			case 0:
				last = nil
			case 1:
				last = randomEntities(r)
			}
			for _, e := range last {
				b.Add(e)
			}
			if last == nil || r.IntN(3) == 0 {
				for _, e := range randomEntities(r) {
					b.Add(e)
				}
			}
			if r.IntN(8) == 0 {
				b.Reset()
				b.Err = errors.New("no answer")
			}
			was := table.Generation()
			b.AssignSlots(&table)
			state = metric.BySlot(&table, state)
			if !b.Failed() {
				// An entity that was neither reported nor kept in the previous round is gone.
				for _, s := range table.Freed() {
					for e, of := range slots {
						if of == s {
							delete(slots, e)
						}
					}
				}
			}
			given := 0
			check := func(e metric.Entity, s uint32) {
				if want, ok := slots[e]; ok && s != want {
					t.Fatalf("fixture %d, round %d: %v has slot %d, had %d", fixture, round, e, s, want)
				}
				if _, ok := slots[e]; !ok {
					for other, of := range slots {
						if of == s {
							t.Fatalf("fixture %d, round %d: %v has the slot %d of %v", fixture, round, e, s, other)
						}
					}
					if state[s] != (metric.Entity{}) {
						t.Fatalf("fixture %d, round %d: slot %d of %v has state of %v", fixture, round, s, e, state[s])
					}
					given++
				} else if state[s] != e {
					t.Fatalf("fixture %d, round %d: slot %d of %v has lost its state: %v", fixture, round, s, e, state[s])
				}
				if *table.Entity(s) != e || table.Find(&e) != s {
					t.Fatalf("fixture %d, round %d: slot %d of %v: Entity %v, Find %d", fixture, round, s, e, *table.Entity(s), table.Find(&e))
				}
				slots[e], state[s] = s, e
			}
			for i := range b.Samples {
				e := b.Samples[i].Entity
				for s := b.Samples[i].Slot; ; s = table.Owner(s) {
					check(e, s)
					if e.Part != "" {
						e.Part = ""
					} else if e.Kind == metric.Container {
						e = e.OfPod()
					} else {
						if pod := table.PodOf(b.Samples[i].Slot); e.Kind == metric.Pod && pod != s || e.Kind != metric.Pod && pod != 0 {
							t.Fatalf("PodOf(%v) = %d", b.Samples[i].Entity, pod)
						}
						break
					}
				}
			}
			if got := table.Generation() != was; got != (given > 0) {
				t.Fatalf("fixture %d, round %d: %d slots were given, another Generation: %v", fixture, round, given, got)
			}
			for e, s := range slots {
				if r.IntN(4) == 0 {
					table.Keep(s)
				}
				if table.Find(&e) != s {
					t.Fatalf("fixture %d, round %d: %v is lost", fixture, round, e)
				}
			}
			if r.IntN(4) == 0 {
				all := randomEntities(r)
				s := table.SlotOf(&all[0])
				state = append(state, make([]metric.Entity, table.Len()-len(state))...)
				check(all[0], s)
				for o := table.Owner(s); o != 0; o = table.Owner(o) {
					check(*table.Entity(o), o)
				}
			}
			reused += len(table.Freed())
		}
		if n := table.Len(); n > 80 {
			t.Errorf("%d slots for at most 64 entities", n)
		}
	}
	if reused < 1000 {
		t.Errorf("only %d slots were freed: nearly nothing was tried", reused)
	}
}

func randomEntities(r *rand.Rand) []metric.Entity {
	all := []metric.Entity{{Kind: metric.Node, Node: "n1"}, {Kind: metric.System, Node: "n1", Name: "kubelet"}}
	for p := range 5 {
		e := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: metric.PodName(fmt.Sprint("p", p))}
		part := e
		part.Part = "interface:eth0"
		all = append(all, e, part)
		for c := range 3 {
			e.Kind, e.Name = metric.Container, fmt.Sprint("c", c)
			part := e
			part.Part = "volume:data"
			all = append(all, e, e, part)
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(len(all))]
}

func TestSlotsOfAnUnchangedNodeAllocateNothing(t *testing.T) {
	b := &metric.Batch{Began: time.Unix(0, 0)}
	for _, e := range randomEntities(rand.New(rand.NewPCG(3, 4))) {
		b.Add(e)
	}
	var table metric.SlotTable
	if got := testing.AllocsPerRun(20, func() { table.Assign(b) }); got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
}

func BenchmarkSlots(b *testing.B) {
	batch := &metric.Batch{}
	for p := range 110 {
		e := metric.Entity{Kind: metric.Pod, Node: "node-1", Namespace: "shop", Pod: metric.PodName(fmt.Sprint("web-5d8f6c9b7-", p))}
		batch.Add(e)
		for c := range 3 {
			e.Kind, e.Name = metric.Container, fmt.Sprint("container-", c)
			batch.Add(e)
		}
	}
	other := &metric.Batch{}
	other.CopyFrom(batch)
	slices.Reverse(other.Samples)
	for name, batches := range map[string][2]*metric.Batch{"same": {batch, batch}, "moved": {batch, other}} {
		b.Run(name, func(b *testing.B) {
			var table metric.SlotTable
			b.ReportAllocs()
			for round := 0; b.Loop(); round++ {
				table.Assign(batches[round%2])
			}
		})
	}
}
