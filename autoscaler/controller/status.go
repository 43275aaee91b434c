package controller

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// The limits of a status.
const (
	keepDecisions  = 10
	maxPods        = 16
	maxSentence    = 1024 // bytes
	maxPodSentence = 256
)

// statusUpdate is one decision about an Autoscaler. Its next status is built from it.
type statusUpdate struct {
	object       *scalingObject
	record       *decisionRecord
	completion   autoscaler.Completion
	old          *v1alpha1.AutoscalerStatus
	entry        *entry
	wrote        bool
	settings     *autoscaler.Settings
	scaleUnknown bool // the scale is not known
}

// nextStatus returns the status after the decision, without its sentences. fresh reports whether it
// must be written at once.
func (u *statusUpdate) nextStatus() (next *v1alpha1.AutoscalerStatus, fresh bool) {
	d, o := u.record.decision, u.object
	next = &v1alpha1.AutoscalerStatus{HorizontalPodAutoscalerStatus: *u.completion.Status.DeepCopy()}
	next.ObservedGeneration = &o.autoscaler.Generation
	if next.CurrentMetrics == nil {
		next.CurrentMetrics = []autoscalingv2.MetricStatus{}
	}
	dropAveragesOverZero(next.CurrentMetrics)
	now := metav1.NewTime(d.At)
	switch {
	case o.mode == decisionreport.DryRun:
		next.Conditions = autoscaler.RemoveCondition(next.Conditions, v1alpha1.ConditionConflict)
		next.Conditions = autoscaler.SetCondition(next.Conditions, v1alpha1.ConditionDryRun, corev1.ConditionTrue, "ModeIsDryRun", "the target is not changed; desiredReplicas is the count that it would get", now)
	case u.record.conflict != "":
		next.Conditions = autoscaler.RemoveCondition(next.Conditions, v1alpha1.ConditionDryRun)
		next.Conditions = autoscaler.SetCondition(next.Conditions, v1alpha1.ConditionConflict, corev1.ConditionTrue, "TargetIsTaken", u.record.conflict, now)
	default:
		next.Conditions = autoscaler.RemoveCondition(next.Conditions, v1alpha1.ConditionDryRun)
		if !u.scaleUnknown { // without a scale there was no search for conflicts
			next.Conditions = autoscaler.SetCondition(next.Conditions, v1alpha1.ConditionConflict, corev1.ConditionFalse, "TargetIsOwn", "no other autoscaler scales the target", now)
		}
	}
	for i := range next.Conditions {
		next.Conditions[i].Message = truncate(next.Conditions[i].Message, maxSentence)
	}
	next.Targets = targetsText(o.spec, next.CurrentMetrics)
	next.Memory = u.old.Memory
	if u.entry.memoryValid {
		next.Memory = statusMemory(u.completion.Memory, o.spec, u.settings, d.At)
		next.Memory.Target = targetName(u.entry.target)
	}
	next.Decisions = u.old.Decisions
	next.Explanation = u.old.Explanation
	made := u.decision()
	notable := !u.scaleUnknown && u.worthKeeping(made)
	if notable {
		next.Decisions = append([]v1alpha1.Decision{made}, next.Decisions...)
		next.Decisions = next.Decisions[:min(len(next.Decisions), keepDecisions)]
	}
	return next, notable || needsImmediateWrite(u.old, next)
}

// decision returns the decision in the form of the status.
func (u *statusUpdate) decision() v1alpha1.Decision {
	d := u.record.decision
	made := v1alpha1.Decision{Time: metav1.NewTime(d.At), Current: d.Current, Desired: d.Current, Written: u.wrote}
	if len(d.Steps) > 0 {
		made.Desired = d.Desired
	}
	for i := range d.Steps {
		if d.Steps[i].Kind == autoscaler.StepPropose {
			made.Recommendation = &d.Steps[i].To
		}
	}
	return made
}

// worthKeeping reports whether the status keeps a decision: it changes the count, or its result
// differs from the last one's. A decision is not kept only because the target has reached the
// requested count.
func (u *statusUpdate) worthKeeping(made v1alpha1.Decision) bool {
	if made.Written || len(u.old.Decisions) == 0 {
		return true
	}
	last := &u.old.Decisions[0]
	if (last.Recommendation == nil) != (made.Recommendation == nil) && made.Desired == made.Current {
		return true // metrics became available, or unavailable
	}
	if last.Written {
		return made.Desired != made.Current || made.Current != last.Desired
	}
	return made.Current != last.Current || made.Desired != last.Desired
}

// addSentences sets the sentences.
func (u *statusUpdate) addSentences(next *v1alpha1.AutoscalerStatus) {
	report := u.record.report()
	if len(next.Decisions) > 0 && next.Decisions[0].Reason == "" {
		next.Decisions = slices.Clone(next.Decisions)
		next.Decisions[0].Reason = truncate(report.Summary, maxPodSentence)
	}
	next.Explanation = statusExplanation(report)
}

// statusExplanation returns the part of a report that fits into a status. Pods without a number
// come first, in the order of the metrics.
func statusExplanation(report *decisionreport.DecisionReport) *v1alpha1.Explanation {
	e := &v1alpha1.Explanation{Time: metav1.NewTime(report.At), Summary: truncate(report.Summary, maxSentence)}
	for _, m := range report.Metrics {
		for _, p := range m.Pods {
			if p.Class == "Counted" {
				continue
			}
			if len(e.Pods) == maxPods {
				e.MorePods++
				continue
			}
			reason := p.Reason
			if p.Verdict != nil {
				reason = p.Verdict.Reason + ": " + p.Verdict.Message
			}
			e.Pods = append(e.Pods, v1alpha1.PodReason{Name: p.Name, Metric: m.Name, Class: p.Class, Reason: truncate(reason, maxPodSentence)})
		}
	}
	return e
}

// truncate shortens a sentence to a number of bytes without splitting a character.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "..."
	s = s[:limit-len(more)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + more
}

// needsImmediateWrite reports whether a status has another count, another rescale, or a condition
// with another status or reason. The write of such a status is not delayed.
func needsImmediateWrite(old, next *v1alpha1.AutoscalerStatus) bool {
	if old.ObservedGeneration == nil || *old.ObservedGeneration != *next.ObservedGeneration ||
		old.CurrentReplicas != next.CurrentReplicas || old.DesiredReplicas != next.DesiredReplicas ||
		!old.LastScaleTime.Equal(next.LastScaleTime) || len(old.Conditions) != len(next.Conditions) {
		return true
	}
	for _, c := range next.Conditions {
		i := slices.IndexFunc(old.Conditions, func(o autoscalingv2.HorizontalPodAutoscalerCondition) bool { return o.Type == c.Type })
		if i < 0 || old.Conditions[i].Status != c.Status || old.Conditions[i].Reason != c.Reason {
			return true
		}
	}
	return false
}

// sameValues reports whether two statuses differ only in times. It compares only the lowest and
// highest recommendations: those of an idle target are always equal.
func sameValues(old, next *v1alpha1.AutoscalerStatus) bool {
	a, b := old.DeepCopy(), next.DeepCopy()
	a.Explanation, b.Explanation = nil, nil
	rangeOf := func(s *v1alpha1.AutoscalerStatus) (low, high int32) {
		if s.Memory == nil || len(s.Memory.Recommendations) == 0 {
			return 0, 0
		}
		low, high = s.Memory.Recommendations[0].Min, s.Memory.Recommendations[0].Max
		for _, r := range s.Memory.Recommendations {
			low, high = min(low, r.Min), max(high, r.Max)
		}
		s.Memory.Recommendations = nil
		return low, high
	}
	lowA, highA := rangeOf(a)
	lowB, highB := rangeOf(b)
	return lowA == lowB && highA == highB && equality.Semantic.DeepEqual(a, b)
}

// targetsText returns the current and target values of the metrics, "cpu: 63%/50%, queue: 12/30",
// in the form that kubectl uses for a HorizontalPodAutoscaler.
func targetsText(spec *autoscalingv2.HorizontalPodAutoscalerSpec, current []autoscalingv2.MetricStatus) string {
	var list []string
	for i := range spec.Metrics {
		var now autoscalingv2.MetricValueStatus
		if i < len(current) {
			now = *currentOf(&current[i])
		}
		name, want := targetOf(&spec.Metrics[i])
		list = append(list, name+": "+currentOverTarget(&want, &now))
	}
	return strings.Join(list, ", ")
}

// targetOf returns a metric's name and target.
func targetOf(m *autoscalingv2.MetricSpec) (string, autoscalingv2.MetricTarget) {
	switch {
	case m.Resource != nil:
		return string(m.Resource.Name), m.Resource.Target
	case m.ContainerResource != nil:
		return m.ContainerResource.Container + "/" + string(m.ContainerResource.Name), m.ContainerResource.Target
	case m.Pods != nil:
		return m.Pods.Metric.Name, m.Pods.Target
	case m.Object != nil:
		return m.Object.Metric.Name, m.Object.Target
	case m.External != nil:
		return m.External.Metric.Name, m.External.Target
	}
	return "?", autoscalingv2.MetricTarget{}
}

func currentOf(m *autoscalingv2.MetricStatus) *autoscalingv2.MetricValueStatus {
	switch {
	case m.Resource != nil:
		return &m.Resource.Current
	case m.ContainerResource != nil:
		return &m.ContainerResource.Current
	case m.Pods != nil:
		return &m.Pods.Current
	case m.Object != nil:
		return &m.Object.Current
	case m.External != nil:
		return &m.External.Current
	}
	return &autoscalingv2.MetricValueStatus{}
}

// dropAveragesOverZero removes the averages over zero replicas. Kubernetes divides by zero there, and its
// status of an HPA has the result, the smallest integer.
func dropAveragesOverZero(current []autoscalingv2.MetricStatus) {
	for i := range current {
		if now := currentOf(&current[i]); isOverZero(now.AverageValue) {
			now.AverageValue = nil
		}
	}
}

func isOverZero(average *resource.Quantity) bool {
	return average != nil && average.MilliValue() == math.MinInt64
}

// currentOverTarget returns the current and the target value, "63%/50%", in the unit of the target.
func currentOverTarget(want *autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	const unknown = "<unknown>"
	quantity := func(now, want *resource.Quantity, suffix string) string {
		if now == nil || isOverZero(now) {
			return unknown + "/" + want.String() + suffix
		}
		return now.String() + "/" + want.String() + suffix
	}
	switch {
	case want.AverageUtilization != nil:
		current := unknown
		if now.AverageUtilization != nil {
			current = strconv.Itoa(int(*now.AverageUtilization)) + "%"
		}
		return current + "/" + strconv.Itoa(int(*want.AverageUtilization)) + "%"
	case want.AverageValue != nil:
		return quantity(now.AverageValue, want.AverageValue, " (avg)")
	case want.Value != nil:
		return quantity(now.Value, want.Value, "")
	}
	return unknown + "/?"
}

// statusTries is the number of attempts to write a status when others change the object at the same
// time.
const statusTries = 3

// writeStatus writes the status of an Autoscaler. On a conflict it repeats the write on the new
// object, because only the leader changes statuses.
func (c *Controller) writeStatus(ctx context.Context, o *scalingObject, status *v1alpha1.AutoscalerStatus) error {
	api := c.opts.Autoscalers.Autoscalers(o.namespace)
	a := o.autoscaler.DeepCopy()
	for try := 1; ; try++ {
		if !c.opts.IsLeader() {
			return fmt.Errorf("write the status of Autoscaler %s/%s: another replica leads now", o.namespace, o.name)
		}
		a.Status = *status.DeepCopy()
		_, err := api.UpdateStatus(ctx, a, metav1.UpdateOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) || try == statusTries {
			return fmt.Errorf("write the status of Autoscaler %s/%s: %w", o.namespace, o.name, err)
		}
		if a, err = api.Get(ctx, o.name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("read Autoscaler %s/%s again: %w", o.namespace, o.name, err)
		}
		if a.UID != o.uid {
			return fmt.Errorf("write the status of Autoscaler %s/%s: it is another one now", o.namespace, o.name)
		}
	}
}
