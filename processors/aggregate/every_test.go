package aggregate_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestEveryAbsenceHasOneReason makes random fixtures: pods that come, wait, end and are
// replaced, a node that reports some of them, some twice, with zeros, resets and gaps, and
// reads that fail. In every round, each entity that should have CPU and memory by the API
// server's facts has a number or exactly one reason. An entity with a number has no reason
// against it.
func TestEveryAbsenceHasOneReason(t *testing.T) {
	numbers, reasons := 0, map[metric.Reason]int{}
	for seed := range uint64(400) {
		w := newFixture(seed)
		for range 12 {
			facts, b, now := w.round()
			for _, p := range w.steps {
				p.Process(facts, b, now)
			}
			byKey := reasonsByKey(b)
			for e := range expected(facts, b.Node) {
				for _, g := range []metric.Group{metric.CPU, metric.Memory} {
					got := byKey[key{e, g}]
					if served(b, e, g) {
						numbers++
						if len(got) != 0 {
							t.Fatalf("seed %d, %v: %v %v is served, and %v stand against it", seed, now.Sub(transcript.Epoch), e, g, got)
						}
						continue
					}
					if len(got) != 1 {
						t.Fatalf("seed %d, %v: %v has no %v, and the reasons %v; want one\n%s", seed, now.Sub(transcript.Epoch), e, g, got, transcript.Describe(b))
					}
					reasons[got[0]]++
				}
			}
		}
	}
	var said []string
	for r := range metric.NumReasons {
		if n := reasons[metric.Reason(r)]; n > 0 {
			said = append(said, fmt.Sprintf("%v %d", metric.Reason(r), n))
		}
	}
	t.Logf("%d numbers; %s", numbers, strings.Join(said, ", "))
	if numbers < 10_000 || len(said) < 15 {
		t.Errorf("%d numbers and %d reasons: these worlds are too dull", numbers, len(said))
	}
}

type key struct {
	entity metric.Entity
	group  metric.Group
}

// reasonsByKey returns the reasons against numbers: all but those of rejected samples and
// Ambiguous.
func reasonsByKey(b *metric.Batch) map[key][]metric.Reason {
	all := map[key][]metric.Reason{}
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		if v.Reason.Layer() != metric.LayerIdentity {
			k := key{v.Entity, v.Group}
			all[k] = append(all[k], v.Reason)
		}
	}
	return all
}

// expected returns the node, and the pods and containers on it, that the API server names.
func expected(facts *cluster.Facts, node metric.NodeName) map[metric.Entity]bool {
	all := map[metric.Entity]bool{}
	if facts.Node(node) != nil {
		all[metric.Entity{Kind: metric.Node, Node: node}] = true
	}
	for _, p := range facts.PodsOn(node) {
		pod := metric.Entity{Kind: metric.Pod, Node: node, Namespace: p.Namespace, Pod: p.Name}
		all[pod] = true
		for i := range p.Containers {
			c := pod
			c.Kind, c.Name = metric.Container, p.Containers[i].Name
			all[c] = true
		}
	}
	return all
}

func served(b *metric.Batch, e metric.Entity, g metric.Group) bool {
	id := metric.CPUUsageRate
	if g == metric.Memory {
		id = metric.MemoryWorkingSet
	}
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Entity == e && s.Servable(g) && s.Values.Has(id) {
			return true
		}
	}
	return false
}

// fixture is a node that changes at random.
type fixture struct {
	random *rand.Rand
	steps  []transcript.Processor
	pods   []*cluster.Pod
	known  *cluster.Facts
	batch  metric.Batch
	now    time.Time
	made   int
	cpu    map[string]float64
}

func newFixture(seed uint64) *fixture {
	w := &fixture{
		random: rand.New(rand.NewPCG(seed, 9)), now: transcript.Epoch, cpu: map[string]float64{},
		steps: []transcript.Processor{processors.New(processors.Options{})},
		batch: metric.Batch{Source: "test", Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Cores: 4},
	}
	w.batch.Exhaustive = w.chance(4)
	for i := range 5 {
		w.pods = append(w.pods, w.pod(fmt.Sprintf("p%d", i)))
	}
	return w
}

// chance returns true once in n times.
func (w *fixture) chance(n int) bool { return w.random.IntN(n) == 0 }

func (w *fixture) pod(name string) *cluster.Pod {
	w.made++
	started := w.now.Add(-time.Duration(w.random.IntN(120)) * time.Second)
	p := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, UID: metric.PodUID(fmt.Sprintf("u%d", w.made)),
		Node: "n1", Phase: cluster.Running, Started: started, KnownAt: started,
	}
	if w.chance(8) {
		p.Node = "n2"
	}
	if w.chance(10) {
		p.ConfigHash, p.Mirror = cluster.NewConfigHash("hash"+p.UID), true
	}
	for i := range w.random.IntN(4) {
		w.made++
		p.Containers = append(p.Containers, cluster.Container{
			Name: fmt.Sprintf("c%d", i), State: cluster.ContainerState(w.random.IntN(8) % 4), Role: cluster.Role(w.random.IntN(4)),
			ID: metric.ContainerID(fmt.Sprintf("id%d", w.made)), StartedAt: started.Add(time.Second),
		})
		if c := &p.Containers[i]; w.chance(2) {
			c.State, c.Role = cluster.StateRunning, cluster.Regular
		}
	}
	return p
}

// round advances the time, changes the pods a little, and returns the node's report.
func (w *fixture) round() (*cluster.Facts, *metric.Batch, time.Time) {
	w.now = w.now.Add(time.Duration(5+w.random.IntN(40)) * time.Second)
	for i, p := range w.pods {
		changed := *p
		switch w.random.IntN(12) {
		case 0:
			changed = *w.pod(string(p.Name))
		case 1:
			changed.Phase = []cluster.Phase{cluster.Pending, cluster.Running, cluster.Succeeded, cluster.Failed}[w.random.IntN(4)]
		case 2:
			changed.Deleted = w.now
		case 3:
			changed.Node = []metric.NodeName{"n1", "n2"}[w.random.IntN(2)]
		}
		w.pods[i] = &changed
	}
	if !w.chance(5) { // else the API server does not answer
		change := cluster.FactsChange{Synced: !w.chance(10), At: w.now}
		for _, p := range w.pods {
			if w.chance(12) {
				change.GonePods = append(change.GonePods, p.PodRef)
			} else {
				change.Pods = append(change.Pods, p)
			}
		}
		change.Nodes = []*cluster.Node{{Name: "n1", Ready: !w.chance(6)}}
		w.known = w.known.With(change)
	}
	b := &w.batch
	b.Reset()
	b.Began, b.Ended = w.now, w.now
	if w.chance(6) {
		b.Err = &metric.ReadError{Reason: metric.NodeUnreachable + metric.Reason(w.random.IntN(7)), Err: errors.New("it broke")}
		if !w.chance(3) {
			return w.known, b, w.now
		}
	}
	if !w.chance(8) {
		w.report(b, metric.Entity{Kind: metric.Node, Node: "n1"}, metric.Instance{})
	}
	for _, p := range w.pods {
		if w.chance(8) {
			continue
		}
		e := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: p.Namespace, Pod: p.Name}
		uid := p.UID
		if w.chance(3) {
			uid = ""
		}
		if w.chance(2) {
			w.report(b, e, metric.Instance{UID: uid})
		}
		for i := range p.Containers {
			c := &p.Containers[i]
			e.Kind, e.Name = metric.Container, c.Name
			for range 1 + w.random.IntN(8)/7 {
				in := metric.Instance{UID: uid, Start: c.StartedAt.UnixNano(), Origin: metric.StartReported}
				if w.chance(2) {
					in.ID = c.ID
				}
				if w.chance(6) {
					in.UID, in.ID, in.Start = "old", "old", w.now.Add(-time.Hour).UnixNano()
				}
				if !w.chance(8) {
					w.report(b, e, in)
				}
			}
		}
	}
	return w.known, b, w.now
}

// report adds a sample of e, which may lack a group, or have zeros or a counter that fell.
func (w *fixture) report(b *metric.Batch, e metric.Entity, in metric.Instance) {
	s := b.Add(e)
	in.Processes = -1
	s.Instance = in
	name := e.String() + string(in.ID)
	w.cpu[name] += float64(w.random.IntN(2e9))
	if w.chance(20) {
		w.cpu[name] /= 2
	}
	cpu, memory := w.cpu[name], float64(1+w.random.IntN(1e6))
	if w.chance(15) {
		cpu, memory = 0, memory*float64(w.random.IntN(2))
	}
	at := w.now.Add(-time.Duration(w.random.IntN(3)) * time.Second).UnixNano()
	if !w.chance(15) {
		s.Values.Set(metric.CPUUsage, cpu)
		s.Times[metric.CPU] = at
	}
	if !w.chance(15) {
		s.Values.Set(metric.MemoryWorkingSet, memory)
		s.Times[metric.Memory] = at
	}
}
