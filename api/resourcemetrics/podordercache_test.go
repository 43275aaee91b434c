package resourcemetrics

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// Several LISTs run at the same time, some with older facts or an older snapshot. The podOrder
// that each of them stores must be valid for all others.
func TestPodOrderBetweenLists(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	sink := memory.New(memory.Options{})
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, At: noon})
	var (
		views []UsageReader
		known []*cluster.Facts
	)
	for round := range 30 {
		change := cluster.FactsChange{Synced: true, At: noon}
		for range r.IntN(4) {
			p := &cluster.Pod{
				PodRef: metric.PodRef{Namespace: []metric.Namespace{"shop", "data"}[r.IntN(2)], Name: metric.PodName(fmt.Sprint("pod-", r.IntN(12)))},
				UID:    metric.PodUID(fmt.Sprint(r.IntN(2))), Node: metric.NodeName(fmt.Sprint("n", r.IntN(3))), Phase: cluster.Running,
				Labels: map[string]string{"round": fmt.Sprint(round)},
				// It may begin after the last read of its node.
				Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning, StartedAt: noon.Add(time.Duration(r.IntN(round+6)) * time.Second)}},
			}
			if r.IntN(5) == 0 {
				p.Phase = cluster.Succeeded
			}
			change.Pods = append(change.Pods, p)
		}
		facts = facts.With(change)
		node := metric.NodeName(fmt.Sprint("n", r.IntN(3)))
		b := &metric.Batch{Source: "kubelet:resource", Node: node, Ended: noon.Add(time.Duration(round+1) * time.Second)}
		for _, p := range facts.PodsOn(node) {
			for _, e := range []metric.Entity{
				{Kind: metric.Pod, Node: node, Namespace: p.Namespace, Pod: p.Name},
				{Kind: metric.Container, Node: node, Namespace: p.Namespace, Pod: p.Name, Name: "app"},
			} {
				s := b.Add(e)
				s.Values.Set(metric.CPUUsageRate, float64(round))
				s.Values.Set(metric.MemoryWorkingSet, float64(round))
				s.Times[metric.CPU], s.Times[metric.Memory] = b.Ended.UnixNano(), b.Ended.UnixNano()
				s.Reasons[metric.CPU], s.Reasons[metric.Memory] = metric.Measured, metric.Measured
				s.Instance.UID = p.UID
			}
		}
		if err := sink.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		views, known = append(views, sink.Snapshot()), append(known, facts)
	}
	some, err := labels.Parse("round notin (1,2,3)")
	if err != nil {
		t.Fatal(err)
	}
	list := func(view, facts int, c listFilter, orders *podOrderCache) string {
		a := usageReader{view: views[view], facts: known[facts], orders: orders}
		read := usageLists.Get().(*usageList)
		defer read.release()
		missing := a.readPods(c, read)
		var text []byte
		for i := range read.items {
			o := &read.items[i]
			s := read.metaOf(o)
			text = fmt.Appendln(text, s.namespace, s.name, s.labels.all, o.window, read.usagesOf(o))
		}
		for _, p := range missing {
			text = fmt.Appendln(text, "missing", p.PodRef)
		}
		return string(text)
	}
	shared := newPodOrderCache()
	var lists sync.WaitGroup
	for seed := range uint64(4) {
		lists.Go(func() {
			r := rand.New(rand.NewPCG(9, seed))
			at, long := 0, 0
			for range 500 {
				at = min(at+r.IntN(2), len(views)-1)
				if r.IntN(40) == 0 {
					at = r.IntN(len(views))
				}
				c := []listFilter{{}, {namespace: "shop"}, {labels: some}}[r.IntN(3)]
				facts := max(0, at-r.IntN(2))
				got, want := list(at, facts, c, shared), list(at, facts, c, newPodOrderCache())
				if got != want {
					t.Errorf("view %d, facts %d, %+v: got\n%s\nwant what was never asked before:\n%s", at, facts, c, got, want)
					return
				}
				if len(got) > 200 {
					long++
				}
			}
			if long < 100 {
				t.Errorf("%d LISTs of 500 had pods: too few to show anything", long)
			}
		})
	}
	lists.Wait()
}
