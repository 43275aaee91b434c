package processors_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
)

// Pods come and go, and their slots are freed and used again. The results are those of a
// pipeline that never frees a slot.
func TestReusedSlotsInheritNothing(t *testing.T) {
	freed := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		frees, keeps := processors.New(processors.Options{}), processors.New(processors.Options{})
		exhaustive, parts := r.IntN(2) == 0, r.IntN(2) == 0
		cpu := map[metric.Entity]float64{}
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		first, count := 0, 1+r.IntN(8)
		for round := range 60 {
			now = now.Add(15 * time.Second)
			b := &metric.Batch{Source: "test", Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Cores: 4, Exhaustive: exhaustive, NodeTime: now.Unix() * 1e9}
			first += r.IntN(3) / 2
			switch r.IntN(15) {
			case 0:
				b.Err = &metric.ReadError{Reason: metric.NodeTimeout}
			default:
				add := func(e metric.Entity) {
					cpu[e] += float64(r.IntN(1e10))
					s := b.Add(e)
					s.Times[metric.CPU], s.Times[metric.Memory] = now.UnixNano(), now.UnixNano()
					s.Values.Set(metric.CPUUsage, cpu[e])
					s.Values.Set(metric.MemoryWorkingSet, 1e8)
				}
				for i := first; i < first+count; i++ {
					if r.IntN(10) == 0 {
						continue
					}
					e := metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: metric.PodName(fmt.Sprint("p", i)), Name: "app"}
					add(e)
					if r.IntN(10) == 0 {
						add(e)
					}
					if e.Part = "volume:data"; parts {
						add(e)
					}
				}
			}
			other := &metric.Batch{}
			other.CopyFrom(b)
			other.Exhaustive = exhaustive
			frees.Process(nil, b, now)
			keeps.Process(nil, other, now)
			freed += len(b.Slots.Freed())
			for s := range uint32(other.Slots.Len()) {
				other.Slots.Keep(s)
			}
			if n := b.Slots.Len(); n > 200 {
				t.Fatalf("seed %d, round %d: %d slots", seed, round, n)
			}
			got, want := sorted(b), sorted(other)
			if !reflect.DeepEqual(got.Samples, want.Samples) || !reflect.DeepEqual(got.Verdicts, want.Verdicts) {
				t.Fatalf("seed %d, round %d:\n got %+v\nwant %+v", seed, round, got, want)
			}
		}
	}
	if freed < 500 {
		t.Errorf("only %d slots were freed: nearly nothing was tried", freed)
	}
}

// sorted returns a copy of b without slots, in an order that does not depend on them.
func sorted(b *metric.Batch) *metric.Batch {
	c := &metric.Batch{}
	c.CopyFrom(b)
	for i := range c.Samples {
		c.Samples[i].Slot = 0
	}
	slices.SortStableFunc(c.Samples, func(x, y metric.Sample) int { return x.Entity.Compare(y.Entity) })
	slices.SortStableFunc(c.Verdicts, func(x, y metric.Verdict) int {
		return cmp.Or(x.Entity.Compare(y.Entity), cmp.Compare(x.Group, y.Group), cmp.Compare(x.Reason, y.Reason))
	})
	return c
}
