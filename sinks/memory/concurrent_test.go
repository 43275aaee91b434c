package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Readers see complete rounds of a node, while nodes are written, come and go. Run with -race.
func TestReadersAmongWriters(t *testing.T) {
	sink := New(Options{History: 2 * time.Minute})
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				snap := sink.Snapshot()
				round := map[metric.NodeName]float64{}
				pods := 0
				snap.Each(metric.Pod, func(s *metric.Sample) bool {
					pods++
					v, _ := s.Values.Get(metric.CPUUsageRate)
					if first, seen := round[s.Entity.Node]; seen && first != v {
						t.Errorf("node %s: rounds %v and %v in one snapshot", s.Entity.Node, first, v)
					}
					round[s.Entity.Node] = v
					return true
				})
				var sum float64
				for _, v := range round {
					sum += 3 * v
				}
				if c, ok := snap.Lookup(metric.Entity{Kind: metric.Cluster}); ok {
					if v, _ := c.Values.Get(metric.CPUUsageRate); v != sum {
						t.Errorf("cluster: got %v, want %v, the sum of %d pods", v, sum, pods)
					}
				}
				for p := range snap.Samples(metric.Pod) {
					e := p.Entity
					e.Node = ""
					if _, ok := snap.Lookup(e); !ok {
						t.Errorf("%v is listed and not found", e)
					}
					points := snap.History(e, metric.CPUUsageRate, epoch, epoch.Add(time.Hour))
					for i := 1; i < len(points); i++ {
						if points[i].Time <= points[i-1].Time {
							t.Errorf("history of %v runs backwards: %v", e, points)
						}
					}
				}
				for range snap.Verdicts() {
					pods--
				}
			}
		})
	}
	for round := range 150 {
		for n := range 3 {
			node := nodeName(n)
			if round%20 == 19 && n == 2 {
				sink.Forget("s", node)
				continue
			}
			b := at("s", node, time.Duration(round)*15*time.Second)
			for _, name := range []string{"x", "y", "z"} {
				use(b, on(node, pod("a", name+string(node)+string(rune('0'+round/30)))), float64(round+1), 1)
			}
			judge(b, on(node, pod("a", "w")), metric.CPU, metric.NoData)
			write(t, sink, b)
		}
		runtime.Gosched()
	}
	done.Store(true)
	readers.Wait()
}

// The memory of deleted nodes and pods is freed.
func TestForgetFrees(t *testing.T) {
	sink := New(Options{})
	fill := func() {
		c := kubelet(20, 30, 2)
		for n := range c.nodes {
			names := c.names(n)
			for round := range 10 {
				write(t, sink, c.fill(&c.batch, names, round))
			}
		}
	}
	empty := heap()
	fill()
	full := heap()
	for n := range 20 {
		sink.Forget("kubelet:resource", nodeName(n))
	}
	if got := sink.Stats(); got != (Stats{}) {
		t.Errorf("after Forget: got %+v, want nothing", got)
	}
	if left, lastKnown := int64(heap())-int64(empty), int64(full)-int64(empty); left > lastKnown/10 {
		t.Errorf("%d bytes are left of %d", left, lastKnown)
	}
	runtime.KeepAlive(sink)
}
