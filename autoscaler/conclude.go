package autoscaler

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conclusion is what a decision keeps for its end.
type conclusion struct {
	spec *autoscalingv2.HorizontalPodAutoscalerSpec
	old  *autoscalingv2.HorizontalPodAutoscalerStatus
	// conditions are the new status', as far as they are known before the write.
	conditions  []autoscalingv2.HorizontalPodAutoscalerCondition
	events      []Event
	ends        ending
	lowest      int32 // minReplicas
	zeroGate    bool  // Settings.ScaleToZero
	fromOutside bool  // has an Object or External metric, so that zero can be left
}

// ending is how far a decision came.
type ending uint8

const (
	noScale   ending = iota // the target's scale is not known
	noMetrics               // the metrics gave no count
	decided
)

// Conclude returns the status, memory and events after the decision was carried out:
// err is why the new count could not be written, nil if it was or none was to be.
func (d *Decision) Conclude(err error) Done {
	done := Done{Memory: d.Memory, Events: d.events, Err: d.Err}
	switch {
	case d.ends == noScale:
		done.Status = *d.old
		done.Status.Conditions = d.conditions
		return done
	case d.ends == noMetrics:
		done.Status = d.status(d.old.DesiredReplicas, d.conditions)
		return done
	case !d.Rescale:
		done.Status = d.status(d.Desired, d.conditions)
		return done
	}
	conditions := slices.Clone(d.conditions)
	if err != nil {
		done.Err = fmt.Errorf("scale %s to %d: %w", d.target(), d.Desired, err)
		done.Events = append(slices.Clip(done.Events), Event{corev1.EventTypeWarning, "FailedRescale",
			fmt.Sprintf("New size: %d; reason: %s; error: %v", d.Desired, d.Because, err)})
		conditions = with(conditions, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale",
			"the target's scale cannot be written: "+err.Error(), d.now())
		done.Status = d.status(d.old.DesiredReplicas, conditions)
		return done
	}
	conditions = with(conditions, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededRescale",
		fmt.Sprintf("the target was scaled to %d", d.Desired), d.now())
	done.Events = append(slices.Clip(done.Events), Event{corev1.EventTypeNormal, "SuccessfulRescale",
		fmt.Sprintf("New size: %d; reason: %s", d.Desired, d.Because)})
	done.Memory = d.Memory.Scaled(d.spec.Behavior, d.Current, d.Desired, d.At)
	switch {
	case !d.zeroGate:
		conditions = without(conditions, autoscalingv2.ScaledToZero)
	case d.Current > 0 && d.Desired == 0 && d.lowest == 0 && d.fromOutside:
		conditions = with(conditions, autoscalingv2.ScaledToZero, corev1.ConditionTrue, "ScaledToZero",
			"the autoscaler scaled the target to zero", d.now())
	default:
		conditions = with(conditions, autoscalingv2.ScaledToZero, corev1.ConditionFalse, "NotScaledToZero",
			"the autoscaler did not scale the target to zero", d.now())
	}
	done.Status = d.status(d.Desired, conditions)
	now := d.now()
	done.Status.LastScaleTime = &now
	return done
}

// SameStatus reports whether two statuses say the same, so that a write of one over
// the other can be left out. Quantities and times are compared by value.
func SameStatus(a, b *autoscalingv2.HorizontalPodAutoscalerStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}

func (d *Decision) now() metav1.Time { return metav1.NewTime(d.At) }

func (d *Decision) warn(reason, message string) {
	d.events = append(d.events, Event{corev1.EventTypeWarning, reason, message})
}

func (d *Decision) set(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string) {
	d.conditions = with(d.conditions, kind, status, reason, message, d.now())
}

func (d *Decision) unset(kind autoscalingv2.HorizontalPodAutoscalerConditionType) {
	d.conditions = without(d.conditions, kind)
}

// with sets a condition in its place, or adds it at the end. Its transition is now
// only if its status changed.
func with(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType,
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

func without(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) []autoscalingv2.HorizontalPodAutoscalerCondition {
	return slices.DeleteFunc(list, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
}
