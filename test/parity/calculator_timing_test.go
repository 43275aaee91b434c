package parity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/autoscaler"
)

// BenchmarkCPU decides on CPU utilization, the most common metric, once in each
// operation. Compare the columns with: benchstat -col /by
//
//   - upstream: ReplicaCalculator.GetResourceReplicas alone. Its lister returns a
//     list that exists already, its metrics client the map of samples (in a
//     rollout a copy of it, because the calculator changes it).
//   - upstream-client: the same with upstream's lister, over an indexer, and its
//     metrics client, over an API that has the PodMetrics ready. This is what the
//     controller does, without the request and without decoding the answer.
//   - weir: autoscaler.Propose, which does the work of the calculator and also
//     keeps the class of each pod. Its reading lists the samples by pod, as weir's
//     memory does. It reuses the memory of the previous decision, as replay does.
//   - weir-fresh: the same in new memory each time. weir's controller does this,
//     because it keeps the last decision of each autoscaler for explanations.
//   - weir-decide: autoscaler.Decide and Conclude, also with reused memory: with
//     windows, policies, status, conditions and events.
func BenchmarkCPU(b *testing.B) {
	for _, shape := range shapes() {
		f := newFleet(b, shape)
		for _, by := range f.sides() {
			b.Run(fmt.Sprintf("%s/by=%s", shape, by.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					by.decide()
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}

// BenchmarkSpeedup reports how many of weir's decisions take the time of one of
// upstream's: x for the calculators alone, x-fresh for the same without reused
// memory, x-client for upstream with its lister and client, and x-decide for a
// whole decision of weir compared with upstream's calculator alone. The sides
// take turns, and the fastest turn of each counts: on a busy machine, the
// slower ones show only the load of the machine.
func BenchmarkSpeedup(b *testing.B) {
	for _, shape := range shapes() {
		f := newFleet(b, shape)
		sides := f.sides()
		b.Run(shape.String(), func(b *testing.B) {
			fastest := map[string]float64{}
			for b.Loop() {
				for _, by := range sides {
					start := time.Now()
					for range 2000 / shape.pods {
						by.decide()
					}
					took := time.Since(start).Seconds()
					if best, ok := fastest[by.name]; !ok || took < best {
						fastest[by.name] = took
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(fastest["upstream"]/fastest["weir"], "x")
			b.ReportMetric(fastest["upstream"]/fastest["weir-fresh"], "x-fresh")
			b.ReportMetric(fastest["upstream-client"]/fastest["weir-fresh"], "x-client")
			b.ReportMetric(fastest["upstream"]/fastest["weir-decide"], "x-decide")
		})
	}
}

// shape is the size and state of a target.
type shape struct {
	pods    int
	rollout bool // one pod in five is starting, one in ten has no sample
}

func (s shape) String() string {
	state := "steady"
	if s.rollout {
		state = "rollout"
	}
	return fmt.Sprintf("state=%s/pods=%d", state, s.pods)
}

func shapes() (list []shape) {
	for _, rollout := range []bool{false, true} {
		for _, pods := range []int{10, 100, 1000} {
			list = append(list, shape{pods, rollout})
		}
	}
	return list
}

// fleet is one target for both sides.
type fleet struct {
	bare, client *podautoscaler.ReplicaCalculator
	within       podautoscaler.Tolerances
	selector     labels.Selector
	current      int32
	percent      int32
	input        *autoscaler.Input
}

func newFleet(b *testing.B, s shape) *fleet {
	now := time.Now().Truncate(time.Second)
	w := &testInput{Resource: &[]metricsapi.PodMetrics{}}
	for i := range s.pods {
		started, ready := metav1.NewTime(now.Add(-time.Hour)), corev1.ConditionTrue
		if s.rollout && i%5 == 0 {
			started, ready = metav1.NewTime(now.Add(-20*time.Second)), corev1.ConditionFalse
		}
		name := fmt.Sprintf("web-7d4b9c6f5-%05d", i)
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5"}}
		w.Pods = append(w.Pods, &corev1.Pod{
			ObjectMeta: meta,
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
			}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(started.Add(5 * time.Second))},
			}},
		})
		if s.rollout && i%10 == 1 {
			continue
		}
		*w.Resource = append(*w.Resource, metricsapi.PodMetrics{
			ObjectMeta: meta, Timestamp: metav1.NewTime(now.Add(-10 * time.Second)), Window: metav1.Duration{Duration: 30 * time.Second},
			Containers: []metricsapi.ContainerMetrics{{Name: "app", Usage: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewScaledQuantity(int64(190_000_000+i*1_001), resource.Nano), corev1.ResourceMemory: resource.MustParse("100Mi"),
			}}},
		})
	}

	f := &fleet{selector: parse("app=web"), current: int32(s.pods), percent: 50, within: tolerances{0.1, 0.1}.upstream()}
	settings := autoscaler.DefaultSettings()
	a := &apis{testInput: w}
	rest := metrics.NewRESTMetricsClient(resourceAPI{apis: a}, customAPI{a}, externalAPI{a})
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, pod := range w.Pods {
		if err := indexer.Add(pod); err != nil {
			b.Fatal(err)
		}
	}
	samples, at, err := rest.GetResourceMetric(context.Background(), corev1.ResourceCPU, namespace, f.selector, "")
	if err != nil {
		b.Fatal(err)
	}
	f.client = podautoscaler.NewReplicaCalculator(rest, corelisters.NewPodLister(indexer), settings.CPUInitialization, settings.InitialReadinessDelay)
	f.bare = podautoscaler.NewReplicaCalculator(readyMetrics{samples: samples, at: at, copied: s.rollout}, readyPods{list: w.Pods}, settings.CPUInitialization, settings.InitialReadinessDelay)

	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{
		MinReplicas: new(int32(1)), MaxReplicas: int32(10 * s.pods),
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &f.percent},
		}}},
	}
	target := autoscaler.Scale{SpecReplicas: f.current, StatusReplicas: f.current, Selector: "app=web"}
	f.input = w.input(now, &settings, spec, &autoscalingv2.HorizontalPodAutoscalerStatus{}, target)
	reading := w.read(&spec.Metrics[0])
	slices.SortFunc(reading.Samples, func(a, b autoscaler.PodSample) int { return strings.Compare(a.Pod, b.Pod) })
	f.input.Selector = f.selector
	f.input.ReadMetric = func(int) autoscaler.Reading { return reading }

	want, _, _, _, err := f.client.GetResourceReplicas(context.Background(), f.current, f.percent, corev1.ResourceCPU, f.within, namespace, f.selector, "")
	if got := autoscaler.Propose(f.input, 0); err != nil || got.Err != nil || got.Proposal != want {
		b.Fatalf("weir proposes %d (%v), upstream %d (%v)", got.Proposal, got.Err, want, err)
	}
	return f
}

type side struct {
	name   string
	decide func()
}

func (f *fleet) sides() []side {
	upstream := func(c *podautoscaler.ReplicaCalculator) func() {
		ctx := context.Background()
		return func() {
			_, _, _, _, _ = c.GetResourceReplicas(ctx, f.current, f.percent, corev1.ResourceCPU, f.within, namespace, f.selector, "")
		}
	}
	alone, fresh, again := *f.input, *f.input, *f.input
	alone.Reuse = &autoscaler.Decision{Metrics: make([]autoscaler.MetricDecision, 1)}
	return []side{
		{"upstream", upstream(f.bare)},
		{"upstream-client", upstream(f.client)},
		{"weir", func() { alone.Reuse.Metrics[0] = autoscaler.Propose(&alone, 0) }},
		{"weir-fresh", func() { _ = autoscaler.Propose(&fresh, 0) }},
		{"weir-decide", func() {
			again.Reuse = autoscaler.Decide(&again)
			_ = again.Reuse.Conclude(nil)
		}},
	}
}

// readyMetrics is a metrics client that already has the samples.
type readyMetrics struct {
	metrics.MetricsClient
	samples metrics.PodMetricsInfo
	at      time.Time
	copied  bool
}

func (r readyMetrics) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	if r.copied {
		return maps.Clone(r.samples), r.at, nil
	}
	return r.samples, r.at, nil
}

// readyPods is a lister that already has the list.
type readyPods struct {
	corelisters.PodLister
	corelisters.PodNamespaceLister
	list []*corev1.Pod
}

func (r readyPods) Pods(string) corelisters.PodNamespaceLister  { return r }
func (r readyPods) List(labels.Selector) ([]*corev1.Pod, error) { return r.list, nil }
func (r readyPods) Get(string) (*corev1.Pod, error)             { return nil, nil }
