package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// describeVerdicts returns verdicts as text: entity, group, reason, since.
func describeVerdicts(s *Snapshot) (all []string) {
	for v, since := range s.Verdicts() {
		all = append(all, fmt.Sprintf("%v on %v %v: %v since %v", v.Entity, v.Entity.Node, v.Group, v.Reason, since.Sub(epoch)))
	}
	return all
}

func expect(t *testing.T, s *Snapshot, want ...string) {
	t.Helper()
	cmptest.Equal(t, "verdicts", want, describeVerdicts(s))
}

func judge(b *metric.Batch, e metric.Entity, g metric.Group, r metric.Reason) *metric.Verdict {
	b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: e, Group: g, Reason: r})
	return &b.Verdicts[len(b.Verdicts)-1]
}

// A reason begins with the first of the rounds that all have it.
func TestSince(t *testing.T) {
	sink := New(Options{})
	p := on("n1", pod("a", "p"))
	for round, reasons := range [][2]metric.Reason{
		{metric.FirstSample, metric.NoData},
		{metric.NodeTimeout, metric.NoData},
		{metric.NodeTimeout, metric.NoData},
		{metric.Measured, metric.NoData},
		{metric.NodeTimeout, metric.NoData},
	} {
		b := at("s", "n1", time.Duration(round)*15*time.Second)
		for g, r := range reasons {
			if r != metric.Measured {
				// Other evidence does not begin a new reason.
				judge(b, p, metric.Group(g), r).Evidence.Due = int64(round)
			}
		}
		write(t, sink, b)
		switch round {
		case 2:
			expect(t, sink.Snapshot(), "a/p on n1 cpu: NodeTimeout since 15s", "a/p on n1 memory: NoData since 0s")
		case 3:
			expect(t, sink.Snapshot(), "a/p on n1 memory: NoData since 0s")
		case 4:
			expect(t, sink.Snapshot(), "a/p on n1 cpu: NodeTimeout since 1m0s", "a/p on n1 memory: NoData since 0s")
		}
	}
}

// Verdicts are returned as they were written, with instance and evidence, for each of two
// rejected samples.
func TestVerdictsKeepTheirEvidence(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	c := on("n1", containerOf(pod("a", "p"), "app"))
	for _, id := range []metric.ContainerID{"old", "older"} {
		for _, g := range []metric.Group{metric.CPU, metric.Memory} {
			v := judge(b, c, g, metric.OldContainer)
			v.Instance = metric.Instance{ID: id, Processes: -1}
			v.Evidence = metric.Evidence{Rule: "container id", Got: metric.CounterReading{ID: id}, Other: metric.CounterReading{ID: "new"}, Err: uncomparable{"x"}}
		}
	}
	want := slices.Clone(b.Verdicts)
	write(t, sink, b)
	var got []metric.Verdict
	for v := range sink.Snapshot().Verdicts() {
		got = append(got, v)
	}
	cmptest.Equal(t, "verdicts", want, got)
}

// uncomparable is an error that panics when it is compared with ==.
type uncomparable []string

func (u uncomparable) Error() string { return u[0] }

// While a node cannot be read, each of its entities has a verdict. The verdicts share common
// data.
func TestOutageStaysSmall(t *testing.T) {
	sink := New(Options{})
	b := at("s", "n1", 0)
	err := &metric.ReadError{Reason: metric.NodeTimeout, Err: context.DeadlineExceeded}
	const entities = 5000
	for i := range entities {
		for g := range metric.Group(4) {
			judge(b, on("n1", pod("a", fmt.Sprintf("p%d", i))), g, metric.NodeTimeout).Evidence.Err = err
		}
	}
	b.Err = err
	before := heap()
	write(t, sink, b)
	// The batch itself is far larger. Only an entity and a storedVerdict remain.
	if got, most := (heap()-before)/entities, uint64(200); got > most {
		t.Errorf("got %d bytes an entity, want at most %d", got, most)
	}
	n := 0
	for v := range sink.Snapshot().Verdicts() {
		n++
		if !errors.Is(v.Evidence.Err, context.DeadlineExceeded) {
			t.Fatalf("evidence: got %v", v.Evidence.Err)
		}
	}
	if n != 4*entities {
		t.Errorf("got %d verdicts, want %d", n, 4*entities)
	}
	runtime.KeepAlive(b)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// If one source rejected all samples of a container, the verdict of a source that sees the
// present run wins. Without such a source, the reason that is further out remains.
func TestRejectedHasNoValues(t *testing.T) {
	for cause, want := range map[metric.Reason][]string{
		metric.OldContainer: {"a/p/app on n1 cpu: FirstSample since 0s", "a/p/app on n1 cpu: NotReported since 0s"},
		metric.Unjudged:     {"a/p/app on n1 cpu: NotReported since 0s"},
	} {
		sink := New(Options{Preference: []string{"s", "r"}})
		c := on("n1", containerOf(pod("a", "p"), "app"))
		b := at("s", "n1", 0)
		judge(b, c, metric.CPU, metric.FirstSample)
		write(t, sink, b)
		b = at("r", "n1", 0)
		judge(b, c, metric.CPU, metric.NotReported).Evidence.Cause = cause
		write(t, sink, b)
		expect(t, sink.Snapshot(), want...)
	}
}

// EachOn is Each of one node, without pods that are placed on another node.
func TestEachOn(t *testing.T) {
	sink := New(Options{})
	for i, node := range []metric.NodeName{"n1", "n2"} {
		for _, source := range []string{"s", "r"} { // both sources are merged
			b := at(source, node, time.Duration(i)*time.Second)
			use(b, metric.Entity{Kind: metric.Node, Node: node}, 1, 1)
			use(b, on(node, pod("a", "everywhere")), 1, 1).Instance.Start = epoch.UnixNano() + int64(i)*1e9
			for _, namespace := range []string{"a", "b"} {
				use(b, on(node, pod(namespace, "p-"+string(node))), 1, 1)
				use(b, on(node, containerOf(pod(namespace, "p-"+string(node)), "app")), 1, 1)
			}
			write(t, sink, b)
		}
	}
	snap := sink.Snapshot()
	for _, kind := range []metric.Kind{metric.Node, metric.Pod, metric.Container} {
		want := map[metric.NodeName][]metric.Entity{}
		snap.Each(kind, func(s *metric.Sample) bool {
			want[s.Entity.Node] = append(want[s.Entity.Node], s.Entity)
			return true
		})
		if n := len(want["n2"]) - len(want["n1"]); kind == metric.Pod && n != 1 {
			t.Fatalf("got %d pods more on n2, want the one that is settled there", n)
		}
		for node, entities := range want {
			var got []metric.Entity
			snap.EachOn(node, kind, func(s *metric.Sample) bool {
				got = append(got, s.Entity)
				return true
			})
			cmptest.Equal(t, fmt.Sprintf("%v on %s", kind, node), entities, got)
		}
	}
	snap.EachOn("n3", metric.Pod, func(s *metric.Sample) bool { t.Errorf("got %v on a node nobody knows", s.Entity); return true })
	calls := 0
	snap.EachOn("n2", metric.Pod, func(*metric.Sample) bool { calls++; return false })
	if calls != 1 {
		t.Errorf("got %d calls by a reader who stopped, want 1", calls)
	}
}

// VerdictsOn is Verdicts of one node, with those of placements.
func TestVerdictsOn(t *testing.T) {
	sink := New(Options{})
	for i, node := range []metric.NodeName{"n1", "n2", "n3"} {
		b := at("s", node, time.Duration(i)*time.Second)
		use(b, on(node, pod("a", "everywhere")), 1, 1).Instance.Start = epoch.UnixNano() + int64(i)*1e9
		judge(b, on(node, pod("a", "p-"+string(node))), metric.CPU, metric.NoData)
		write(t, sink, b)
	}
	snap := sink.Snapshot()
	want := map[metric.NodeName]map[metric.Verdict]time.Time{}
	for v, since := range snap.Verdicts() {
		if want[v.Entity.Node] == nil {
			want[v.Entity.Node] = map[metric.Verdict]time.Time{}
		}
		want[v.Entity.Node][v] = since
	}
	if len(want["n1"]) != 3 || len(want["n3"]) != 1 {
		t.Fatalf("got %d verdicts on n1 and %d on n3, want two OlderStart more on n1", len(want["n1"]), len(want["n3"]))
	}
	for node := range want {
		cmptest.Equal(t, fmt.Sprintf("verdicts on %s", node), want[node], maps.Collect(snap.VerdictsOn(node)))
	}
	for v := range snap.VerdictsOn("n4") {
		t.Errorf("got %v on a node nobody knows", v)
	}
	for range snap.VerdictsOn("n1") {
		break // a reader may stop
	}
}
