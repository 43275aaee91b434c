package memory

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// twice writes one pod from two nodes, which answer in either order.
func twice(t *testing.T, sink *Sink, started map[metric.NodeName]time.Duration, order ...metric.NodeName) {
	t.Helper()
	for i, node := range order {
		b := at("s", node, time.Duration(i)*time.Second)
		p := on(node, pod("a", "p"))
		cpu := float64(node[1] - '0')
		for _, e := range []metric.Entity{p, containerOf(p, "app")} {
			s := use(b, e, cpu, cpu)
			s.Instance.Start = epoch.Add(started[node]).UnixNano()
		}
		use(b, on(node, pod("a", "only-"+string(node))), 9, 9)
		write(t, sink, b)
	}
}

func TestLaterStartIsWhereAPodIs(t *testing.T) {
	for _, order := range [][]metric.NodeName{{"n1", "n2"}, {"n2", "n1"}} {
		sink := New(Options{})
		twice(t, sink, map[metric.NodeName]time.Duration{"n1": -2 * time.Hour, "n2": -time.Hour}, order...)
		snap := sink.Snapshot()
		s, ok := snap.Lookup(pod("a", "p"))
		if !ok || s.Entity.Node != "n2" || s.Reasons[metric.CPU] != metric.Measured {
			t.Errorf("answered in the order %v: got %+v, want that of n2, Measured", order, s)
		}
		if _, ok := snap.Lookup(on("n1", pod("a", "p"))); ok {
			t.Error("the pod is served on n1 too")
		}
		count := map[metric.Kind]int{}
		for _, k := range []metric.Kind{metric.Pod, metric.Container} {
			for range snap.Samples(k) {
				count[k]++
			}
		}
		if count[metric.Pod] != 3 || count[metric.Container] != 1 {
			t.Errorf("got %v, want 3 pods and 1 container", count)
		}
		expect(t, snap,
			"a/p on n1 cpu: OlderStart since 1s", "a/p on n1 memory: OlderStart since 1s",
			"a/p/app on n1 cpu: OlderStart since 1s", "a/p/app on n1 memory: OlderStart since 1s")
	}
}

func TestSameStartIsAmbiguous(t *testing.T) {
	for _, order := range [][]metric.NodeName{{"n1", "n2", "n1"}, {"n2", "n1", "n2"}} {
		sink := New(Options{})
		twice(t, sink, nil, order...)
		snap := sink.Snapshot()
		pod, containers := snap.Pod(metric.PodRef{Namespace: "a", Name: "p"})
		if pod == nil || len(containers) != 1 {
			t.Fatalf("got %v and %d containers", pod, len(containers))
		}
		for _, s := range append(containers, pod) {
			if s.Entity.Node != "n1" || s.Reasons[metric.CPU] != metric.Ambiguous {
				t.Errorf("answered in the order %v: got %v on %v, %v; want that of n1, Ambiguous", order, s.Entity, s.Entity.Node, s.Reasons[metric.CPU])
			}
		}
		got := map[metric.NodeName]metric.Reason{}
		for v, since := range snap.Verdicts() {
			got[v.Entity.Node] = v.Reason
			if v.Evidence.Name != "n1" || since != epoch.Add(time.Second).Local() {
				t.Errorf("evidence: got %q since %v, want n1 since 1s", v.Evidence.Name, since)
			}
		}
		if len(got) != 2 || got["n1"] != metric.Ambiguous || got["n2"] != metric.OtherNode {
			t.Errorf("verdicts: got %v, want Ambiguous on n1 and OtherNode on n2", got)
		}
	}
}

// A node without numbers of the pod is not a candidate, and a node that goes away is not one
// any longer.
func TestContestEnds(t *testing.T) {
	sink := New(Options{})
	twice(t, sink, nil, "n1", "n2")
	b := at("s", "n1", 15*time.Second)
	use(b, on("n1", pod("a", "p")), 1, 1).Reject(metric.NoData)
	write(t, sink, b)
	if s, ok := sink.Snapshot().Lookup(pod("a", "p")); !ok || s.Entity.Node != "n2" || s.Reasons[metric.CPU] != metric.Measured {
		t.Errorf("got %+v, want that of n2, Measured", s)
	}
	twice(t, sink, nil, "n1")
	if s, _ := sink.Snapshot().Lookup(pod("a", "p")); s == nil || s.Entity.Node != "n1" {
		t.Errorf("got %+v, want that of n1 again", s)
	}
	sink.Forget("s", "n1")
	if s, ok := sink.Snapshot().Lookup(pod("a", "p")); !ok || s.Entity.Node != "n2" {
		t.Errorf("after n1 went: got %+v, want that of n2", s)
	}
	expect(t, sink.Snapshot())
	sink.Forget("s", "n2")
	if s, ok := sink.Snapshot().Lookup(pod("a", "p")); ok {
		t.Errorf("after both went: got %+v", s)
	}
}
