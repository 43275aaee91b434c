package memory

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

func TestTotals(t *testing.T) {
	sink := New(Options{})
	for i, node := range []metric.NodeName{"n1", "n2"} {
		b := at("s", node, time.Duration(i)*time.Second)
		n := use(b, metric.Entity{Kind: metric.Node, Node: node}, 100, 100)
		measure(n, metric.Spec, b.Ended.UnixNano())
		n.Values.Set(metric.CPUNodeCapacity, 4)
		n.Values.Set(metric.CPUNodeAllocatable, float64(1+2*i)) // 1 and 3
		n.Values.Set(metric.CPUNodeUtilization, 0.1+0.4*float64(i))
		for _, p := range []metric.Entity{pod("a", "p-"+string(node)), pod("b", "q-"+string(node))} {
			s := use(b, on(node, p), 1+float64(i), 10)
			s.Values.Set(metric.MemoryAvailable, 5) // it is not summed for any kind
			part := on(node, p)
			part.Part = "interface:eth0"
			use(b, part, 50, 50)
		}
		// It is not served, so it does not count.
		use(b, on(node, pod("c", "r-"+string(node))), 1000, 1000).Reject(metric.Stale)
		write(t, sink, b)
	}
	snap := sink.Snapshot()
	c, ok := snap.Lookup(metric.Entity{Kind: metric.Cluster})
	if !ok {
		t.Fatal("no cluster")
	}
	value(t, c, metric.CPUUsageRate, 6)
	value(t, c, metric.MemoryWorkingSet, 40)
	value(t, c, metric.CPUNodeCapacity, 8)
	value(t, c, metric.CPUNodeUtilization, (0.1*1+0.5*3)/4)
	for _, id := range []metric.ID{metric.MemoryAvailable, metric.NetworkRxRate} {
		if v, ok := c.Values.Get(id); ok {
			t.Errorf("cluster has %v %v, want none", id, v)
		}
	}
	if got, want := c.Times[metric.CPU], epoch.UnixNano(); got != want {
		t.Errorf("time: got %d, want the oldest member's, %d", got, want)
	}
	var names []metric.Namespace
	for n := range snap.Samples(metric.Namespaced) {
		names = append(names, n.Entity.Namespace)
		value(t, n, metric.CPUUsageRate, 3)
	}
	if len(names) != 2 || names[0] != "a" || names[1] != "b" {
		t.Errorf("namespaces: got %v, want a and b", names)
	}
	if s, ok := New(Options{}).Snapshot().Lookup(metric.Entity{Kind: metric.Cluster}); ok {
		t.Errorf("an empty sink has a cluster: %+v", s)
	}
}
