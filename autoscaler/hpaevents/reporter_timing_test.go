package hpaevents

import (
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// large returns a cluster of 1,000 nodes × 30 pods in ten namespaces, with an autoscaler for every
// ten pods.
func large(b *testing.B) (*Reporter, *explain.Explainer) {
	sink := memory.New(memory.Options{})
	c := cluster.FactsChange{Synced: true, At: time.Now()}
	t := newTargetSet(noScales{})
	b.Cleanup(t.queue.ShutDown)
	seen := map[string]bool{}
	for n := range 1000 {
		node := metric.NodeName(fmt.Sprintf("node-%04d", n))
		batch := &metric.Batch{Source: "s", Node: node, Ended: time.Now(), Interval: 15 * time.Second, Resolution: time.Millisecond}
		for p := range 30 {
			e := metric.Entity{Kind: metric.Pod, Node: node, Namespace: metric.Namespace(fmt.Sprintf("team-%d", p%10)), Pod: metric.PodName(fmt.Sprintf("app-%d-%d", n, p))}
			s := batch.Add(e)
			for _, g := range []metric.Group{metric.CPU, metric.Memory} {
				s.Times[g], s.Reasons[g] = time.Now().UnixNano(), metric.Measured
			}
			s.Values.Set(metric.CPUUsageRate, 1e8)
			s.Values.Set(metric.MemoryWorkingSet, 1<<27)
			app := fmt.Sprintf("app-%d", n/3)
			c.Pods = append(c.Pods, &cluster.Pod{
				PodRef: e.PodRef(), UID: metric.PodUID(e.Pod), Node: node, Phase: cluster.Running,
				Labels: map[string]string{"app": app, "pod-template-hash": "7c5ddbdf54", "tier": "front"},
			})
			if key := string(e.Namespace) + app; !seen[key] {
				seen[key] = true
				selector, err := scaleclient.Selector("app=" + app)
				if err != nil {
					b.Fatal(err)
				}
				h := &hpaInfo{NamespacedName: types.NamespacedName{Namespace: string(e.Namespace), Name: app}, uid: types.UID(key), target: workloadRef{string(e.Namespace), autoscalingv2.CrossVersionObjectReference{Name: app}}, resource: true, pods: true}
				t.setHPA(h)
				t.recordLookup(h.target, selector, nil)
			}
		}
		if err := sink.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return &Reporter{targets: t}, &explain.Explainer{Now: time.Now(), View: sink.Snapshot(), Facts: (*cluster.Facts)(nil).With(c)}
}

// BenchmarkLook measures one check of 30,000 pods of 3,340 autoscalers. All pods have numbers.
func BenchmarkLook(b *testing.B) {
	a, w := large(b)
	throttle := newEventThrottle(1)
	b.ReportAllocs()
	for b.Loop() {
		if got := throttle.decideEvents(time.Now(), checkAll(a.targets, w.Facts, w.Survey()), true, nil); got != nil {
			b.Fatal(got)
		}
	}
}

func BenchmarkAutoscalers(b *testing.B) {
	a, w := large(b)
	p := w.Facts.PodsIn("team-1")[0]
	b.ReportAllocs()
	for b.Loop() {
		if got := a.Autoscalers(p); len(got) != 1 {
			b.Fatal(got)
		}
	}
}
