package slow_test

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
)

// view is weir's memory as the API reads it.
type view struct{ *memory.Snapshot }

func (v view) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for _, p := range v.History(e, id, from, to) {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
	}
}

// entity is what a node reports of a pod, its container or itself: counters grow by these amounts a second.
type entity struct {
	metric.Entity
	counters map[metric.ID]float64
	gauges   map[metric.ID]float64
	rounds   int // after which it leaves; 0 for never
}

const second = float64(time.Second)

// observe sends rounds of a node through the pipeline to a memory sink, as they come from a kubelet.
func observe(t *testing.T, sink *memory.Sink, node metric.NodeName, entities []entity) {
	t.Helper()
	pipeline := processors.New(processors.Options{})
	for i := range readings + 1 {
		at := noon.Add(step * time.Duration(i-readings))
		b := &metric.Batch{Source: "kubelet:cadvisor", Node: node, Interval: step, Resolution: time.Millisecond, Began: at, Ended: at, Exhaustive: true}
		for _, e := range entities {
			if e.rounds > 0 && i >= e.rounds {
				continue
			}
			s := b.Add(e.Entity)
			s.Instance.Start = noon.Add(-time.Hour).UnixNano()
			for id, perSecond := range e.counters {
				s.Values.Set(id, 1e9+perSecond*float64(i)*step.Seconds())
				s.Times[id.Describe().Group] = at.UnixNano()
			}
			for id, v := range e.gauges {
				s.Values.Set(id, v)
				if g := id.Describe().Group; g != metric.Spec {
					s.Times[g] = at.UnixNano()
				}
			}
		}
		pipeline.Process(nil, b, at)
		if err := sink.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// pod returns a pod and its only container. Stalls and use are shares and cores.
func pod(name string, cores, request, some, throttled, limit float64) []entity {
	whole := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: metric.PodName(name)}
	own := whole
	own.Kind, own.Name = metric.Container, "app"
	counters := map[metric.ID]float64{
		metric.CPUUsage: cores * second, metric.CPUPressureSome: some * second, metric.CPUPressureFull: some * second,
		metric.MemoryPressureSome: 0, metric.MemoryPressureFull: 0, metric.IOPressureSome: 0, metric.IOPressureFull: 0,
	}
	gauges := map[metric.ID]float64{metric.MemoryUsage: 1 << 26, metric.MemoryWorkingSet: 1 << 26, metric.MemoryRSS: 1 << 25, metric.CPURequest: request * 1e9}
	limited := map[metric.ID]float64{}
	for id, v := range counters {
		limited[id] = v
	}
	bounds := map[metric.ID]float64{}
	for id, v := range gauges {
		bounds[id] = v
	}
	if limit > 0 {
		limited[metric.CPUThrottled], bounds[metric.CPULimit] = throttled*second, limit*1e9
	}
	return []entity{{whole, counters, gauges, 0}, {own, limited, bounds, 0}}
}

func node(cores float64) entity {
	return entity{metric.Entity{Kind: metric.Node, Node: "n1"}, map[metric.ID]float64{metric.CPUUsage: cores * second},
		map[metric.ID]float64{metric.MemoryWorkingSet: 1 << 30, metric.MemoryUsage: 1 << 30, metric.CPUNodeCapacity: 4e9, metric.MemoryNodeCapacity: 8 << 30}, 0}
}

// TestReportFromMemory checks what is answered from the memory sink as it is, and the list of a cluster.
func TestReportFromMemory(t *testing.T) {
	sink := memory.New(memory.Options{})
	entities := []entity{node(3.95)}
	entities = append(entities, pod("limited", 0.5, 0.5, 0.5, 0.5, 0.5)...)
	entities = append(entities, pod("starved", 0.3, 0.3, 0.7, 0, 0)...)
	entities = append(entities, pod("hog", 3.1, 0.1, 0.4, 0, 0)...)
	entities = append(entities, pod("calm", 0.05, 0.1, 0.001, 0, 1)...)
	observe(t, sink, "n1", entities)
	v := view{sink.Snapshot()}

	one := func(name, want string) {
		t.Helper()
		r, ok := slow.NewReport(slow.Query{Namespace: "shop", Pod: metric.PodName(name)}, v, nil, noon)
		if !ok || r.Summary != want || len(r.Pods) != 1 {
			t.Errorf("%s: %v, %q; want %q", name, ok, r.Summary, want)
		}
	}
	one("limited", "Pod shop/limited waited for CPU 50% of the last 5m, held back by its own CPU limit of 500m.")
	one("starved", "Pod shop/starved waited for CPU 70% of the last 5m, because of shop/hog.")
	one("hog", "Pod shop/hog waited for CPU 40% of the last 5m, because it wants more CPU than node n1 has for it.")
	one("calm", "Pod shop/calm waited for CPU, memory and disk I/O in less than 1% of the last 5m.")
	if r, ok := slow.NewReport(slow.Query{Namespace: "shop", Pod: "gone"}, v, nil, noon); ok {
		t.Errorf("a pod that is not there: %+v, want none", r)
	}

	r, ok := slow.NewReport(slow.Query{}, v, nil, noon)
	var order []string
	for _, s := range r.Pods {
		order = append(order, s.Pod)
	}
	const want = "3 pods in the cluster waited for CPU, memory or disk I/O for more than 1% of the last 5m."
	if got := strings.Join(order, " "); !ok || got != "starved limited hog" || r.Summary != want || r.Measured != 4 || r.NotMeasured != 0 || r.NotKnown != "" {
		t.Errorf("the cluster: %v, %q, %+v; want starved limited hog, %q", ok, got, r, want)
	}
	if r, _ := slow.NewReport(slow.Query{Namespace: "calm"}, v, nil, noon); len(r.Pods) != 0 || r.Measured != 0 {
		t.Errorf("another namespace: %+v, want no pods", r)
	}
}

// ask returns the answer about a pod of namespace shop.
func ask(t *testing.T, entities []entity, facts *cluster.Facts, name metric.PodName) *slow.Slow {
	t.Helper()
	sink := memory.New(memory.Options{})
	observe(t, sink, "n1", entities)
	r, ok := slow.NewReport(slow.Query{Namespace: "shop", Pod: name}, view{sink.Snapshot()}, facts, noon)
	if !ok || len(r.Pods) != 1 {
		t.Fatalf("%s: %+v, want a pod", name, r)
	}
	return &r.Pods[0]
}

// TestNeighbourThatLeft checks that a pod that has left is the cause for the time when it was there, and that what it
// requested is known as long as the API server has its object.
func TestNeighbourThatLeft(t *testing.T) {
	entities := append([]entity{node(3.95)}, pod("starved", 0.3, 0.3, 0.7, 0, 0)...)
	for _, e := range pod("hog", 3.6, 0, 0.4, 0, 0) {
		e.rounds = readings / 2
		entities = append(entities, e)
	}
	s := ask(t, entities, nil, "starved")
	if named := s.Stalls[0].Neighbours; len(named) != 1 || named[0].Pod != "hog" || named[0].Share < 0.3 || len(s.NotKnown) != 1 || !strings.Contains(s.NotKnown[0], "What shop/hog requested is not known") {
		t.Errorf("%s %+v, not known: %q; want hog for half of the time, and that its request is not known", s.Summary, named, s.NotKnown)
	}

	var spec cluster.Requirements
	spec.Set(metric.CPURequest, 3.6e9)
	job := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "hog"}, Node: "n1", Phase: cluster.Succeeded, Containers: []cluster.Container{{Name: "app", Spec: spec}}}
	facts := (&cluster.Facts{}).With(cluster.FactsChange{Pods: []*cluster.Pod{job}})
	if s := ask(t, entities, facts, "starved"); len(s.Stalls[0].Neighbours) > 0 || len(s.NotKnown) > 0 {
		t.Errorf("%s %+v, not known: %q; want no neighbour, because hog had requested what it used", s.Summary, s.Stalls[0].Parts, s.NotKnown)
	}
}

// TestOldKernel checks a pod at its CPU limit on a kernel that does not report when all threads wait for CPU: cAdvisor
// writes 0.
func TestOldKernel(t *testing.T) {
	for cores, known := range map[float64]bool{0.6: true, 3.95: false} {
		entities := append([]entity{node(cores)}, pod("limited", 0.5, 0.5, 0.5, 0.5, 0.5)...)
		entities = append(entities, pod("hog", cores-0.5, 0, 0.001, 0, 0)...)
		for _, e := range entities {
			if e.Kind != metric.Node {
				delete(e.counters, metric.CPUPressureFull)
				e.gauges[metric.CPUPressureFull] = 0
			}
		}
		s := ask(t, entities, nil, "limited")
		const want = "Pod shop/limited waited for CPU 50% of the last 5m, held back by its own CPU limit of 500m."
		if s.Summary != want || s.Stalls[0].Full != nil || (len(s.NotKnown) == 0) != known {
			t.Errorf("%v cores: %q, full %v, not known: %q; want %q", cores, s.Summary, s.Stalls[0].Full, s.NotKnown, want)
		}
	}
}

// TestDisks checks that a neighbour is the cause of a wait for disk I/O if both use one disk.
func TestDisks(t *testing.T) {
	for disk, want := range map[string]slow.Cause{"device:/dev/sda": slow.Neighbours, "device:/dev/sdb": slow.OwnUse} {
		entities := append([]entity{node(1)}, pod("reader", 0.3, 0.3, 0, 0, 0)...)
		entities = append(entities, pod("hog", 0.3, 0.3, 0, 0, 0)...)
		for _, e := range entities {
			if e.Kind != metric.Pod {
				continue
			}
			part, bytes, wait := e.Entity, 2.0*(1<<20), 0.5
			if part.Part = "device:/dev/sda"; e.Pod == "hog" {
				part.Part, bytes, wait = disk, 100*(1<<20), 0.6
			}
			e.counters[metric.DiskReadBytes], e.counters[metric.IOPressureSome] = bytes, wait*second
			entities = append(entities, entity{part, map[metric.ID]float64{metric.DiskReadBytes: bytes}, nil, 0})
		}
		if s := ask(t, entities, nil, "reader"); s.Resource != slow.IO || s.Cause != want {
			t.Errorf("the hog reads from %s: %s %v; want %s", disk, s.Summary, s.Stalls[2].Parts, want)
		}
	}
}

// TestNoStalls checks what is answered where the node reports no stalls of pods: none at all, or zeros, as a
// kubelet's cAdvisor writes on cgroup version 1.
func TestNoStalls(t *testing.T) {
	for _, zeros := range []bool{true, false} {
		sink := memory.New(memory.Options{})
		entities := append([]entity{node(3.95)}, pod("limited", 0.5, 0.5, 0.5, 0.5, 0.5)...)
		entities = append(entities, pod("free", 0.5, 0.5, 0.5, 0, 0)...)
		for _, e := range entities {
			for _, id := range []metric.ID{metric.CPUPressureSome, metric.CPUPressureFull, metric.MemoryPressureSome, metric.MemoryPressureFull, metric.IOPressureSome, metric.IOPressureFull} {
				delete(e.counters, id)
				if zeros {
					e.gauges[id] = 0
				}
			}
		}
		observe(t, sink, "n1", entities)
		v := view{sink.Snapshot()}
		r, _ := slow.NewReport(slow.Query{}, v, nil, noon)
		if len(r.Pods) != 1 || r.NotMeasured != 2 || !strings.Contains(r.NotKnown, "cgroup version 1") || !strings.Contains(r.Pods[0].Summary, "Pod shop/limited was held back by its own CPU limit of 500m for about 50% of the last 5m") {
			t.Errorf("zeros %v: %+v; want pod limited, and why the rest is not known", zeros, r)
		}
		if r, _ := slow.NewReport(slow.Query{Namespace: "shop", Pod: "free"}, v, nil, noon); len(r.Pods) != 1 || r.Pods[0].Summary != "Pod shop/free was not measured: what it waited for is not known." || len(r.Pods[0].NotKnown) == 0 {
			t.Errorf("zeros %v: %+v; want that nothing is known", zeros, r)
		}
	}
}

// TestHistoryIsKept checks that the memory keeps the history that answers need.
func TestHistoryIsKept(t *testing.T) {
	for _, id := range []metric.ID{
		metric.CPUThrottledRate, metric.CPUPressureSomeRate, metric.CPUPressureFullRate,
		metric.MemoryMajorPageFaultsRate, metric.MemoryPressureSomeRate, metric.MemoryPressureFullRate,
		metric.DiskReadBytesRate, metric.DiskWriteBytesRate, metric.IOPressureSomeRate, metric.IOPressureFullRate,
	} {
		if !slices.Contains(memory.DefaultHistoryMetrics(), id) {
			t.Errorf("the memory has no history of %v", id)
		}
	}
}
