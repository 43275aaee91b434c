package autoscaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// status returns the status with a desired count and conditions. Like Kubernetes' it
// has no observed generation.
func (d *Decision) status(desired int32, conditions []autoscalingv2.HorizontalPodAutoscalerCondition) autoscalingv2.HorizontalPodAutoscalerStatus {
	s := autoscalingv2.HorizontalPodAutoscalerStatus{
		CurrentReplicas: d.Current,
		DesiredReplicas: desired,
		LastScaleTime:   d.old.LastScaleTime,
		Conditions:      conditions,
	}
	if d.Metrics != nil {
		s.CurrentMetrics = make([]autoscalingv2.MetricStatus, len(d.Metrics))
		for i := range d.Metrics {
			// A metric that failed leaves an empty one in its place.
			if m := &d.Metrics[i]; m.Err == nil {
				s.CurrentMetrics[i] = m.status(&d.spec.Metrics[i])
			}
		}
	}
	return s
}

func (m *MetricDecision) status(spec *autoscalingv2.MetricSpec) autoscalingv2.MetricStatus {
	s := autoscalingv2.MetricStatus{Type: m.Type}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType:
		s.Resource = &autoscalingv2.ResourceMetricStatus{
			Name:    spec.Resource.Name,
			Current: m.resourceStatus(spec.Resource.Name),
		}
	case autoscalingv2.ContainerResourceMetricSourceType:
		s.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name:      spec.ContainerResource.Name,
			Container: spec.ContainerResource.Container,
			Current:   m.resourceStatus(spec.ContainerResource.Name),
		}
	case autoscalingv2.PodsMetricSourceType:
		s.Pods = &autoscalingv2.PodsMetricStatus{
			Metric:  spec.Pods.Metric,
			Current: autoscalingv2.MetricValueStatus{AverageValue: quantity(m.Usage)},
		}
	case autoscalingv2.ObjectMetricSourceType:
		s.Object = &autoscalingv2.ObjectMetricStatus{
			DescribedObject: spec.Object.DescribedObject,
			Metric:          spec.Object.Metric,
		}
		if spec.Object.Target.Type == autoscalingv2.ValueMetricType {
			s.Object.Current.Value = quantity(m.Usage)
		} else {
			s.Object.Current.AverageValue = quantity(m.Usage)
		}
	case autoscalingv2.ExternalMetricSourceType:
		s.External = &autoscalingv2.ExternalMetricStatus{Metric: spec.External.Metric}
		if spec.External.Target.AverageValue != nil {
			s.External.Current.AverageValue = quantity(m.Usage)
		} else {
			s.External.Current.Value = quantity(m.Usage)
		}
	}
	return s
}

// resourceStatus writes memory in binary units, as metrics.k8s.io does.
func (m *MetricDecision) resourceStatus(name corev1.ResourceName) autoscalingv2.MetricValueStatus {
	var v autoscalingv2.MetricValueStatus
	if name == corev1.ResourceMemory {
		v.AverageValue = resource.NewMilliQuantity(m.Usage, resource.BinarySI)
	} else {
		v.AverageValue = quantity(m.Usage)
	}
	if m.Percent {
		u := m.Utilization
		v.AverageUtilization = &u
	}
	return v
}

func quantity(milli int64) *resource.Quantity {
	return resource.NewMilliQuantity(milli, resource.DecimalSI)
}
