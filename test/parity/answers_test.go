package parity

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	custom "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	external "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/autoscaler"
)

// answer sets the answers of the metrics APIs so that the ratio of usage to
// target of metric i is about ratio(i).
func (s *scene) answer(w *testInput, metrics []autoscalingv2.MetricSpec, pods int, target autoscaler.Scale, ratio func(i int) float64) {
	w.Custom, w.Object, w.External = map[string][]custom.MetricValue{}, map[string]custom.MetricValue{}, map[string][]external.ExternalMetricValue{}
	use := map[corev1.ResourceName]float64{}
	for _, name := range resourceNames {
		use[name] = s.request(name) * s.Float64()
	}
	asked := false
	for i, m := range metrics {
		failed := s.gaps && s.percent(10)
		goal := ratio(i)
		switch {
		case m.Resource != nil:
			asked = true
			use[m.Resource.Name] = goal * s.perPod(m.Resource.Name, m.Resource.Target)
		case m.ContainerResource != nil:
			asked = true
			use[m.ContainerResource.Name] = goal * s.perPod(m.ContainerResource.Name, m.ContainerResource.Target)
		case failed:
		case m.Pods != nil:
			mean := goal * milliOf(m.Pods.Target.AverageValue)
			w.Custom[m.Pods.Metric.Name] = s.customItems(w.Pods, func() int64 { return s.jitter(mean) })
		case m.Object != nil:
			total := goal * milliOf(m.Object.Target.Value)
			if m.Object.Target.AverageValue != nil {
				total = goal * milliOf(m.Object.Target.AverageValue) * float64(max(1, target.StatusReplicas))
			}
			value := custom.MetricValue{Timestamp: metav1.NewTime(s.sampled()), Value: s.milli(whole(total))}
			if s.extreme && s.percent(40) {
				value.Value = s.wild(true)
			}
			w.Object[m.Object.Metric.Name] = value
		case m.External != nil:
			total := goal * milliOf(m.External.Target.Value)
			if m.External.Target.AverageValue != nil {
				total = goal * milliOf(m.External.Target.AverageValue) * float64(max(1, target.StatusReplicas))
			}
			w.External[m.External.Metric.Name] = s.externalItems(total)
		}
	}
	if asked && !(s.gaps && s.percent(6)) {
		items := s.resourceItems(w.Pods, func() map[corev1.ResourceName]int64 {
			usage := map[corev1.ResourceName]int64{}
			for _, name := range resourceNames {
				usage[name] = s.jitter(use[name])
			}
			return usage
		})
		w.Resource = &items
	}
}

// perPod returns the usage of a container that is exactly at the target.
func (s *scene) perPod(name corev1.ResourceName, t autoscalingv2.MetricTarget) float64 {
	if t.AverageUtilization != nil {
		return s.request(name) * float64(*t.AverageUtilization) / 100
	}
	return milliOf(t.AverageValue)
}

func milliOf(q *resource.Quantity) float64 {
	if q == nil {
		return 1000
	}
	return float64(q.MilliValue())
}

// sampled returns the time of a sample. It is mostly the same for all samples.
func (s *scene) sampled() time.Time {
	return s.now.Add(-time.Duration(one(s.random, 15, 15, 15, 15, 0, 30, 100, -5)) * time.Second)
}

func (s *scene) window() time.Duration {
	return one(s.random, 30*time.Second, 30*time.Second, 30*time.Second, time.Minute, 15*time.Second, 0)
}

// resourceItems returns the answer of metrics.k8s.io for pods. usage returns
// the approximate usage of a container by resource, in thousandths.
func (s *scene) resourceItems(pods []*corev1.Pod, usage func() map[corev1.ResourceName]int64) []metricsapi.PodMetrics {
	var items []metricsapi.PodMetrics
	add := func(name string, containers ...string) {
		item := metricsapi.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Timestamp:  metav1.NewTime(s.sampled()), Window: metav1.Duration{Duration: s.window()},
		}
		for _, c := range containers {
			list := corev1.ResourceList{}
			for resource, v := range usage() {
				if s.gaps && s.percent(2) {
					continue
				}
				list[resource] = s.milli(v)
				if s.extreme && s.percent(40) {
					list[resource] = s.wild(false)
				}
			}
			item.Containers = append(item.Containers, metricsapi.ContainerMetrics{Name: c, Usage: list})
		}
		items = append(items, item)
	}
	for _, pod := range pods {
		if pod.Namespace != namespace || pod.Labels["app"] != "web" && !s.percent(10) || s.gaps && s.percent(15) {
			continue
		}
		var names []string
		for _, c := range pod.Spec.Containers {
			names = append(names, c.Name)
		}
		for _, c := range pod.Spec.InitContainers {
			if c.RestartPolicy != nil {
				names = append(names, c.Name)
			}
		}
		if s.gaps && s.percent(4) {
			names = names[1:]
		}
		add(pod.Name, names...)
		if s.gaps && s.percent(3) {
			add(pod.Name, names...)
		}
	}
	if s.gaps && s.percent(15) {
		add("gone-0", "app")
	}
	return items
}

// customItems returns the answer of custom.metrics.k8s.io for pods.
func (s *scene) customItems(pods []*corev1.Pod, usage func() int64) []custom.MetricValue {
	var items []custom.MetricValue
	add := func(name string) {
		item := custom.MetricValue{
			DescribedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name},
			Timestamp:       metav1.NewTime(s.sampled()), Value: s.milli(usage()),
		}
		if s.percent(50) {
			window := int64(s.window() / time.Second)
			item.WindowSeconds = &window
		}
		if s.extreme && s.percent(40) {
			item.Value = s.wild(true)
		}
		items = append(items, item)
	}
	for _, pod := range pods {
		if pod.Namespace != namespace || pod.Labels["app"] != "web" || s.gaps && s.percent(15) {
			continue
		}
		add(pod.Name)
		if s.gaps && s.percent(3) {
			add(pod.Name)
		}
	}
	if s.gaps && s.percent(15) {
		add("gone-0")
	}
	return items
}

// externalItems returns items with a sum of about total.
func (s *scene) externalItems(total float64) []external.ExternalMetricValue {
	parts := one(s.random, 1, 1, 1, 2, 3)
	if s.gaps && s.percent(5) {
		parts = 0
	}
	items := make([]external.ExternalMetricValue, parts)
	for i := range items {
		items[i] = external.ExternalMetricValue{Timestamp: metav1.NewTime(s.sampled()), Value: s.milli(whole(total / float64(parts)))}
		if s.extreme && s.percent(50) {
			items[i].Value = s.wild(true)
		}
		if s.percent(2) {
			items[i].Value.Neg()
		}
	}
	return items
}

// whole rounds f to an integer and keeps it within ±9e18.
func whole(f float64) int64 {
	return int64(min(max(math.Round(f), -9e18), 9e18))
}

// jitter returns a usage near mean.
func (s *scene) jitter(mean float64) int64 {
	if s.even {
		return whole(mean)
	}
	return whole(mean*(0.8+0.4*s.Float64())) + one[int64](s.random, 0, 0, -1, 1)
}

var resourceNames = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// request returns the request of a container of the scene, in thousandths.
func (s *scene) request(resource corev1.ResourceName) float64 {
	if resource == corev1.ResourceMemory {
		return float64(s.memory)
	}
	return float64(s.cpu)
}
