package recording_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

var began = time.Date(2026, 11, 2, 3, 4, 5, 6, time.UTC)

// equal compares batches and facts bit by bit, and times as moments.
var equal = cmp.Options{
	cmp.AllowUnexported(metric.Values{}, metric.Sample{}, cluster.Requirements{}),
	cmpopts.IgnoreUnexported(metric.Batch{}),
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
	cmp.Comparer(sameError),
	// The order of the pods of a node or namespace has no meaning.
	cmpopts.SortSlices(func(a, b *cluster.Pod) bool { return a.String() < b.String() }),
	cmp.Transformer("facts", factsAsText),
}

// factsAsText returns the results of all queries of facts.
func factsAsText(f *cluster.Facts) any {
	all := struct {
		Synced bool
		At     time.Time
		Nodes  map[metric.NodeName]*cluster.Node
		Pods   map[metric.PodRef]*cluster.Pod
		On     map[metric.NodeName][]*cluster.Pod
		In     map[metric.Namespace][]*cluster.Pod
	}{
		Nodes: map[metric.NodeName]*cluster.Node{}, Pods: map[metric.PodRef]*cluster.Pod{},
		On: map[metric.NodeName][]*cluster.Pod{}, In: map[metric.Namespace][]*cluster.Pod{},
	}
	if f == nil {
		return all
	}
	all.Synced, all.At = f.Synced, f.At
	f.EachNode(func(n *cluster.Node) bool { all.Nodes[n.Name] = n; return true })
	f.EachPod(func(p *cluster.Pod) bool {
		all.Pods[p.PodRef] = f.Pod(p.PodRef)
		all.On[p.Node], all.In[p.Namespace] = f.PodsOn(p.Node), f.PodsIn(p.Namespace)
		return true
	})
	return all
}

// sameError compares the parts of an error that a recording keeps.
func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var ra, rb *metric.ReadError
	if errors.As(a, &ra) != errors.As(b, &rb) || ra != nil && ra.Reason != rb.Reason {
		return false
	}
	return a.Error() == b.Error() && errors.Is(a, context.DeadlineExceeded) == errors.Is(b, context.DeadlineExceeded)
}

// round is the arguments of Writer.Round.
type round struct {
	b     *metric.Batch
	facts *cluster.Facts
	now   time.Time
}

// fixture makes rounds that are similar from one to the next, like those of a cluster, with
// random changes.
type fixture struct {
	*rand.Rand
	now    time.Time
	facts  []*cluster.Facts
	nodes  []metric.NodeName
	rows   map[metric.NodeName][]metric.Sample
	serial int
}

func newFixture(seed uint64, nodes int) *fixture {
	w := &fixture{Rand: rand.New(rand.NewPCG(seed, 1)), now: began, facts: []*cluster.Facts{nil}, rows: map[metric.NodeName][]metric.Sample{}}
	for i := range nodes {
		w.nodes = append(w.nodes, metric.NodeName(fmt.Sprintf("node-%d", i)))
	}
	return w
}

func (w *fixture) chance(p float64) bool { return w.Float64() < p }

func (w *fixture) unique(what string) string {
	w.serial++
	return fmt.Sprintf("%s-%d", what, w.serial)
}

func (w *fixture) container(node metric.NodeName) metric.Sample {
	s := metric.Sample{
		Entity: metric.Entity{Kind: metric.Container, Node: node, Namespace: "shop", Pod: metric.PodName(w.unique("pod")), Name: "app"},
		Instance: metric.Instance{
			UID: metric.PodUID(w.unique("uid")), ID: metric.ContainerID(w.unique("id")), Path: "/kubepods", Inode: w.Uint64(),
			Start: w.now.UnixNano(), Origin: metric.StartReported, Processes: -1, Sandbox: "s",
		},
	}
	if w.chance(0.2) {
		s.Entity.Part, s.Instance.Processes, s.Instance.Start = "interface:eth0", 3, 0
	}
	for g := range s.Times {
		if w.chance(0.5) {
			s.Times[g] = w.now.UnixNano() - w.Int64N(1e10)
			if w.chance(0.1) {
				s.Received |= 1 << g
			}
		}
	}
	for id := range metric.NumMetrics {
		if w.chance(0.1) {
			s.Values.Set(id, w.value())
		}
	}
	return s
}

func (w *fixture) value() float64 {
	switch w.IntN(8) {
	case 0:
		return w.NormFloat64()
	case 1:
		odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, 1 << 53, -(1 << 53), 1<<53 + 2, 5e-324}
		return odd[w.IntN(len(odd))]
	default:
		return float64(w.Int64N(1e15))
	}
}

// step advances the time by about a second, and returns the next round.
func (w *fixture) step() round {
	w.now = w.now.Add(time.Duration(w.Int64N(2e9)))
	if w.chance(0.2) {
		w.learn()
	}
	node := w.nodes[w.IntN(len(w.nodes))]
	b := w.batch(node)
	facts := w.facts[max(0, len(w.facts)-1-w.IntN(2))]
	if w.chance(0.02) {
		facts = w.facts[w.IntN(len(w.facts))] // a long round has older facts
	}
	return round{b, facts, w.now}
}

func (w *fixture) batch(node metric.NodeName) *metric.Batch {
	rows := w.rows[node]
	for len(rows) < 3 || w.chance(0.3) {
		rows = slices.Insert(rows, w.IntN(len(rows)+1), w.container(node))
	}
	if w.chance(0.2) {
		i := w.IntN(len(rows))
		rows = slices.Delete(rows, i, i+1)
	}
	if w.chance(0.1) {
		rows = append(rows, rows[w.IntN(len(rows))]) // a duplicate
	}
	if w.chance(0.1) {
		w.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	rows = slices.Clone(rows)
	for i := range rows {
		s := &rows[i]
		var values metric.Values
		for id, v := range s.Values.All() {
			if w.chance(0.5) {
				v += float64(w.Int64N(1e6) * 4096)
			} else if w.chance(0.05) {
				v = w.value()
			}
			values.Set(id, v)
		}
		s.Values = values
		for g := range s.Times {
			if s.Times[g] != 0 {
				s.Times[g] += 15e9 + w.Int64N(3)*1e6
			}
		}
		if w.chance(0.05) {
			s.Instance.Start += w.Int64N(1e9) - 5e8
		}
		if w.chance(0.05) {
			s.Rates[metric.CPU] = metric.Window{End: s.Times[metric.CPU] + w.Int64N(2), Length: time.Duration(w.Int64N(1e10))}
		}
		if w.chance(0.05) {
			s.Reasons[w.IntN(metric.NumGroups)] = metric.Unsupported
			s.LastKnown = 1
		}
	}
	w.rows[node] = rows
	b := &metric.Batch{
		Source: "kubelet:resource", Node: node, Began: w.now.Add(-time.Duration(w.Int64N(1e9))), Ended: w.now,
		Interval: 15 * time.Second, Resolution: time.Millisecond, Bytes: w.IntN(1e6), Exhaustive: w.chance(0.5), Cores: float64(w.IntN(3)),
	}
	if w.chance(0.5) {
		b.NodeTime = w.now.Truncate(time.Second).UnixNano()
	}
	if w.chance(0.2) {
		b.Err = w.failure()
	}
	if b.Err == nil || w.chance(0.3) {
		for i := range rows {
			b.Add(rows[i].Entity).CopyFrom(&rows[i])
		}
	}
	if w.chance(0.05) {
		b.Verdicts = []metric.Verdict{{
			Entity: metric.Entity{Kind: metric.Node, Node: node}, Instance: metric.Instance{Start: 7, Processes: -1, Line: 3}, Group: metric.IO, Reason: metric.OverLimit,
			Evidence: metric.Evidence{Rule: "x", Name: "y", Cause: metric.Stale, Limit: 0.1, Due: 9, Err: w.failure(), Got: metric.CounterReading{Time: 1, Value: 2, UID: "u"}, Other: metric.CounterReading{Start: -1, ID: "i", Path: "/p"}},
		}}
	}
	if w.chance(0.1) {
		second := w.batch(node)
		second.CrossCheck = nil
		b.CrossCheck = second
	}
	return b
}

func (w *fixture) failure() error {
	read := &metric.ReadError{Reason: metric.NodeTimeout, Err: fmt.Errorf("get: %w", context.DeadlineExceeded)}
	return []error{errors.New(w.unique("oh")), read, fmt.Errorf("read it: %w", read), &metric.ReadError{Reason: metric.NodeUnreachable, Err: errors.New("no route")}, context.DeadlineExceeded}[w.IntN(5)]
}

// learn makes new facts.
func (w *fixture) learn() {
	last := w.facts[len(w.facts)-1]
	c := cluster.FactsChange{Synced: w.chance(0.9), At: w.now}
	for range w.IntN(4) {
		p := &cluster.Pod{
			PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(fmt.Sprint("pod-", w.IntN(20)))},
			UID:    metric.PodUID(w.unique("uid")), ConfigHash: cluster.NewConfigHash("hash"), Mirror: w.chance(0.5), Node: w.nodes[w.IntN(len(w.nodes))], Phase: cluster.Running,
			Ready: cluster.ReadyFalse, HostNetwork: w.chance(0.5), QoS: "Burstable", Labels: map[string]string{"app": w.unique("app"), "tier": "web"},
			Started: w.now.Truncate(time.Second), KnownAt: w.now.Add(-time.Second),
			Containers: []cluster.Container{
				{Name: "app", Role: cluster.Sidecar, State: cluster.StateRunning, ID: "i", Previous: cluster.PreviousRun{LastID: "l", StateReason: "Because"}.OrNil(), StartedAt: w.now, Restarts: -1},
				{Name: "b", Previous: cluster.PreviousRun{EndedAt: time.Unix(0, 0)}.OrNil()},
			},
		}
		p.Spec.Set(metric.CPURequest, 0.5)
		p.Containers[0].Spec.Set(metric.MemoryLimit, 1<<30)
		p.Overhead.Set(metric.MemoryRequest, 1<<20)
		if w.chance(0.3) {
			p.Deleted, p.ReadySince = w.now, w.now.Add(time.Second)
		}
		c.Pods = append(c.Pods, p)
	}
	for range w.IntN(2) {
		n := &cluster.Node{
			Name: w.nodes[w.IntN(len(w.nodes))], Addresses: []cluster.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}}, KubeletPort: 10250,
			Ready: w.chance(0.5), Unschedulable: w.chance(0.5), Labels: map[string]string{"zone": "a"},
			Lifecycle: []cluster.NodeLifecycle{"DrainInProgress"},
		}
		n.Spec.Set(metric.CPUNodeCapacity, 4e9)
		c.Nodes = append(c.Nodes, n)
	}
	if w.chance(0.2) && last != nil {
		last.EachPod(func(p *cluster.Pod) bool { c.GonePods = append(c.GonePods, p.PodRef); return len(c.GonePods) < 3 })
		last.EachNode(func(n *cluster.Node) bool { c.GoneNodes = append(c.GoneNodes, n.Name); return false })
	}
	w.facts = append(w.facts, last.With(c))
}

// Everything is read back bit by bit, whatever the size of blocks and the number of Begin
// records.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for seed := range uint64(12) {
		o := recording.Options{
			Begin: began, By: "weir", Block: []int{0, 1, 5000}[seed%3], Flush: []time.Duration{0, -1, time.Second}[seed%3],
			Restart: []time.Duration{0, 20 * time.Second}[seed%2],
		}
		w := newFixture(seed, 3)
		var rounds []round
		var file bytes.Buffer
		writer := must(recording.NewWriter(&file, o))
		for range 60 {
			r := w.step()
			check(t, writer.Round(r.b, r.facts, r.now))
			rounds = append(rounds, r)
			if w.chance(0.05) {
				check(t, writer.Gone(r.b.Source, r.b.Node))
			}
		}
		check(t, writer.Close())
		if int64(file.Len()) != writer.Size() {
			t.Errorf("seed %d: %d bytes were written, Size says %d", seed, file.Len(), writer.Size())
		}
		reader := must(recording.NewReader(&file))
		defer reader.Close()
		for i, want := range rounds {
			f := nextRound(t, reader)
			if !f.Now.Equal(want.now) {
				t.Fatalf("seed %d, round %d: now is %v, want %v", seed, i, f.Now, want.now)
			}
			if diff := cmp.Diff(want.b, f.Batch, equal); diff != "" {
				t.Fatalf("seed %d, round %d (-want +got):\n%s", seed, i, diff)
			}
			if i%7 != 0 {
				continue // facts are slow to compare
			}
			if diff := cmp.Diff(want.facts, f.Facts, equal); diff != "" {
				t.Fatalf("seed %d, round %d: facts (-want +got):\n%s", seed, i, diff)
			}
		}
		for {
			f, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if check(t, err); f.Kind == recording.Round {
				t.Fatalf("seed %d: one round too many", seed)
			}
		}
	}
}

func nextRound(t *testing.T, r *recording.Reader) recording.Frame {
	t.Helper()
	for {
		f, err := r.Next()
		if check(t, err); f.Kind == recording.Round {
			return f
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
