package decisionreport

import (
	"fmt"
	"math"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// valueScope describes what a metric's number describes.
type valueScope uint8

// The scopes.
const (
	perPod     valueScope = iota // the average of the pods' samples
	perReplica                   // a value divided by the count
	wholeValue                   // the value itself
)

// metricFormat describes how to format a metric's numbers.
type metricFormat struct {
	unit  unit
	scope valueScope
}

// format returns how to format a metric's numbers. Without a specification it uses the metric's
// name.
func (re *reporter) format(m *autoscaler.MetricDecision) (s metricFormat) {
	spec := re.spec(m.Index)
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType:
		resource, _ := resourceOf(m, spec)
		s.unit = unitOf(resource)
	case autoscalingv2.ObjectMetricSourceType, autoscalingv2.ExternalMetricSourceType:
		s.scope = wholeValue
		if spec != nil && (spec.Object != nil && spec.Object.Target.AverageValue != nil && spec.Object.Target.Type == autoscalingv2.AverageValueMetricType ||
			spec.External != nil && spec.External.Target.AverageValue != nil) {
			s.scope = perReplica
		}
	}
	return s
}

// resourceOf returns the resource of a resource metric, and its container, which is empty for whole
// pods.
func resourceOf(m *autoscaler.MetricDecision, spec *autoscalingv2.MetricSpec) (name corev1.ResourceName, container string) {
	switch {
	case spec != nil && spec.Resource != nil:
		return spec.Resource.Name, ""
	case spec != nil && spec.ContainerResource != nil:
		return spec.ContainerResource.Name, spec.ContainerResource.Container
	}
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if strings.HasPrefix(m.Name, string(r)) {
			return r, ""
		}
	}
	return "", ""
}

// metricReport returns the report of one metric.
func (re *reporter) metricReport(m *autoscaler.MetricDecision, decides bool) MetricReport {
	s := re.format(m)
	out := MetricReport{
		Name: m.Name, Type: string(m.Type), Decides: decides, Reason: m.Reason, Outcome: m.Outcome.String(),
		ToleranceDown: m.ToleranceDown, ToleranceUp: m.ToleranceUp, MeasuredAt: m.At.UTC(), AnsweredBy: m.AnsweredBy, Target: re.targetText(m, s),
	}
	if m.Err != nil {
		out.Error, out.Outcome = errorText(m), "Failed"
	} else {
		out.Proposal, out.Usage, out.Count = &m.Proposal, s.unit.exact(m.Usage), m.Count
		if m.Percent {
			out.Usage = fmt.Sprintf("%d%%", m.Utilization)
		}
		if s.scope == perReplica && m.Count == 0 {
			out.Usage = "" // there is no replica to divide by
		}
		out.Ratio = finite(m.Ratio)
		out.Arithmetic = re.arithmeticText(m, s)
		if m.Recounted {
			out.Recount = &Recount{Ratio: m.RecountedRatio, Count: m.RecountedPods, Arithmetic: re.recountText(m, s)}
		}
	}
	for i := range m.Pods {
		out.Pods = append(out.Pods, re.podReport(m, s, &m.Pods[i]))
	}
	return out
}

// errorText returns a metric's error without the name of the metric.
func errorText(m *autoscaler.MetricDecision) string {
	return strings.TrimPrefix(m.Err.Error(), m.Name+": ")
}

// targetText returns a metric's target; empty if there is none.
func (re *reporter) targetText(m *autoscaler.MetricDecision, s metricFormat) string {
	switch {
	case m.Percent:
		return fmt.Sprintf("%d%%", m.Target)
	case m.Target == 0:
		return ""
	}
	return s.unit.exact(m.Target)
}

// finite returns v, or nil for infinity and NaN, which JSON cannot represent.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// levelText returns the current value and the target: "cpu is at 80% of its request and the target
// is 50%".
func (re *reporter) levelText(m *autoscaler.MetricDecision) string {
	s := re.format(m)
	if m.Percent {
		return fmt.Sprintf("%s is at %d%% of its request and the target is %d%%", m.Name, m.Utilization, m.Target)
	}
	switch {
	case s.scope == perReplica && m.Total == math.MaxInt64:
		return fmt.Sprintf("the sum of %s is negative or too large, and Kubernetes treats both as too large", m.Name)
	case s.scope == perReplica && m.Count == 0:
		return fmt.Sprintf("%s is at %s and the target is %s a replica", m.Name, s.unit.display(m.Total), s.unit.display(m.Target))
	}
	scope := map[valueScope]string{perPod: " a pod", perReplica: " a replica"}[s.scope]
	return fmt.Sprintf("%s is at %s%s and the target is %s", m.Name, s.unit.display(m.Usage), scope, s.unit.display(m.Target))
}

// podReport returns the report of a pod.
func (re *reporter) podReport(m *autoscaler.MetricDecision, s metricFormat, p *autoscaler.ClassifiedPod) PodReport {
	out := PodReport{Name: p.Pod, Class: p.Class.String(), Reason: re.classReasonText(m, p)}
	if p.HasSample {
		out.Usage, out.MeasuredAt = s.unit.exact(p.Usage), p.At().UTC()
		if p.Window > 0 {
			out.Window = p.Window.String()
		}
	}
	if request := re.requestOf(m, p); request > 0 {
		out.Request = s.unit.exact(request)
	}
	if p.HasAssumed {
		out.Assumed = s.unit.exact(p.Assumed)
	}
	if p.Class == autoscaler.Missing && re.Verdict != nil {
		if v, ok := re.Verdict(m.Index, p.Pod); ok {
			out.Verdict = &v
		}
	}
	return out
}

// requestOf returns the request of a pod for the metric, or 0 if there is none. A decision has requests only
// if it needed them.
func (re *reporter) requestOf(m *autoscaler.MetricDecision, p *autoscaler.ClassifiedPod) int64 {
	spec, pod := re.spec(m.Index), re.pods[p.Pod]
	if p.Request > 0 || spec == nil || pod == nil {
		return p.Request
	}
	resource, container := resourceOf(m, spec)
	request, err := autoscaler.RequestOf(pod, container, resource, re.settings().PodLevelResources)
	if err != nil {
		return 0
	}
	return request
}

var classReasonTexts = map[autoscaler.ClassReason]string{
	autoscaler.ReasonReady:          "",
	autoscaler.ReasonTerminating:    "it is being deleted",
	autoscaler.ReasonFailed:         "its phase is Failed",
	autoscaler.ReasonPending:        "its phase is Pending",
	autoscaler.ReasonNoSample:       "no number",
	autoscaler.ReasonNoCondition:    "it has no Ready condition, or no start time",
	autoscaler.ReasonStarting:       "not ready in its CPU initialization period",
	autoscaler.ReasonWindowTooEarly: "in its CPU initialization period, and the window began before it was ready",
	autoscaler.ReasonNeverReady:     "not ready, and never was",
	autoscaler.ReasonNotRunning:     "it is not Running",
	autoscaler.ReasonNotReady:       "it is not Ready",
	autoscaler.ReasonNotInTarget:    "the target does not own this pod",
}

// classReasonText explains why a pod is in its class.
func (re *reporter) classReasonText(m *autoscaler.MetricDecision, p *autoscaler.ClassifiedPod) string {
	text := classReasonTexts[p.Reason]
	if pod := re.pods[p.Pod]; pod != nil && !pod.Started.IsZero() {
		switch p.Reason {
		case autoscaler.ReasonStarting, autoscaler.ReasonWindowTooEarly:
			text += fmt.Sprintf(" (until %s)", humanize.Clock(pod.Started.Add(re.settings().CPUInitialization), re.At))
		}
	}
	if p.Reason == autoscaler.ReasonNoSample && re.Verdict != nil {
		if v, ok := re.Verdict(m.Index, p.Pod); ok {
			text = v.Reason
			if v.Message != "" {
				text += ": " + v.Message
			}
		}
	}
	return text
}

// settings returns the settings of the decision, or the defaults.
func (re *reporter) settings() autoscaler.Settings {
	if re.Input != nil && re.Input.Settings != nil {
		return *re.Input.Settings
	}
	return autoscaler.DefaultSettings()
}
