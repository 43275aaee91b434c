package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// scale is a cluster to measure.
type scale struct{ nodes, pods, containers int }

func (s scale) String() string {
	return fmt.Sprintf("%dnodes×%dpods×%d", s.nodes, s.pods, s.containers)
}

var clusters = []scale{{10, 30, 2}, {1000, 30, 2}}

// filled returns a sink after this many rounds, with the names of its nodes.
func filled(b *testing.B, s scale, rounds int) (*Sink, *fakeCluster, []*nodeNames) {
	b.Helper()
	c := kubelet(s.nodes, s.pods, s.containers)
	sink := New(Options{})
	names := make([]*nodeNames, s.nodes)
	for n := range names {
		names[n] = c.names(n)
	}
	for round := range rounds {
		for i, n := range names {
			_ = sink.Write(b.Context(), lively(c, n, i, round))
		}
	}
	return sink, c, names
}

// BenchmarkWrite writes one round of an unchanged node.
func BenchmarkWrite(b *testing.B) {
	for _, s := range clusters {
		b.Run(s.String(), func(b *testing.B) {
			sink, c, names := filled(b, s, 3)
			var spent []time.Duration
			for i := 0; b.Loop(); i++ {
				batch := lively(c, names[i%len(names)], i%len(names), 3+i/len(names))
				// StopTimer would stop all goroutines and empty the caches.
				began := time.Now()
				if err := sink.Write(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				spent = append(spent, time.Since(began))
			}
			slices.Sort(spent)
			b.ReportMetric(float64(spent[len(spent)/2].Nanoseconds()), "ns/median-write")
		})
	}
}

// lively fills the batch of a round like that of a real node: each container's cgroup is read
// at its own moments, every 12.5 to 15 s; CPU varies by a fifth; memory changes by pages or not
// at all; and pods are the sums of their containers, as old as the oldest.
func lively(c *fakeCluster, n *nodeNames, index, round int) *metric.Batch {
	b := c.fill(&c.batch, n, round)
	end := b.Ended.UnixNano()
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Kind == metric.Pod {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(index*1000+i), uint64(round)))
		at := end - r.Int64N(15000)*int64(time.Millisecond)
		cpu, memory := math.Trunc((1e6+float64(i)*1e5)*(0.8+0.4*r.Float64())), float64(4096*(5000+i*100))
		if i%3 != 0 {
			memory += 4096 * float64(r.IntN(50)+round)
		}
		date(s, at)
		s.Rates[metric.CPU].Length = c.interval + time.Duration(r.IntN(2500))*time.Millisecond
		s.Values.Set(metric.CPUUsageRate, cpu)
		s.Values.Set(metric.MemoryWorkingSet, memory)
	}
	for p := range n.pods {
		pod := &b.Samples[1+p]
		var cpu, memory float64
		at := end
		for i := range c.per {
			s := &b.Samples[1+len(n.pods)+p*c.per+i]
			u, _ := s.Values.Get(metric.CPUUsageRate)
			m, _ := s.Values.Get(metric.MemoryWorkingSet)
			cpu, memory, at = cpu+u, memory+m, min(at, s.Times[metric.CPU])
		}
		date(pod, at)
		pod.Values.Set(metric.CPUUsageRate, cpu)
		pod.Values.Set(metric.MemoryWorkingSet, memory)
	}
	return b
}

// date sets all times of s to one moment.
func date(s *metric.Sample, at int64) {
	for g := range s.Times {
		if s.Times[g] != 0 {
			s.Times[g] = at
		}
	}
	s.Rates[metric.CPU].End = at
}

// BenchmarkMemory reports the memory of a cluster with 15 minutes of history, and that of the
// history's points alone.
func BenchmarkMemory(b *testing.B) {
	for _, s := range clusters {
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				_, _, names := filled(b, s, 0)
				before := heap()
				sink := New(Options{})
				c := kubelet(s.nodes, s.pods, s.containers)
				const rounds = 61
				for round := range rounds {
					for i, n := range names {
						_ = sink.Write(b.Context(), lively(c, n, i, round))
					}
				}
				c.batch = metric.Batch{}
				total := float64(heap() - before)
				entities := float64(sink.Stats().Entities)
				points := entities * 2 * rounds
				history := float64(sink.Stats().HistoryBytes)
				b.ReportMetric(history/points, "B/point")
				b.ReportMetric(history/float64(s.nodes), "B-of-points/node")
				b.ReportMetric(total/entities, "B/entity")
				b.ReportMetric(total/float64(s.nodes), "B/node")
				runtime.KeepAlive(sink)
				runtime.KeepAlive(names)
			}
		})
	}
}

// waiting are the rates that explain slow reads besides use.
var waiting = []metric.ID{
	metric.CPUThrottledRate, metric.CPUPressureSomeRate, metric.CPUPressureFullRate,
	metric.MemoryMajorPageFaultsRate, metric.MemoryPressureSomeRate, metric.MemoryPressureFullRate,
	metric.DiskReadBytesRate, metric.DiskWriteBytesRate, metric.IOPressureSomeRate, metric.IOPressureFullRate,
}

// wait adds to a batch what explain slow reads. This share of the entities waits, the others' values are 0.
func wait(b *metric.Batch, index, round int, waiters float64) {
	for i := range b.Samples {
		s := &b.Samples[i]
		r := rand.New(rand.NewPCG(uint64(index*1000+i), uint64(round)))
		measure(s, metric.IO, s.Times[metric.CPU])
		for _, id := range waiting {
			share := 0.0
			if float64(i%10) < 10*waiters {
				share = r.Float64()
			}
			s.Rates[id.Describe().Group] = s.Rates[metric.CPU]
			s.Values.Set(id, share)
		}
	}
}

// BenchmarkWaits reports what the series of explain slow cost besides the others: the memory of fifteen
// minutes, and the median time to write a round of a node, with 110 pods of a container each.
func BenchmarkWaits(b *testing.B) {
	s := scale{20, 110, 1}
	run := func(waits bool, waiters float64) (bytes, ns float64) {
		_, c, names := filled(b, s, 0)
		before := heap()
		sink := New(Options{})
		var spent []time.Duration
		for round := range 61 {
			for i, n := range names {
				batch := lively(c, n, i, round)
				if waits {
					wait(batch, i, round, waiters)
				}
				began := time.Now()
				if err := sink.Write(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				spent = append(spent, time.Since(began))
			}
		}
		c.batch = metric.Batch{}
		bytes = float64(heap() - before)
		runtime.KeepAlive(sink)
		runtime.KeepAlive(names)
		slices.Sort(spent)
		return bytes, float64(spent[len(spent)/2].Nanoseconds())
	}
	for _, waiters := range []float64{0, 0.1, 1} {
		b.Run(fmt.Sprintf("waiting=%v", waiters), func(b *testing.B) {
			for b.Loop() {
				bytes, ns := run(false, 0)
				more, longer := run(true, waiters)
				perPod := (more - bytes) / float64(s.nodes*s.pods)
				b.ReportMetric(bytes/float64(s.nodes*s.pods), "B-before/pod")
				b.ReportMetric(perPod, "B/pod")
				b.ReportMetric(perPod*110*1000/(1<<20), "MiB/1000nodes")
				b.ReportMetric(ns, "ns-before/node")
				b.ReportMetric(longer-ns, "ns/node")
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	sink, _, _ := filled(b, clusters[0], 1)
	b.ReportAllocs()
	for b.Loop() {
		sink.Snapshot()
	}
}

// BenchmarkRead reads all pods and containers, as a LIST does.
func BenchmarkRead(b *testing.B) {
	for _, s := range clusters {
		sink, _, names := filled(b, s, 60)
		snap := sink.Snapshot()
		b.Run("Each/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, k := range []metric.Kind{metric.Pod, metric.Container} {
					snap.Each(k, func(*metric.Sample) bool { return true })
				}
			}
		})
		b.Run("Samples/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, k := range []metric.Kind{metric.Pod, metric.Container} {
					for range snap.Samples(k) {
					}
				}
			}
		})
		e := names[len(names)/2].containers[7]
		e.Node = ""
		b.Run("Lookup/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := snap.Lookup(e); !ok {
					b.Fatal("not found")
				}
			}
		})
		b.Run("History/"+s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := len(snap.History(e, metric.CPUUsageRate, epoch.Add(-time.Hour), epoch.Add(time.Hour))); got != 60 {
					b.Fatalf("got %d points", got)
				}
			}
		})
		b.Run("Totals/"+s.String(), func(b *testing.B) {
			for b.Loop() {
				snap.computeTotals()
			}
		})
	}
}
