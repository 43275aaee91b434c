package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

// TestFactsAgainstMaps changes facts at random, few pods and many at a time, in namespaces of
// one pod and of thousands, and compares all queries with plain maps.
func TestFactsAgainstMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var f *Facts
	want := map[metric.PodRef]*Pod{}
	nodes := map[metric.NodeName]*Node{}
	for round := range 60 {
		var c FactsChange
		size := []int{1, 3, 40, 3000}[r.IntN(4)]
		next := maps.Clone(want)
		for range size {
			ref := metric.PodRef{Namespace: metric.Namespace([]string{"big", "big", "big", "small", "other"}[r.IntN(5)]), Name: metric.PodName(fmt.Sprint("pod-", r.IntN(4000)))}
			if ref.Namespace == "small" {
				ref.Name = metric.PodName(fmt.Sprint("pod-", r.IntN(3)))
			}
			delete(next, ref)
			if round > 40 && r.IntN(4) > 0 || r.IntN(5) == 0 {
				c.GonePods = append(c.GonePods, ref)
				continue
			}
			p := &Pod{PodRef: ref, Node: metric.NodeName([]string{"", "n1", "n2", "n3"}[r.IntN(4)])}
			c.Pods = append(c.Pods, p)
			next[ref] = p
		}
		for _, ref := range c.GonePods { // a pod in both Pods and GonePods is kept
			for _, p := range c.Pods {
				if p.PodRef == ref {
					next[ref] = p
				}
			}
		}
		node := &Node{Name: metric.NodeName(fmt.Sprint("n", r.IntN(5)))}
		c.Nodes = append(c.Nodes, node)
		gone := metric.NodeName(fmt.Sprint("n", 5+r.IntN(3)))
		c.GoneNodes = append(c.GoneNodes, gone)
		nodes[node.Name] = node

		before, on := f, map[metric.NodeName][]*Pod{}
		for _, name := range []metric.NodeName{"n1", "n2", "n3"} {
			on[name] = f.PodsOn(name)
		}
		f = f.With(c)
		checkFacts(t, f, next, nodes)
		if before != nil {
			checkPods(t, before, want)
		}
		for name, was := range on {
			if !touches(c, want, name) && len(was) > 0 && &was[0] != &f.PodsOn(name)[0] {
				t.Errorf("round %d: the pods on %s are another slice, though none of them changed", round, name)
			}
		}
		checkFacts(t, before.With(f.Since(before)), next, nodes)
		if n := len(f.Since(before).Pods); n > len(c.Pods) {
			t.Errorf("round %d: Since tells of %d pods, want at most the %d that changed", round, n, len(c.Pods))
		}
		want = next
	}
}

// touches reports whether c changes a pod that was or is on the node.
func touches(c FactsChange, was map[metric.PodRef]*Pod, node metric.NodeName) bool {
	on := func(ref metric.PodRef) bool { return was[ref] != nil && was[ref].Node == node }
	return slices.ContainsFunc(c.GonePods, on) ||
		slices.ContainsFunc(c.Pods, func(p *Pod) bool { return p.Node == node || on(p.PodRef) })
}

func checkFacts(t *testing.T, f *Facts, pods map[metric.PodRef]*Pod, nodes map[metric.NodeName]*Node) {
	t.Helper()
	checkPods(t, f, pods)
	got := map[metric.NodeName]*Node{}
	f.EachNode(func(n *Node) bool { got[n.Name] = n; return true })
	if !maps.Equal(got, nodes) || f.Nodes() != len(nodes) {
		t.Errorf("got %d nodes, %v; want %v", f.Nodes(), got, nodes)
	}
}

func checkPods(t *testing.T, f *Facts, want map[metric.PodRef]*Pod) {
	t.Helper()
	got := map[metric.PodRef]*Pod{}
	f.EachPod(func(p *Pod) bool { got[p.PodRef] = p; return true })
	if !maps.Equal(got, want) || f.Pods() != len(want) {
		t.Fatalf("EachPod gives %d pods, Pods %d; want %d, or others", len(got), f.Pods(), len(want))
	}
	on, in := map[metric.NodeName]int{}, map[metric.Namespace]int{}
	for ref, p := range want {
		if f.Pod(ref) != p {
			t.Fatalf("Pod(%v) is %p, want %p", ref, f.Pod(ref), p)
		}
		on[p.Node]++
		in[p.Namespace]++
	}
	for _, name := range []metric.NodeName{"n1", "n2", "n3"} {
		pods := f.PodsOn(name)
		if len(pods) != on[name] || slices.ContainsFunc(pods, func(p *Pod) bool { return want[p.PodRef] != p || p.Node != name }) {
			t.Fatalf("PodsOn(%s) gives %d pods, want %d, or others", name, len(pods), on[name])
		}
	}
	for _, name := range []metric.Namespace{"big", "small", "other", "none"} {
		pods := f.PodsIn(name)
		if len(pods) != in[name] || slices.ContainsFunc(pods, func(p *Pod) bool { return want[p.PodRef] != p || p.Namespace != name }) {
			t.Fatalf("PodsIn(%s) gives %d pods, want %d, or others", name, len(pods), in[name])
		}
	}
}

func TestRequirementsAreShared(t *testing.T) {
	var v metric.Values
	v.Set(metric.CPURequest, 5)
	a := NewRequirements(&v)
	b := a
	b.Set(metric.CPURequest, 7)
	b.Set(metric.MemoryLimit, 9)
	if x, _ := a.Get(metric.CPURequest); x != 5 || a.Len() != 1 {
		t.Errorf("after a copy was changed: got %g and %d values, want 5 and 1", x, a.Len())
	}
	if x, _ := b.Get(metric.CPURequest); x != 7 || b.Len() != 2 {
		t.Errorf("the copy: got %g and %d values, want 7 and 2", x, b.Len())
	}
	if got := NewRequirements(new(metric.Values)); got != (Requirements{}) || got.Len() != 0 {
		t.Errorf("of no values: got %v, want the zero Requirements", got)
	}
}

func TestSameNodes(t *testing.T) {
	node := &Node{Name: "n1"}
	facts := (*Facts)(nil).With(FactsChange{Nodes: []*Node{node}})
	f := func(says string, a, b *Facts, want bool) {
		t.Helper()
		if got := a.SameNodes(b); got != want {
			t.Errorf("%s: got %v, want %v", says, got, want)
		}
	}
	f("no cluster", nil, nil, true)
	f("the first facts", facts, nil, false)
	f("a pod more", facts.With(FactsChange{Pods: []*Pod{{PodRef: metric.PodRef{Namespace: "a", Name: "p"}}}}), facts, true)
	f("a node more", facts.With(FactsChange{Nodes: []*Node{{Name: "n2"}}}), facts, false)
	f("a node replaced", facts.With(FactsChange{Nodes: []*Node{{Name: "n1", Ready: true}}}), facts, false)
	f("a node gone", facts.With(FactsChange{GoneNodes: []metric.NodeName{"n1"}}), facts, false)
}

func TestWorkload(t *testing.T) {
	f := func(owner *Owner, hash string, want Owner) {
		t.Helper()
		p := Pod{Owner: owner, Labels: map[string]string{"pod-template-hash": hash}}
		if got := p.Workload(); got != want {
			t.Errorf("owner %v, hash %q: got %v, want %v", owner, hash, got, want)
		}
	}
	f(nil, "", Owner{})
	f(&Owner{"Node", "n1"}, "", Owner{})
	f(&Owner{"DaemonSet", "agent"}, "", Owner{"DaemonSet", "agent"})
	f(&Owner{"ReplicaSet", "web-5dff"}, "5dff", Owner{"Deployment", "web"})
	f(&Owner{"ReplicaSet", "web-5dff"}, "", Owner{"ReplicaSet", "web-5dff"})
	f(&Owner{"ReplicaSet", "web-5dff"}, "6eaa", Owner{"ReplicaSet", "web-5dff"})
}
