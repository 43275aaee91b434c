package memory

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/metric"
)

// EachOfPods returns what Pod returns for each pod, whatever the sources and placements.
func TestEachOfPods(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	nodes := []metric.NodeName{"n1", "n2", "n3"}
	sink := New(Options{})
	var refs []metric.PodRef
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "gone"} {
		for _, namespace := range []string{"shop", "data"} {
			refs = append(refs, pod(namespace, name).PodRef())
		}
	}
	served, contested := 0, 0
	for round := range 200 {
		node := nodes[r.IntN(len(nodes))]
		source := []string{"kubelet:resource", "kubelet:summary"}[r.IntN(2)]
		b := at(source, node, time.Duration(round)*time.Second)
		for _, ref := range refs[:len(refs)-2] {
			e := on(node, pod(string(ref.Namespace), string(ref.Name)))
			if r.IntN(3) == 0 {
				continue
			}
			start := epoch.Add(-time.Duration(r.IntN(3)) * time.Hour).UnixNano()
			if r.IntN(4) > 0 {
				use(b, e, r.Float64(), r.Float64()).Instance.Start = start
			}
			for _, c := range []string{"mesh", "app"} {
				if r.IntN(4) > 0 {
					use(b, containerOf(e, c), r.Float64(), r.Float64()).Instance.Start = start
				}
			}
			part := e
			part.Part = "volume:data"
			use(b, part, 1, 1)
		}
		write(t, sink, b)

		snap := sink.Snapshot()
		r.Shuffle(len(refs)-2, func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
		got := make([][]*metric.Sample, len(refs))
		snap.EachOfPods(refs, func(i int, s *metric.Sample) bool {
			kept := &metric.Sample{}
			kept.CopyFrom(s)
			got[i] = append(got[i], kept)
			return true
		})
		contested += len(snap.placements)
		for i, ref := range refs {
			own, containers := snap.Pod(ref)
			var want []*metric.Sample
			if own != nil {
				want = append(want, own)
			}
			want = append(want, containers...)
			served += len(want)
			if diff := cmp.Diff(want, got[i], cmp.AllowUnexported(metric.Sample{}, metric.Values{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("round %d, %v (-Pod +EachOfPods):\n%s", round, ref, diff)
			}
		}
	}
	if served < 1000 || contested < 100 {
		t.Errorf("%d samples, %d contested places: too few to show anything", served, contested)
	}
}

func TestEachOfPodsEnds(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	for _, name := range []string{"a", "b"} {
		e := on("n1", pod("shop", name))
		use(b, e, 1, 1)
		use(b, containerOf(e, "app"), 1, 1)
	}
	write(t, sink, b)
	refs := []metric.PodRef{pod("shop", "a").PodRef(), pod("shop", "b").PodRef()}
	for end := 1; end <= 4; end++ {
		calls := 0
		sink.Snapshot().EachOfPods(refs, func(int, *metric.Sample) bool { calls++; return calls < end })
		if calls != end {
			t.Errorf("do was called %d times, want %d: it then said no", calls, end)
		}
	}
}
