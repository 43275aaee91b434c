package enrich_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/enrich"
)

// Slots and resolved pods only save work: the result is the same without them, whatever samples
// a batch has and in whatever order.
func TestSlotsChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	added := 0
	for fixture := range 300 {
		facts := someFacts(r, now)
		bare, slotted := enrich.New(), enrich.New()
		var slots metric.SlotTable
		var pods cluster.PodCache
		var entities []metric.Entity
		for round := range 10 {
			now = now.Add(15 * time.Second)
			if entities == nil || r.IntN(3) == 0 {
				entities = someEntities(r)
			}
			without, with := &metric.Batch{Node: "n1"}, &metric.Batch{Node: "n1"}
			for _, e := range entities {
				fill(r, without.Add(e), now)
			}
			with.CopyFrom(without)
			with.AssignSlots(&slots)
			pods.Resolve(facts, with)
			for range r.IntN(2) * r.IntN(4) { // rate adds last known values
				es := someEntities(r)
				fill(r, without.Add(es[r.IntN(len(es))]), now)
				s := with.Add(metric.Entity{})
				s.CopyFrom(&without.Samples[len(without.Samples)-1])
				s.Slot = slots.SlotOf(&s.Entity)
			}
			reported := len(without.Samples)
			bare.Process(facts, without, now)
			slotted.Process(facts, with, now)
			if !reflect.DeepEqual(with.Samples, without.Samples) || !reflect.DeepEqual(with.Verdicts, without.Verdicts) {
				t.Fatalf("fixture %d, round %d: with slots\n got %+v %+v\nwant %+v %+v", fixture, round, with.Samples, with.Verdicts, without.Samples, without.Verdicts)
			}
			added += len(with.Samples) - reported
		}
	}
	if added < 1000 {
		t.Errorf("only %d samples were added: nearly nothing was tried", added)
	}
}

func someFacts(r *rand.Rand, now time.Time) *cluster.Facts {
	node := &cluster.Node{Name: "n1"}
	node.Spec.Set(metric.CPUNodeCapacity, 4e9)
	change := cluster.FactsChange{Synced: true, At: now, Nodes: []*cluster.Node{node}}
	for i := range 4 {
		p := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(fmt.Sprint("p", i))}, UID: metric.PodUID(fmt.Sprint("u", i)),
			Node: "n1", Phase: cluster.Running, Started: now, HostNetwork: r.IntN(3) == 0}
		if r.IntN(6) == 0 {
			p.Node = "n2"
		}
		for c := range r.IntN(4) {
			f := cluster.Container{Name: fmt.Sprint("c", c), State: cluster.StateRunning, StartedAt: now, Role: cluster.Role(r.IntN(4))}
			for _, id := range [...]metric.ID{metric.CPURequest, metric.CPULimit, metric.MemoryRequest} {
				if r.IntN(2) == 0 {
					f.Spec.Set(id, float64(r.IntN(9)))
				}
			}
			p.Containers = append(p.Containers, f)
		}
		change.Pods = append(change.Pods, p)
	}
	return (*cluster.Facts)(nil).With(change)
}

func someEntities(r *rand.Rand) []metric.Entity {
	all := []metric.Entity{{Kind: metric.Node, Node: "n1"}}
	for i := range 5 {
		e := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: metric.PodName(fmt.Sprint("p", i))}
		all = append(all, e)
		e.Kind = metric.Container
		for c := range 3 {
			e.Name = fmt.Sprint("c", c)
			all = append(all, e, e)
		}
		e.Kind, e.Name, e.Part = metric.Pod, "", "interface:eth0"
		all = append(all, e)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(len(all))]
}

func fill(r *rand.Rand, s *metric.Sample, now time.Time) {
	s.Values.Set(metric.NetworkRx, 1)
	s.Times[metric.Network] = now.UnixNano()
	if r.IntN(2) == 0 {
		s.Instance.UID = metric.PodUID(fmt.Sprint("u", r.IntN(5)))
	}
	if r.IntN(2) == 0 {
		s.Instance.Start, s.Instance.Origin = now.Add(-time.Minute).UnixNano(), metric.StartReported
	}
	if r.IntN(5) == 0 {
		s.Reject(metric.OldPod)
	}
}
