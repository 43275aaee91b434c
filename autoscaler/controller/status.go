package controller

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// What a status has room for.
const (
	keepDecisions  = 10
	maxPods        = 16
	maxSentence    = 1024 // bytes
	maxPodSentence = 256
)

// round is one decision about an Autoscaler, from which its status follows.
type round struct {
	object   *object
	told     *told
	done     autoscaler.Done
	old      *v1alpha1.AutoscalerStatus
	conflict string
	wrote    bool
	settings *autoscaler.Settings
	blind    bool // the scale is not known
	begun    bool // there is a memory, of target
	target   target.ID
}

// status returns the status after the round, without its sentences, and whether it
// says anything new.
func (r *round) status() (next *v1alpha1.AutoscalerStatus, fresh bool) {
	d, o := r.told.decision, r.object
	next = &v1alpha1.AutoscalerStatus{HorizontalPodAutoscalerStatus: *r.done.Status.DeepCopy()}
	next.ObservedGeneration = &o.scaler.Generation
	if next.CurrentMetrics == nil {
		next.CurrentMetrics = []autoscalingv2.MetricStatus{}
	}
	now := metav1.NewTime(d.At)
	switch {
	case o.mode == decisionreport.DryRun:
		next.Conditions = unset(next.Conditions, v1alpha1.ConditionConflict)
		next.Conditions = set(next.Conditions, v1alpha1.ConditionDryRun, corev1.ConditionTrue, "ModeIsDryRun", "the target is not changed; desiredReplicas is what it would be changed to", now)
	case r.conflict != "":
		next.Conditions = unset(next.Conditions, v1alpha1.ConditionDryRun)
		next.Conditions = set(next.Conditions, v1alpha1.ConditionConflict, corev1.ConditionTrue, "TargetIsTaken", r.conflict, now)
	default:
		next.Conditions = unset(next.Conditions, v1alpha1.ConditionDryRun)
		if !r.blind { // or else nobody looked
			next.Conditions = set(next.Conditions, v1alpha1.ConditionConflict, corev1.ConditionFalse, "TargetIsOwn", "no other autoscaler scales the target", now)
		}
	}
	for i := range next.Conditions {
		next.Conditions[i].Message = clip(next.Conditions[i].Message, maxSentence)
	}
	next.Targets = targetsText(o.spec, next.CurrentMetrics)
	next.Memory = r.old.Memory
	if r.begun {
		next.Memory = noted(r.done.Memory, o.spec, r.settings, d.At)
		next.Memory.Target = targetName(r.target)
	}
	next.Decisions = r.old.Decisions
	next.Explanation = r.old.Explanation
	made := r.decision()
	notable := !r.blind && r.notable(made)
	if notable {
		next.Decisions = append([]v1alpha1.Decision{made}, next.Decisions...)
		next.Decisions = next.Decisions[:min(len(next.Decisions), keepDecisions)]
	}
	return next, notable || news(r.old, next)
}

// decision returns the round as the status keeps it.
func (r *round) decision() v1alpha1.Decision {
	d := r.told.decision
	made := v1alpha1.Decision{Time: metav1.NewTime(d.At), Current: d.Current, Desired: d.Current, Written: r.wrote}
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

// notable reports whether a decision is worth keeping: it does something, or what
// it would do is not what the last one would have. That a count which was asked for
// is now there is not.
func (r *round) notable(made v1alpha1.Decision) bool {
	if made.Written || len(r.old.Decisions) == 0 {
		return true
	}
	last := &r.old.Decisions[0]
	if (last.Recommendation == nil) != (made.Recommendation == nil) && made.Desired == made.Current {
		return true // metrics came, or went
	}
	if last.Written {
		return made.Desired != made.Current || made.Current != last.Desired
	}
	return made.Current != last.Current || made.Desired != last.Desired
}

// explain fills the sentences in.
func (r *round) explain(next *v1alpha1.AutoscalerStatus) {
	tell := r.told.tell()
	if len(next.Decisions) > 0 && next.Decisions[0].Reason == "" {
		next.Decisions = slices.Clone(next.Decisions)
		next.Decisions[0].Reason = clip(tell.Summary, maxPodSentence)
	}
	next.Explanation = explanation(tell)
}

// explanation returns as much of a report as there is room for: pods that lack
// something first, in the order of the metrics.
func explanation(tell *decisionreport.Report) *v1alpha1.Explanation {
	e := &v1alpha1.Explanation{Time: metav1.NewTime(tell.At), Summary: clip(tell.Summary, maxSentence)}
	for _, m := range tell.Metrics {
		for _, p := range m.Pods {
			if p.Class == "Counted" {
				continue
			}
			if len(e.Pods) == maxPods {
				e.MorePods++
				continue
			}
			why := p.Why
			if p.Verdict != nil {
				why = p.Verdict.Reason + ": " + p.Verdict.Message
			}
			e.Pods = append(e.Pods, v1alpha1.PodReason{Name: p.Name, Metric: m.Name, Class: p.Class, Reason: clip(why, maxPodSentence)})
		}
	}
	return e
}

// clip shortens a sentence to a number of bytes, between letters.
func clip(s string, limit int) string {
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

// news reports whether a status says something that should not wait: another
// count, a condition's status or reason, a change of what is remembered to be made.
func news(old, next *v1alpha1.AutoscalerStatus) bool {
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

// sameValues reports whether two statuses differ in nothing but when they were made.
// Recommendations are compared by how far they reach: those of an idle target are
// the same for ever.
func sameValues(old, next *v1alpha1.AutoscalerStatus) bool {
	a, b := old.DeepCopy(), next.DeepCopy()
	a.Explanation, b.Explanation = nil, nil
	reach := func(s *v1alpha1.AutoscalerStatus) (low, high int32) {
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
	lowA, highA := reach(a)
	lowB, highB := reach(b)
	return lowA == lowB && highA == highB && equality.Semantic.DeepEqual(a, b)
}

// holds reports whether a condition is True.
func holds(s *v1alpha1.AutoscalerStatus, kind autoscalingv2.HorizontalPodAutoscalerConditionType) bool {
	return slices.ContainsFunc(s.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func set(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType,
	status corev1.ConditionStatus, reason, message string, now metav1.Time) []autoscalingv2.HorizontalPodAutoscalerCondition {
	c := autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: now}
	i := slices.IndexFunc(list, func(o autoscalingv2.HorizontalPodAutoscalerCondition) bool { return o.Type == kind })
	if i < 0 {
		return append(list, c)
	}
	if list[i].Status == status {
		c.LastTransitionTime = list[i].LastTransitionTime
	}
	list[i] = c
	return list
}

func unset(list []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) []autoscalingv2.HorizontalPodAutoscalerCondition {
	return slices.DeleteFunc(list, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
}

// targetsText returns what metrics are and should be, "cpu: 63%/50%, queue: 12/30",
// as kubectl shows them of a HorizontalPodAutoscaler.
func targetsText(spec *autoscalingv2.HorizontalPodAutoscalerSpec, current []autoscalingv2.MetricStatus) string {
	var list []string
	for i := range spec.Metrics {
		var now autoscalingv2.MetricValueStatus
		if i < len(current) {
			now = currentOf(&current[i])
		}
		name, want := targetOf(&spec.Metrics[i])
		list = append(list, name+": "+pair(&want, &now))
	}
	return strings.Join(list, ", ")
}

// targetOf returns what a metric is called and what is aimed at.
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

func currentOf(m *autoscalingv2.MetricStatus) autoscalingv2.MetricValueStatus {
	switch {
	case m.Resource != nil:
		return m.Resource.Current
	case m.ContainerResource != nil:
		return m.ContainerResource.Current
	case m.Pods != nil:
		return m.Pods.Current
	case m.Object != nil:
		return m.Object.Current
	case m.External != nil:
		return m.External.Current
	}
	return autoscalingv2.MetricValueStatus{}
}

// pair returns "63%/50%": what is, in the unit of what is wanted.
func pair(want *autoscalingv2.MetricTarget, now *autoscalingv2.MetricValueStatus) string {
	const unknown = "<unknown>"
	quantity := func(now, want *resource.Quantity, suffix string) string {
		if now == nil {
			return unknown + "/" + want.String() + suffix
		}
		return now.String() + "/" + want.String() + suffix
	}
	switch {
	case want.AverageUtilization != nil:
		is := unknown
		if now.AverageUtilization != nil {
			is = strconv.Itoa(int(*now.AverageUtilization)) + "%"
		}
		return is + "/" + strconv.Itoa(int(*want.AverageUtilization)) + "%"
	case want.AverageValue != nil:
		return quantity(now.AverageValue, want.AverageValue, " (avg)")
	case want.Value != nil:
		return quantity(now.Value, want.Value, "")
	}
	return unknown + "/?"
}
