package model

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/metrics/pkg/apis/metrics/v1alpha1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// writeNodesUsage answers with the usage of all nodes, or of those that a selector chooses.
func (r *request) writeNodesUsage() *requestError {
	selector, p := r.labelSelector()
	if p != nil {
		return p
	}
	list := v1alpha1.NodeMetricsList{Items: []v1alpha1.NodeMetrics{}}
	missing := 0
	add := func(name metric.NodeName) {
		if s, ok := r.view.Lookup(metric.Entity{Kind: metric.Node, Node: name}); ok && hasUsage(s) {
			list.Items = append(list.Items, r.nodeMetrics(s))
		} else {
			missing++
		}
	}
	if factsSynced(r.facts) {
		for n := range r.facts.EachNode {
			if selector.Matches(labels.Set(n.Labels)) {
				add(n.Name)
			}
		}
	} else {
		r.view.Each(metric.Node, func(s *metric.Sample) bool {
			if s.Entity.Part == "" {
				add(s.Entity.Node)
			}
			return true
		})
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.NodeMetrics) int { return cmp.Compare(a.Name, b.Name) })
	if missing > 0 {
		r.warn("%d of %d nodes have no numbers now", missing, missing+len(list.Items))
	}
	return r.writeJSON(&list)
}

// writeNodeUsage answers with the usage of one node.
func (r *request) writeNodeUsage() *requestError {
	s, ok := r.view.Lookup(r.entity)
	if !ok || !hasUsage(s) {
		return r.explainNotServed()
	}
	m := r.nodeMetrics(s)
	return r.writeJSON(&m)
}

// writePodsUsage answers with the usage of the pods of one namespace or of all, or of those that a
// selector chooses.
func (r *request) writePodsUsage() *requestError {
	selector, p := r.labelSelector()
	if p != nil {
		return p
	}
	var pods []metric.PodRef
	missing := 0
	if factsSynced(r.facts) {
		for p := range r.facts.EachPod {
			if r.inNamespace(p.Namespace) && p.Phase == cluster.Running && selector.Matches(labels.Set(p.Labels)) {
				pods = append(pods, p.PodRef)
			}
		}
	} else {
		r.view.Each(metric.Pod, func(s *metric.Sample) bool {
			if r.inNamespace(s.Entity.Namespace) && s.Entity.Part == "" {
				pods = append(pods, s.Entity.PodRef())
			}
			return true
		})
	}
	slices.SortFunc(pods, func(a, b metric.PodRef) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	list := v1alpha1.PodMetricsList{Items: []v1alpha1.PodMetrics{}}
	for _, ref := range slices.Compact(pods) {
		if m, ok := r.podMetrics(ref); ok {
			list.Items = append(list.Items, m)
		} else {
			missing++
		}
	}
	if missing > 0 {
		r.warn("%d of %d running pods have no numbers now", missing, missing+len(list.Items))
	}
	return r.writeJSON(&list)
}

// writePodUsage answers with the usage of one pod.
func (r *request) writePodUsage() *requestError {
	m, ok := r.podMetrics(r.entity.PodRef())
	if !ok {
		return r.explainNotServed()
	}
	return r.writeJSON(&m)
}

func (r *request) inNamespace(ns metric.Namespace) bool {
	return r.entity.Namespace == "" || ns == r.entity.Namespace
}

func factsSynced(f *cluster.Facts) bool { return f != nil && f.Synced }

// labelSelector reads the query's labelSelector. A selector that is not empty needs cluster facts.
func (r *request) labelSelector() (labels.Selector, *requestError) {
	values, err := url.ParseQuery(r.r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query is malformed: %v", err)
	}
	text := values.Get("labelSelector")
	selector, err := labels.Parse(text)
	switch {
	case err != nil:
		return nil, badRequest("labelSelector %q does not parse: %v; write it as app=web,tier!=cache", text, err)
	case !selector.Empty() && !factsSynced(r.facts):
		return nil, &requestError{503, "labels are not known: weir has not listed nodes and pods from an API server; ask without labelSelector, or again later"}
	}
	return selector, nil
}

// hasUsage reports whether s has both numbers that are served here: CPU and memory.
func hasUsage(s *metric.Sample) bool {
	return s != nil && s.Values.Has(metric.CPUUsageRate) && s.Values.Has(metric.MemoryWorkingSet)
}

// usageOf returns the numbers of s: CPU in whole millicores, as Heapster had it, and the working
// set.
func usageOf(s *metric.Sample) corev1.ResourceList {
	cpu, _ := s.Values.Get(metric.CPUUsageRate)
	memory, _ := s.Values.Get(metric.MemoryWorkingSet)
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(math.Round(cpu*heapsterFactor(metric.CPUUsageRate))), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(math.Round(memory)), resource.BinarySI),
	}
}

// timestampAndWindow returns when s was measured, and over which window.
func timestampAndWindow(s *metric.Sample) (metav1.Time, metav1.Duration) {
	w := s.Rates[metric.CPU]
	at := s.Time(metric.CPU)
	if w.End != 0 {
		at = time.Unix(0, w.End)
	}
	return metav1.NewTime(at), metav1.Duration{Duration: w.Length}
}

func (r *request) nodeMetrics(s *metric.Sample) v1alpha1.NodeMetrics {
	m := v1alpha1.NodeMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: string(s.Entity.Node), CreationTimestamp: metav1.NewTime(r.now)},
		Usage:      usageOf(s),
	}
	m.Timestamp, m.Window = timestampAndWindow(s)
	return m
}

// podMetrics returns the usage of a pod and whether it can be served. It can if the pod has numbers
// and every container that must have numbers has them.
func (r *request) podMetrics(ref metric.PodRef) (m v1alpha1.PodMetrics, ok bool) {
	s, containers := r.view.Pod(ref)
	if !hasUsage(s) {
		return m, false
	}
	m = v1alpha1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: string(ref.Name), Namespace: string(ref.Namespace), CreationTimestamp: metav1.NewTime(r.now)},
		Containers: []v1alpha1.ContainerMetrics{},
	}
	m.Timestamp, m.Window = timestampAndWindow(s)
	for _, c := range containers {
		if hasUsage(c) {
			m.Containers = append(m.Containers, v1alpha1.ContainerMetrics{Name: c.Entity.Name, Usage: usageOf(c)})
		}
	}
	return m, len(m.Containers) > 0
}
