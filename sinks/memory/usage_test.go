package memory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// usesOf returns what EachPodUsage must return for a pod, calculated from Pod.
func usesOf(s *Snapshot, ref metric.PodRef) *resourceusage.PodUsage {
	own, containers := s.Pod(ref)
	if !resourceusage.HasBothNumbers(own) {
		return nil
	}
	u := &resourceusage.PodUsage{PodRef: &ref, Node: own.Entity.Node, UID: &own.Instance.UID}
	for _, c := range containers {
		if use, _, ok := resourceusage.UsageOf(c); ok {
			u.Add(use, resourceusage.RunOf(c))
		}
	}
	if u.Containers == nil {
		return nil
	}
	return u
}

// onlyContainersOf returns what u says of the containers that one source serves: the usage of a pod is
// that of one source, while Pod merges all.
func onlyContainersOf(u, one *resourceusage.PodUsage) *resourceusage.PodUsage {
	if one == nil {
		return nil
	}
	only := &resourceusage.PodUsage{PodRef: u.PodRef, Node: u.Node, UID: u.UID}
	for i, c := range u.Containers {
		if slices.ContainsFunc(one.Containers, func(o resourceusage.Usage) bool { return o.Name == c.Name }) {
			only.Add(c, u.Runs[i])
		}
	}
	return only
}

// TestEachUse compares EachPodUsage and PodUsage with Pod and package resourceusage, and
// NodeUsage with Lookup, for all kinds of sources, placements and invalid numbers.
func TestEachUse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	nodes := []metric.NodeName{"n1", "n2", "n3"}
	sink := New(Options{})
	var refs []metric.PodRef
	for _, name := range []string{"a", "b", "c", "d", "e", "gone"} {
		for _, namespace := range []string{"shop", "data"} {
			refs = append(refs, pod(namespace, name).PodRef())
		}
	}
	amount := func() float64 {
		switch r.IntN(12) {
		case 0:
			return math.NaN()
		case 1:
			return math.Inf(1)
		case 2:
			return -1
		case 3:
			return 0
		}
		return r.Float64() * 1e12
	}
	measure := func(b *metric.Batch, e metric.Entity, start int64) {
		s := use(b, e, amount(), amount())
		s.Instance.Start = start
		if r.IntN(3) == 0 {
			s.Instance.UID = metric.PodUID(e.Pod + "-uid")
		}
		switch r.IntN(10) {
		case 0:
			s.Values.Delete(metric.MemoryWorkingSet)
		case 1:
			s.Reasons[metric.CPU] = metric.FirstSample
		case 2:
			s.Reasons[metric.CPU], s.LastKnown = metric.Ambiguous, 1<<metric.CPU
		case 3:
			s.Rates[metric.CPU] = metric.Window{}
		case 4:
			s.Rates[metric.CPU] = metric.Window{End: s.Times[metric.CPU] - 1e6, Length: time.Duration(r.Int64N(1e11))}
		}
	}
	found, contested, again := 0, 0, 0
	placed := cmpopts.IgnoreFields(resourceusage.PodUsage{}, "Generation", "Index")
	type position struct {
		node       metric.NodeName
		generation uint64
		index      int
	}
	type one struct {
		ref metric.PodRef
		uid metric.PodUID
	}
	places := map[position]one{} // the pod at each position
	for round := range 300 {
		node := nodes[r.IntN(len(nodes))]
		source := []string{"kubelet:resource", "kubelet:summary"}[min(1, r.IntN(4))]
		if round < 100 {
			source = "kubelet:resource" // one source at first, then two
		}
		b := at(source, node, time.Duration(round)*time.Second)
		measure(b, metric.Entity{Kind: metric.Node, Node: node}, 0)
		for _, ref := range refs[:len(refs)-2] {
			if r.IntN(3) == 0 {
				continue
			}
			e := on(node, pod(string(ref.Namespace), string(ref.Name)))
			start := epoch.Add(-time.Duration(r.IntN(3)) * time.Hour).UnixNano()
			if r.IntN(6) > 0 {
				measure(b, e, start)
			}
			for _, c := range []string{"mesh", "app"} {
				if r.IntN(6) > 0 {
					measure(b, containerOf(e, c), start)
				}
			}
			part := e
			part.Part = "volume:data"
			use(b, part, 1, 1)
		}
		write(t, sink, b)

		snap := sink.Snapshot()
		contested += len(snap.placements)
		all := map[metric.PodRef]*resourceusage.PodUsage{}
		snap.EachPodUsage(func(u *resourceusage.PodUsage) bool {
			kept := *u
			kept.Containers, kept.Runs = slices.Clone(u.Containers), slices.Clone(u.Runs)
			if all[*u.PodRef] != nil {
				t.Errorf("round %d: %v comes twice", round, *u.PodRef)
			}
			all[*u.PodRef] = &kept
			if at, is := (position{u.Node, u.Generation, u.Index}), (one{*u.PodRef, *u.UID}); u.Generation == 0 {
			} else if was, ok := places[at]; !ok {
				places[at] = is
			} else if again++; was != is {
				t.Errorf("round %d: one position has %v and %v", round, was, is)
			}
			return true
		})
		for _, ref := range refs {
			want := usesOf(snap, ref)
			if want != nil && len(snap.nodes.get(want.Node).sources) > 1 {
				want = onlyContainersOf(want, all[ref])
			}
			if diff := cmp.Diff(want, all[ref], placed); diff != "" {
				t.Fatalf("round %d, %v (-Pod +EachUse):\n%s", round, ref, diff)
			}
			var got resourceusage.PodUsage
			ok := snap.PodUsage(ref, &got)
			if ok != (want != nil) || ok && !cmp.Equal(*want, got, cmpopts.EquateEmpty(), placed) {
				t.Fatalf("round %d, %v: Use said %+v, %v; want %+v", round, ref, got, ok, want)
			}
			if ok {
				found++
			}
		}
		for _, name := range nodes {
			var (
				want     resourceusage.Usage
				over     metric.Window
				measured bool
			)
			if s, ok := snap.Lookup(metric.Entity{Kind: metric.Node, Node: name}); ok {
				want, over, measured = resourceusage.UsageOf(s)
			}
			if u, span, ok := snap.NodeUsage(name); ok != measured || ok && (u != want || span != over) {
				t.Fatalf("round %d, %s: NodeUse said %+v over %+v, %v; want %+v over %+v, %v", round, name, u, span, ok, want, over, measured)
			}
		}
	}
	if found < 300 || contested < 100 || again < 50 {
		t.Errorf("%d pods were found, %d places contested and %d the same again: too few to show anything", found, contested, again)
	}
}

// A pod may be measured in a namespace in which its node reports no container, by a source that
// reports nothing else of the kind, or nothing at all.
func TestPodWithoutContainers(t *testing.T) {
	for _, sources := range [][]string{{"kubelet:resource"}, {"kubelet:resource", "kubelet:summary"}} {
		for name, others := range map[string][]metric.Entity{
			"alone":                        {},
			"beside a node":                {{Kind: metric.Node, Node: "n1"}},
			"beside a system container":    {{Kind: metric.System, Node: "n1", Name: "/system.slice"}},
			"beside an earlier namespace":  {on("n1", pod("data", "a")), on("n1", containerOf(pod("data", "a"), "app"))},
			"beside a later namespace":     {{Kind: metric.Node, Node: "n1"}, on("n1", containerOf(pod("zoo", "a"), "app"))},
			"beside its own part":          {{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web", Part: "volume:data"}},
			"beside a pod of its own kind": {on("n1", pod("shop", "web-2")), on("n1", containerOf(pod("shop", "web-2"), "app"))},
		} {
			sink := New(Options{})
			for _, source := range sources {
				b := at(source, "n1", 0)
				for _, e := range others {
					use(b, e, 1, 1)
				}
				use(b, on("n1", pod("shop", "web")), 1, 1)
				write(t, sink, b)
			}
			ref, snap, u := pod("shop", "web").PodRef(), sink.Snapshot(), resourceusage.PodUsage{}
			if snap.PodUsage(ref, &u) {
				t.Errorf("%s, %v: got %+v of a pod without containers", name, sources, u)
			}
			if own, containers := snap.Pod(ref); own == nil || len(containers) != 0 {
				t.Errorf("%s, %v: got %v and %v, want the pod's own sample", name, sources, own, containers)
			}
			snap.EachPodUsage(func(u *resourceusage.PodUsage) bool {
				if *u.PodRef == ref {
					t.Errorf("%s, %v: got %+v", name, sources, u)
				}
				return true
			})
		}
	}
}

// FuzzReaders writes batches of any entities, two bytes for each, and reads all of them in all ways.
// The readers must agree.
func FuzzReaders(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x40, 0, 0x41, 1, 0x4d, 2, 0, 0xff, 0x45, 0x80})
	r := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		seed := make([]byte, r.IntN(40))
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	nodes, namespaces, names := []metric.NodeName{"n1", "n2"}, []string{"data", "shop", "zoo"}, []string{"a", "b"}
	f.Fuzz(func(t *testing.T, data []byte) {
		sink := New(Options{})
		var batch *metric.Batch
		round := 0
		end := func() {
			if batch != nil {
				write(t, sink, batch)
			}
			batch = nil
		}
		for ; len(data) >= 2; data = data[2:] {
			what, how := data[0], data[1]
			if how == 0xff {
				end()
			}
			if batch == nil {
				round++
				batch = at([]string{"kubelet:resource", "kubelet:summary"}[what>>7], nodes[what>>6&1], time.Duration(round)*time.Second)
			}
			e := on(batch.Node, pod(namespaces[int(what>>4&3)%3], names[what>>3&1]))
			switch what & 7 {
			case 0:
				e = metric.Entity{Kind: metric.Node, Node: batch.Node}
			case 1:
				e = metric.Entity{Kind: metric.System, Node: batch.Node, Name: names[what>>3&1]}
			case 2, 3:
				e = containerOf(e, "app")
			case 4:
				e = containerOf(e, "mesh")
			case 5:
				e.Part = "volume:data"
			}
			if slices.ContainsFunc(batch.Samples, func(s metric.Sample) bool { return s.Entity == e }) {
				continue // identity leaves one sample of each
			}
			s := use(batch, e, float64(how), 1)
			s.Instance.Start = int64(how>>6) * int64(time.Hour)
			if how&1 != 0 {
				s.Instance.UID = metric.PodUID(e.Pod)
			}
			s.Reasons[metric.CPU] = []metric.Reason{metric.Measured, metric.Measured, metric.Ambiguous, metric.FirstSample}[how>>1&3]
		}
		end()
		checkReaders(t, sink.Snapshot(), nodes, namespaces, names)
	})
}

// checkReaders compares all ways to read pods and nodes.
func checkReaders(t *testing.T, snap *Snapshot, nodes []metric.NodeName, namespaces, names []string) {
	t.Helper()
	placed, all := cmpopts.IgnoreFields(resourceusage.PodUsage{}, "Generation", "Index"), map[metric.PodRef]*resourceusage.PodUsage{}
	snap.EachPodUsage(func(u *resourceusage.PodUsage) bool {
		kept := *u
		kept.Containers, kept.Runs = slices.Clone(u.Containers), slices.Clone(u.Runs)
		all[*u.PodRef] = &kept
		return true
	})
	for _, namespace := range namespaces {
		for _, name := range names {
			ref := pod(namespace, name).PodRef()
			want := usesOf(snap, ref)
			if want != nil && len(snap.nodes.get(want.Node).sources) > 1 {
				want = onlyContainersOf(want, all[ref])
			}
			if diff := cmp.Diff(want, all[ref], placed); diff != "" {
				t.Errorf("%v (-Pod +EachPodUsage):\n%s", ref, diff)
			}
			var got resourceusage.PodUsage
			if ok := snap.PodUsage(ref, &got); ok != (want != nil) || ok && !cmp.Equal(*want, got, placed) {
				t.Errorf("%v: PodUsage returned %+v, %v; want %+v", ref, got, ok, want)
			}
			snap.History(pod(namespace, name), metric.CPUUsageRate, epoch, epoch.Add(time.Hour))
		}
	}
	for kind := range metric.Kind(metric.NumKinds) {
		each, on := 0, 0
		snap.Each(kind, func(*metric.Sample) bool { each++; return true })
		for _, node := range nodes {
			snap.EachOn(node, kind, func(*metric.Sample) bool { on++; return true })
			snap.NodeUsage(node)
		}
		if each != on && kind != metric.Cluster && kind != metric.Namespaced {
			t.Errorf("%v: Each has %d samples, EachOn %d", kind, each, on)
		}
	}
	for range snap.Verdicts() {
	}
}

// TestEachUseEnds stops after one pod.
func TestEachUseEnds(t *testing.T) {
	sink := New(Options{})
	for _, node := range []metric.NodeName{"n1", "n2"} {
		b := at("s", node, 0)
		for _, name := range []string{"a", "b"} {
			e := on(node, pod(string(node), name))
			use(b, e, 1, 1)
			use(b, containerOf(e, "app"), 1, 1)
		}
		write(t, sink, b)
	}
	for end := 1; end <= 4; end++ {
		calls := 0
		sink.Snapshot().EachPodUsage(func(*resourceusage.PodUsage) bool { calls++; return calls < end })
		if calls != end {
			t.Errorf("do was called %d times, want %d: it then said no", calls, end)
		}
	}
}

// TestUsesAllocateNothing reads all pods of a cluster, and one pod.
func TestUsesAllocateNothing(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	for _, name := range []string{"a", "b"} {
		e := on("n1", pod("shop", name))
		use(b, e, 1, 1)
		use(b, containerOf(e, "app"), 1, 1)
	}
	write(t, sink, b)
	snap, u := sink.Snapshot(), resourceusage.PodUsage{Containers: make([]resourceusage.Usage, 0, 4)}
	if n := testing.AllocsPerRun(100, func() {
		if !snap.PodUsage(pod("shop", "a").PodRef(), &u) {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("Use allocates %v times, want none", n)
	}
}
