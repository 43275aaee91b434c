package autoscaler

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Actions are the functions that carry out a decision.
type Actions struct {
	// Scale writes a count to the target's scale as it was last read. On a conflict (HTTP 409)
	// CarryOut calls it again, at most five times, 10 ms apart.
	Scale func(replicas int32) error
	// Refresh reads the scale again after a failed write, so that the next write can succeed.
	// CarryOut ignores its error. May be nil.
	Refresh func() error
	// Status writes a status that differs from the one the decision was given. Nil where no
	// status is kept.
	Status func(*autoscalingv2.HorizontalPodAutoscalerStatus) error
}

// CarryOut writes the decided count if it changed, concludes, and writes the status if it
// changed. Events are in the order in which Kubernetes writes them. It waits between retries and
// has no other side effects than the functions of actions.
//
// A status that cannot be written is an error. The caller keeps the memory even then: the scale
// was written before.
func (d *Decision) CarryOut(deeds Actions) Completion {
	var err error
	if d.Rescale {
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			err := deeds.Scale(d.Desired)
			if err != nil && deeds.Refresh != nil {
				_ = deeds.Refresh()
			}
			return err
		})
	}
	done := d.Conclude(err)
	if deeds.Status == nil || SameStatus(d.oldStatus, &done.Status) {
		return done
	}
	unwritten := deeds.Status(&done.Status)
	if unwritten == nil {
		return done
	}
	at := len(done.Events)
	if d.progress == metricsFailed {
		at-- // Kubernetes writes the Event about the metrics last
	}
	done.Events = slices.Insert(slices.Clone(done.Events), at,
		Event{corev1.EventTypeWarning, "FailedUpdateStatus", unwritten.Error()})
	if d.progress == decided && err == nil {
		// Otherwise the error that ended the decision is the more telling one.
		done.Err = fmt.Errorf("write the status of %s: %w", d.Object, unwritten)
	}
	return done
}

// statusInputs is what a decision keeps for Conclude.
type statusInputs struct {
	spec      *autoscalingv2.HorizontalPodAutoscalerSpec
	oldStatus *autoscalingv2.HorizontalPodAutoscalerStatus
	// conditions are those of the new status, before the result of the write is known.
	conditions       []autoscalingv2.HorizontalPodAutoscalerCondition
	events           []Event
	progress         progress
	minReplicas      int32
	scaleToZero      bool // Settings.ScaleToZero
	hasOutsideMetric bool // has an Object or External metric, which can raise the count from zero
}

// progress is how far a decision came.
type progress uint8

const (
	scaleUnknown  progress = iota // the target's scale is not known
	metricsFailed                 // the metrics gave no count
	decided
)

// Conclude returns the status, memory and events after the decision was carried out. err is why
// the new count could not be written; nil if it was written or did not change.
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
		conditions = setCondition(conditions, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale",
			"the target's scale cannot be written: "+err.Error(), d.now())
		done.Status = d.status(d.oldStatus.DesiredReplicas, conditions)
		return done
	}
	conditions = setCondition(conditions, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededRescale",
		fmt.Sprintf("the target was scaled to %d", d.Desired), d.now())
	done.Events = append(slices.Clip(done.Events), Event{corev1.EventTypeNormal, "SuccessfulRescale",
		fmt.Sprintf("New size: %d; reason: %s", d.Desired, d.RescaleReason)})
	done.Memory = d.Memory.WithChange(d.spec.Behavior, d.Current, d.Desired, d.At)
	switch {
	case !d.scaleToZero:
		conditions = removeCondition(conditions, autoscalingv2.ScaledToZero)
	case d.Current > 0 && d.Desired == 0 && d.minReplicas == 0 && d.hasOutsideMetric:
		conditions = setCondition(conditions, autoscalingv2.ScaledToZero, corev1.ConditionTrue, "ScaledToZero",
			"the autoscaler scaled the target to zero", d.now())
	default:
		conditions = setCondition(conditions, autoscalingv2.ScaledToZero, corev1.ConditionFalse, "NotScaledToZero",
			"the autoscaler did not scale the target to zero", d.now())
	}
	done.Status = d.status(d.Desired, conditions)
	now := d.now()
	done.Status.LastScaleTime = &now
	return done
}

// SameStatus reports whether two statuses are equal, so that the second need not be written. It
// compares quantities and times by value.
func SameStatus(a, b *autoscalingv2.HorizontalPodAutoscalerStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}

func (d *Decision) now() metav1.Time { return metav1.NewTime(d.At) }

func (d *Decision) addWarning(reason, message string) {
	d.events = append(d.events, Event{corev1.EventTypeWarning, reason, message})
}

func (d *Decision) setCondition(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string) {
	d.conditions = setCondition(d.conditions, kind, status, reason, message, d.now())
}

func (d *Decision) removeCondition(kind autoscalingv2.HorizontalPodAutoscalerConditionType) {
	d.conditions = removeCondition(d.conditions, kind)
}

// setCondition replaces the condition of a type, or appends it. LastTransitionTime changes only
// with the condition's status.
func setCondition(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType,
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

func removeCondition(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) []autoscalingv2.HorizontalPodAutoscalerCondition {
	return slices.DeleteFunc(list, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
}

// status returns the status with a desired count and conditions. Like Kubernetes', it has no
// observed generation.
func (d *Decision) status(desired int32, conditions []autoscalingv2.HorizontalPodAutoscalerCondition) autoscalingv2.HorizontalPodAutoscalerStatus {
	s := autoscalingv2.HorizontalPodAutoscalerStatus{
		CurrentReplicas: d.Current,
		DesiredReplicas: desired,
		LastScaleTime:   d.oldStatus.LastScaleTime,
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
