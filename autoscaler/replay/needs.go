package replay

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Needs are what a trace must have for a specification.
type Needs struct {
	// Resources are "cpu" and "memory".
	Resources []string
	// Named are custom and external metrics; Pods those of them that are of pods.
	Named []string
	Pods  []string
}

// Add adds what spec needs.
func (n *Needs) Add(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
	add := func(to *[]string, name string) {
		if !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	for i := range spec.Metrics {
		switch m := &spec.Metrics[i]; {
		case m.Resource != nil:
			add(&n.Resources, string(m.Resource.Name))
		case m.ContainerResource != nil:
			add(&n.Resources, string(m.ContainerResource.Name))
		case m.Pods != nil:
			add(&n.Named, m.Pods.Metric.Name)
			add(&n.Pods, m.Pods.Metric.Name)
		case m.Object != nil:
			add(&n.Named, m.Object.Metric.Name)
		case m.External != nil:
			add(&n.Named, m.External.Metric.Name)
		}
	}
}
