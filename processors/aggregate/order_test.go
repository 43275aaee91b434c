package aggregate_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
)

// whole is what is served of a pod or node, bit by bit.
type whole struct {
	cpu, memory uint64
	reason      metric.Reason
	at          int64
	window      metric.Window
}

func wholes(b *metric.Batch) map[metric.Entity]whole {
	found := map[metric.Entity]whole{}
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Kind == metric.Container {
			continue
		}
		w := whole{reason: s.Reasons[metric.CPU], at: s.Times[metric.CPU], window: s.Rates[metric.CPU]}
		if cpu, ok := s.Values.Get(metric.CPUUsageRate); ok {
			w.cpu = math.Float64bits(cpu)
		}
		if memory, ok := s.Values.Get(metric.MemoryWorkingSet); ok {
			w.memory = math.Float64bits(memory)
		}
		found[s.Entity] = w
	}
	for _, v := range b.Verdicts {
		if v.Entity.Kind != metric.Container && v.Group == metric.CPU {
			w := found[v.Entity]
			w.reason = v.Reason
			found[v.Entity] = w
		}
	}
	return found
}

// The result is the same, bit by bit, in whatever order a node reports. If all containers are
// measured, it is their exact sum.
func TestOrderDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var samples []metric.Sample
		want := map[metric.PodName]*big.Float{}
		short := map[metric.PodName]bool{}
		for p := range 1 + random.IntN(8) {
			pod := metric.PodName(fmt.Sprintf("p%d", p))
			want[pod] = new(big.Float).SetPrec(500)
			for c := range 1 + random.IntN(6) {
				s := metric.Sample{Entity: metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "a", Pod: pod, Name: fmt.Sprintf("c%d", c)}}
				cpu := random.Float64() * 1e9
				at := 1e9 * int64(1+random.IntN(5))
				s.Values.Set(metric.CPUUsageRate, cpu)
				s.Values.Set(metric.MemoryWorkingSet, random.Float64()*1e9)
				for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
					s.Reasons[g], s.Times[g] = metric.Measured, at
				}
				s.Rates[metric.CPU] = metric.Window{End: at, Length: time.Duration(1+random.IntN(20)) * time.Second}
				if random.IntN(10) == 0 {
					s.Reasons[metric.CPU] = metric.TooYoung
					short[pod] = true
				}
				want[pod].Add(want[pod], big.NewFloat(cpu))
				samples = append(samples, s)
			}
		}
		var first map[metric.Entity]whole
		for range 4 {
			random.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
			b := &metric.Batch{Node: "n1", Samples: make([]metric.Sample, len(samples))}
			for i := range samples {
				b.Samples[i].CopyFrom(&samples[i])
			}
			aggregate.New().Process(nil, b, time.Unix(10, 0))
			got := wholes(b)
			if first == nil {
				first = got
				continue
			}
			for e, w := range first {
				if got[e] != w {
					t.Fatalf("%v: in one order %+v, in another %+v", e, w, got[e])
				}
			}
		}
		for e, w := range first {
			if e.Kind != metric.Pod {
				continue
			}
			cpu, _ := want[e.Pod].Float64()
			switch {
			case short[e.Pod] && w.reason != metric.Incomplete:
				t.Errorf("%v lacks a container and is %v, want Incomplete", e, w.reason)
			case !short[e.Pod] && w.cpu != math.Float64bits(cpu):
				t.Errorf("%v: cpu %v, want %v", e, math.Float64frombits(w.cpu), cpu)
			}
		}
		if len(first) != 1+len(want) {
			t.Fatalf("%d pods and nodes, want %d: %v", len(first), 1+len(want), first)
		}
	}
}
