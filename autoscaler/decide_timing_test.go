package autoscaler

import (
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
)

// crowd returns an input for a target with n pods of two containers. One pod in twenty is starting,
// and one in twenty has no sample.
func crowd(n int) *Input {
	settings := DefaultSettings()
	now := t0
	in := &Input{
		Now:      now,
		Settings: &settings,
		Object:   types.NamespacedName{Namespace: "shop", Name: "web"},
		Spec: &autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    int32(4 * n),
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
				},
			}},
		},
		Status: &autoscalingv2.HorizontalPodAutoscalerStatus{},
		Scale:  Scale{SpecReplicas: int32(n), StatusReplicas: int32(n), Selector: "app=web"},
	}
	Default(in.Spec)
	var samples []PodSample
	for i := range n {
		p := PodInput{
			Name: fmt.Sprintf("web-7d4b9c6f5d-%05d", i), Phase: cluster.Running, Started: now.Add(-time.Hour),
			Ready: cluster.ReadyTrue, ReadySince: now.Add(-59 * time.Minute),
			Containers: []ContainerInput{
				{Name: "app", Requests: Requests{CPU: MilliQuantity{Milli: 500, Set: true}}},
				{Name: "proxy", Requests: Requests{CPU: MilliQuantity{Milli: 100, Set: true}}},
			},
		}
		if i%20 == 3 {
			p.Started, p.Ready, p.ReadySince = now.Add(-20*time.Second), cluster.ReadyFalse, now.Add(-20*time.Second)
		}
		in.Pods = append(in.Pods, p)
		if i%20 != 7 {
			samples = append(samples, PodSample{Pod: p.Name, Milli: int64(300 + i%200), At: now.Add(-20 * time.Second), Window: 15 * time.Second})
		}
	}
	in.ReadMetric = func(int) Reading { return Reading{Samples: samples, At: now.Add(-20 * time.Second)} }
	return in
}

// BenchmarkDecide decides repeatedly about the same target, with the memory of a controller that
// has run for a while, and concludes. It reuses the memory of the last decision.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			in := crowd(n)
			in.Selector = labels.SelectorFromSet(labels.Set{"app": "web"})
			for i := range 20 {
				in.Memory.Recommendations = append(in.Memory.Recommendations, ReplicaRecommendation{int32(n), t0.Add(time.Duration(i-20) * 15 * time.Second)})
			}
			b.ReportAllocs()
			for b.Loop() {
				d := Decide(in)
				if d.Err != nil {
					b.Fatal(d.Err)
				}
				d.Conclude(nil)
				in.Reuse = d
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
		})
	}
}

// BenchmarkPropose computes one metric, which is the work of Kubernetes' ReplicaCalculator.
func BenchmarkPropose(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			in := crowd(n)
			in.Reuse = &Decision{Metrics: make([]MetricDecision, 1)}
			b.ReportAllocs()
			for b.Loop() {
				m := Propose(in, 0)
				if m.Err != nil {
					b.Fatal(m.Err)
				}
				in.Reuse.Metrics[0] = m
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
		})
	}
}
