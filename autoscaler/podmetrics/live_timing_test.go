package podmetrics_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// testCluster is a large cluster with autoscalers. Each autoscaler uses the CPU of ten pods of two
// containers. Each node has thirty pods.
type testCluster struct {
	*fixture
	all []*scaler
}

type scaler struct {
	object   types.NamespacedName
	spec     autoscalingv2.HorizontalPodAutoscalerSpec
	status   autoscalingv2.HorizontalPodAutoscalerStatus
	memory   autoscaler.Memory
	selector labels.Selector
	scale    autoscaler.Scale
}

const podsOfOne = 10

func newTestCluster(b *testing.B, autoscalers, namespaces int) *testCluster {
	b.Helper()
	t := &testCluster{fixture: newFixture(b)}
	var pods []*cluster.Pod
	for i := range autoscalers {
		name, namespace := fmt.Sprintf("app-%05d", i), fmt.Sprintf("team-%03d", i%namespaces)
		set := labels.Set{"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name + "-prod", "app.kubernetes.io/managed-by": "Helm", "pod-template-hash": fmt.Sprintf("%08x", i)}
		for j := range podsOfOne {
			p := running(namespace, fmt.Sprintf("%s-%08x-%05d", name, i, j), metric.NodeName(fmt.Sprintf("node-%04d", len(pods)/30)), set, "app", "mesh")
			for c := range p.Containers {
				p.Containers[c].Spec.Set(metric.CPURequest, 1e9)
				p.Containers[c].Spec.Set(metric.MemoryRequest, 1<<30)
			}
			pods = append(pods, p)
		}
		target := int32(60)
		selects := labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/name": name, "app.kubernetes.io/instance": name + "-prod"})
		t.all = append(t.all, &scaler{
			object: types.NamespacedName{Namespace: namespace, Name: name},
			spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: ptr(int32(2)), MaxReplicas: 100, Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target}},
			}}},
			selector: selects,
			scale:    autoscaler.Scale{SpecReplicas: podsOfOne, StatusReplicas: podsOfOne, Selector: selects.String()},
		})
	}
	t.know(pods...)
	for from := 0; from < len(pods); from += 30 {
		batch := t.batch(pods[from].Node)
		for k, p := range pods[from:min(from+30, len(pods))] {
			cpu := float64(400+k*10) * 1e6
			for _, name := range []string{"app", "mesh"} {
				measured(batch, p, name, time.Duration(k)*time.Millisecond, 15*time.Second, cpu, 1<<29).Instance.UID = p.UID
			}
		}
		t.write(batch)
	}
	return t
}

func ptr[T any](v T) *T { return &v }

// sync decides once for each autoscaler, as the controller does.
func (t *testCluster) sync(l *podmetrics.Reader, settings *autoscaler.Settings, now time.Time) error {
	ctx := context.Background()
	for _, s := range t.all {
		pods, err := l.Pods(s.object.Namespace, s.selector)
		in := autoscaler.Input{
			Now: now, Settings: settings, Object: s.object, Spec: &s.spec, Status: &s.status, Memory: s.memory,
			Scale: s.scale, Selector: s.selector, Pods: pods, PodsErr: err,
			ReadMetric: l.Readings(ctx, s.object.Namespace, s.selector, &s.spec, pods),
		}
		d := autoscaler.Decide(&in)
		if d.Err != nil {
			return fmt.Errorf("%v: %w", s.object, d.Err)
		}
		done := d.Conclude(nil)
		s.memory, s.status = done.Memory, done.Status
	}
	return nil
}

// BenchmarkSync measures one sync of 10,000 autoscalers over 100,000 pods on one core: pods from
// the facts, CPU from the memory sink, and the decision. Between two syncs the pods of a hundred
// autoscalers change, as in a real cluster of that size.
func BenchmarkSync(b *testing.B) {
	const autoscalers = 10_000
	for _, namespaces := range []int{100, 1} {
		b.Run(fmt.Sprintf("%dautoscalers×%dpods/%dnamespaces", autoscalers, autoscalers*podsOfOne, namespaces), func(b *testing.B) {
			t := newTestCluster(b, autoscalers, namespaces)
			l, settings := podmetrics.New(t.options()), autoscaler.DefaultSettings()
			now := noon.Add(time.Second)
			if err := t.sync(l, &settings, now); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				now = now.Add(15 * time.Second)
				t.change(i)
				b.StartTimer()
				if err := t.sync(l, &settings, now); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(autoscalers*b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

// change changes the readiness of one pod of each of a hundred autoscalers.
func (t *testCluster) change(round int) {
	var changed []*cluster.Pod
	for i := range 100 {
		s := t.all[(round*100+i)%len(t.all)]
		name := metric.PodName(fmt.Sprintf("%s-%08x-%05d", s.object.Name, (round*100+i)%len(t.all), round%podsOfOne))
		p := *t.facts.Pod(metric.PodRef{Namespace: metric.Namespace(s.object.Namespace), Name: name})
		p.ReadySince = p.ReadySince.Add(time.Second)
		changed = append(changed, &p)
	}
	t.know(changed...)
}
