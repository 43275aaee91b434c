package situations

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/test/simulator"
)

var soak = flag.Int("soak", 3, "hours that TestSoak plays; make nightly plays 24")

// TestSoak plays hours of a cluster whose pods are replaced all the time, and whose nodes fail and
// vanish once an hour. What one round needs must not grow: not the heap, the goroutines or the open
// files, and pods that are gone leave nothing. The heap includes the simulator.
//
// The facts come from the simulated API server's objects. The manager and the watches of a cluster are
// not part of it.
func TestSoak(t *testing.T) {
	const nodes, pods, containers = 5, 10, 2
	s := &situation{
		fleet:   simulator.Options{Nodes: nodes, Pods: pods, Containers: containers, Churn: 0.1},
		options: kubelet.Options{Timeout: time.Second},
	}
	for h := range *soak {
		s.faults = append(s.faults, fmt.Sprintf("down node=node-0002 at=%dm for=10m", h*60+10), fmt.Sprintf("unlisted node=node-0003 at=%dm for=20m", h*60+20),
			fmt.Sprintf("garbage node=node-0004 at=%dm for=5m", h*60+40))
	}
	authority, err := simulator.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	g := raise(t, s, authority)
	start := g.now
	var heaps []float64 // at the end of each hour, in bytes
	var first, last held
	most := memory.Stats{}
	for h := range *soak {
		for at := time.Duration(0); at < time.Hour; at += interval {
			g.now = start.Add(time.Duration(h)*time.Hour + at)
			g.clock.Store(g.now.UnixNano())
			g.facts = g.learn()
			g.round()
			most.Entities = max(most.Entities, g.sink.Stats().Entities)
		}
		last = holding(t)
		if h == 0 {
			first = last
		}
		heaps = append(heaps, last.heap)
		t.Logf("hour %d: %.2f MiB of heap, %d goroutines, %d open files, %d entities, %d kB of history",
			h+1, last.heap/(1<<20), last.goroutines, last.files, g.sink.Stats().Entities, g.sink.Stats().HistoryBytes>>10)
	}
	// The first hour fills the history.
	if len(heaps) < 3 {
		t.Fatalf("%d hours have no trend: give -soak 3 or more", len(heaps))
	}
	perHour, noise := trend(heaps[1:])
	t.Logf("the heap grows by %.1f ± %.1f kB an hour", perHour/1024, noise/1024)
	if grown := perHour * float64(len(heaps)-1); grown > 3*noise*float64(len(heaps)-1) && grown > heaps[1]/20 {
		t.Errorf("the heap grew by %.0f kB in %d hours, from %.0f kB", grown/1024, len(heaps)-1, heaps[1]/1024)
	}
	if last.goroutines > first.goroutines+4 || last.files > first.files+4 {
		t.Errorf("%d goroutines and %d open files, after an hour %d and %d", last.goroutines, last.files, first.goroutines, first.files)
	}
	// Each pod may be there twice while it is replaced, and a node has a few cgroups of its own.
	if limit := nodes * (2*pods*(1+containers) + 20); most.Entities > limit || g.sink.Stats().Dropped > 0 {
		t.Errorf("%d entities, %d dropped; want at most %d, and none", most.Entities, g.sink.Stats().Dropped, limit)
	}
}

// held is what this process holds.
type held struct {
	heap              float64 // bytes
	goroutines, files int
}

func holding(t *testing.T) held {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return held{float64(m.HeapAlloc), runtime.NumGoroutine(), len(files)}
}

// trend returns the slope of the values by least squares, and its standard error.
func trend(values []float64) (slope, noise float64) {
	n := float64(len(values))
	var x, y, xx, xy float64
	for i, v := range values {
		at := float64(i)
		x, y, xx, xy = x+at, y+v, xx+at*at, xy+at*v
	}
	spread := xx - x*x/n
	slope = (xy - x*y/n) / spread
	var off float64
	for i, v := range values {
		d := v - y/n - slope*(float64(i)-x/n)
		off += d * d
	}
	return slope, math.Sqrt(off / max(n-2, 1) / spread)
}
