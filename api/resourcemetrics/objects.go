package resourcemetrics

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// nodeObjects returns r as the API's objects, made at now.
func (r *readings) nodeObjects(now time.Time) []v1beta1.NodeMetrics {
	items := make([]v1beta1.NodeMetrics, len(r.items))
	for i := range r.items {
		o := &r.items[i]
		items[i] = v1beta1.NodeMetrics{
			ObjectMeta: r.subject(o).metadata(now),
			Timestamp:  o.timestamp(),
			Window:     metav1.Duration{Duration: o.over.Length},
			Usage:      resources(&r.uses[o.from]),
		}
	}
	return items
}

// podObjects returns r as the API's objects, made at now.
func (r *readings) podObjects(now time.Time) []v1beta1.PodMetrics {
	items := make([]v1beta1.PodMetrics, len(r.items))
	containers := make([]v1beta1.ContainerMetrics, len(r.uses))
	for i := range r.uses {
		containers[i] = v1beta1.ContainerMetrics{Name: r.uses[i].Name, Usage: resources(&r.uses[i])}
	}
	for i := range r.items {
		o := &r.items[i]
		items[i] = v1beta1.PodMetrics{
			ObjectMeta: r.subject(o).metadata(now),
			Timestamp:  o.timestamp(),
			Window:     metav1.Duration{Duration: o.over.Length},
			Containers: containers[o.from:o.to:o.to],
		}
	}
	return items
}

// metadata returns what the object is called. Its labels are shared with the
// facts, which nobody changes.
func (s *subject) metadata(now time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: s.name, Namespace: string(s.namespace), Labels: s.labels.all,
		CreationTimestamp: metav1.NewTime(now),
	}
}

func (o *reading) timestamp() metav1.Time { return metav1.NewTime(time.Unix(0, o.over.End)) }
