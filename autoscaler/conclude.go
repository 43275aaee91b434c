package autoscaler

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// statusDraft has what Conclude makes the status and the Events of.
type statusDraft struct {
	spec      *autoscalingv2.HorizontalPodAutoscalerSpec
	oldStatus *autoscalingv2.HorizontalPodAutoscalerStatus
	// generation is Input.Generation.
	generation *int64
	// conditions are the conditions of the new status, before the result of the write is known.
	conditions       []autoscalingv2.HorizontalPodAutoscalerCondition
	events           []Event
	progress         progress
	minReplicas      int32
	scaleToZero      bool // Settings.ScaleToZero
	hasOutsideMetric bool // whether the spec has an Object or External metric, which can raise the count from zero
}

func newStatusDraft(in *Input) statusDraft {
	d := statusDraft{spec: in.Spec, oldStatus: in.Status, generation: in.Generation, progress: decided, minReplicas: ptr.Deref(in.Spec.MinReplicas, 1), scaleToZero: in.Settings.ScaleToZero}
	if d.oldStatus == nil {
		d.oldStatus = &autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
	d.hasOutsideMetric = slices.ContainsFunc(in.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	})
	// The capacity has room for the conditions that a decision may add.
	d.conditions = append(make([]autoscalingv2.HorizontalPodAutoscalerCondition, 0, len(d.oldStatus.Conditions)+3), d.oldStatus.Conditions...)
	return d
}

// progress describes how far a decision got.
type progress uint8

const (
	scaleUnknown  progress = iota // the target's scale is not known
	metricsFailed                 // the metrics gave no count
	decided
)

// Conclude returns the status, memory and events after the decision was carried out. err is the
// reason why the new count could not be written; nil if it was written or did not change.
func (d *Decision) Conclude(err error) Completion {
	done := Completion{Memory: d.Memory, Events: d.events, Err: d.Err}
	switch {
	case d.progress == scaleUnknown:
		done.Status = *d.oldStatus
		done.Status.Conditions = d.conditions
		return done
	case d.progress == metricsFailed:
		done.Status = d.status(d.oldStatus.DesiredReplicas, d.conditions)
		return done
	case !d.Rescale:
		done.Status = d.status(d.Desired, d.conditions)
		return done
	}
	conditions := slices.Clone(d.conditions)
	if err != nil {
		done.Err = fmt.Errorf("scale %s to %d: %w", d.targetText(), d.Desired, err)
		done.Events = append(slices.Clip(done.Events), Event{corev1.EventTypeWarning, "FailedRescale",
			fmt.Sprintf("New size: %d; reason: %s; error: %v", d.Desired, d.RescaleReason, err)})
		conditions = SetCondition(conditions, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale",
			"the target's scale cannot be written: "+err.Error(), d.now())
		done.Status = d.status(d.oldStatus.DesiredReplicas, conditions)
		return done
	}
	conditions = SetCondition(conditions, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededRescale",
		fmt.Sprintf("the target was scaled to %d", d.Desired), d.now())
	done.Events = append(slices.Clip(done.Events), Event{corev1.EventTypeNormal, "SuccessfulRescale",
		fmt.Sprintf("New size: %d; reason: %s", d.Desired, d.RescaleReason)})
	done.Memory = d.Memory.WithChange(d.spec.Behavior, d.Current, d.Desired, d.At)
	switch {
	case !d.scaleToZero:
		conditions = RemoveCondition(conditions, autoscalingv2.ScaledToZero)
	case d.Current > 0 && d.Desired == 0 && d.minReplicas == 0 && d.hasOutsideMetric:
		conditions = SetCondition(conditions, autoscalingv2.ScaledToZero, corev1.ConditionTrue, "ScaledToZero",
			"the autoscaler scaled the target to zero", d.now())
	default:
		conditions = SetCondition(conditions, autoscalingv2.ScaledToZero, corev1.ConditionFalse, "NotScaledToZero",
			"the autoscaler did not scale the target to zero", d.now())
	}
	done.Status = d.status(d.Desired, conditions)
	now := d.now()
	done.Status.LastScaleTime = &now
	return done
}

func (d *Decision) now() metav1.Time { return metav1.NewTime(d.At) }

func (d *decider) addWarning(reason, message string) {
	d.events = append(d.events, Event{corev1.EventTypeWarning, reason, message})
}

func (d *decider) setCondition(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string) {
	d.conditions = SetCondition(d.conditions, kind, status, reason, message, d.now())
}

// SetCondition replaces the condition of a type, or appends it. LastTransitionTime changes only if
// the condition's status changes.
func SetCondition(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType,
	status corev1.ConditionStatus, reason, message string, now metav1.Time) []autoscalingv2.HorizontalPodAutoscalerCondition {
	i := slices.IndexFunc(list, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
	if i < 0 {
		i = len(list)
		list = append(list, autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind})
	}
	c := &list[i]
	if c.Status != status {
		c.LastTransitionTime = now
	}
	c.Status, c.Reason, c.Message = status, reason, message
	return list
}

// RemoveCondition removes the condition of a type.
func RemoveCondition(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) []autoscalingv2.HorizontalPodAutoscalerCondition {
	return slices.DeleteFunc(list, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
}

// ConditionTrue reports whether the condition of a type is True.
func ConditionTrue(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) bool {
	return slices.ContainsFunc(list, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// status returns the status with a desired count and conditions.
func (d *Decision) status(desired int32, conditions []autoscalingv2.HorizontalPodAutoscalerCondition) autoscalingv2.HorizontalPodAutoscalerStatus {
	s := autoscalingv2.HorizontalPodAutoscalerStatus{
		ObservedGeneration: d.generation,
		CurrentReplicas:    d.Current,
		DesiredReplicas:    desired,
		LastScaleTime:      d.oldStatus.LastScaleTime,
		Conditions:         conditions,
	}
	if d.Metrics != nil {
		s.CurrentMetrics = make([]autoscalingv2.MetricStatus, len(d.Metrics))
		for i := range d.Metrics {
			// A metric that failed has an empty entry.
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

// resourceStatus returns the value of a resource metric. Memory has binary units, as in
// metrics.k8s.io.
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
