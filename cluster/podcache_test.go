package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// PodOf gives the result of a look-up, however the facts change: at this node, at others, and
// from one to the other.
func TestPodOfAgreesWithLookingUp(t *testing.T) {
	nodes := []metric.NodeName{"", "n1", "n1", "n1", "n2"}
	kept := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		ref := func() metric.PodRef {
			return metric.PodRef{Namespace: metric.Namespace(fmt.Sprint("team-", r.IntN(2))), Name: metric.PodName(fmt.Sprint("p", r.IntN(6)))}
		}
		var facts *Facts
		var slots metric.SlotTable
		var pods PodCache
		var entities []metric.Entity
		b := &metric.Batch{Node: "n1"}
		for range 80 {
			switch r.IntN(4) {
			case 0: // the same facts as before
			case 1:
				if r.IntN(10) == 0 { // as when a recording starts again
					facts = nil
				}
			default:
				c := FactsChange{Synced: true, At: time.Unix(1, 0)}
				for range r.IntN(3) {
					c.Pods = append(c.Pods, &Pod{PodRef: ref(), Node: nodes[r.IntN(len(nodes))]})
				}
				for range r.IntN(2) {
					c.GonePods = append(c.GonePods, ref())
				}
				facts = facts.With(c)
			}
			if entities == nil || r.IntN(10) == 0 {
				entities = []metric.Entity{{Kind: metric.Node, Node: "n1"}}
				for range r.IntN(12) {
					ref := ref()
					entities = append(entities, metric.Entity{Kind: metric.Container, Node: "n1", Namespace: ref.Namespace, Pod: ref.Name})
				}
			}
			if r.IntN(20) == 0 {
				b.Node = nodes[r.IntN(len(nodes))]
			}
			b.Samples = b.Samples[:0]
			for _, e := range entities {
				b.Add(e)
			}
			slots.Assign(b)
			before := pods.onNode
			pods.Resolve(facts, b)
			if before != 0 && before == pods.onNode {
				kept++
			}
			extra := ref() // a processor adds it
			e := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: extra.Namespace, Pod: extra.Name}
			b.Add(e).Slot = slots.SlotOf(&e)
			other := facts.With(FactsChange{GonePods: []metric.PodRef{extra}})
			for i := range b.Samples {
				for _, f := range []*Facts{facts, other} {
					got, want := f.PodOf(b, i), f.Pod(b.Samples[i].Entity.PodRef())
					if got != want {
						t.Fatalf("seed %d: PodOf(%v) = %+v, looked up %+v", seed, b.Samples[i].Entity, got, want)
					}
				}
			}
		}
	}
	if kept < 1000 {
		t.Errorf("only %d times were pods kept", kept)
	}
}

// The cache belongs to the source's next batch as soon as this one is shared.
func TestSharedBatchLooksUp(t *testing.T) {
	pod := &Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1"}
	facts := (*Facts)(nil).With(FactsChange{Pods: []*Pod{pod}})
	b := &metric.Batch{Node: "n1"}
	b.Add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web"})
	var pods PodCache
	b.AssignSlots(new(metric.SlotTable))
	pods.Resolve(facts, b)
	b.Share(1, nil)
	pods.pods[b.Samples[0].Slot] = nil
	if got := facts.PodOf(b, 0); got != pod {
		t.Errorf("PodOf = %v, want %v", got, pod)
	}
}

func TestResolveAllocatesNothing(t *testing.T) {
	facts := (*Facts)(nil).With(FactsChange{Pods: []*Pod{{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1"}}})
	b := &metric.Batch{Node: "n1"}
	for _, pod := range []metric.PodName{"web", "unknown"} {
		b.Add(metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: pod})
	}
	all := []*Facts{facts, facts.With(FactsChange{Synced: true})}
	var pods PodCache
	b.AssignSlots(new(metric.SlotTable))
	pods.Resolve(facts, b)
	i := 0
	if got := testing.AllocsPerRun(20, func() { i++; pods.Resolve(all[i%2], b) }); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
