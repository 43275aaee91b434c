package decisionreport

import (
	"fmt"
	"math"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/autoscaler"
)

// scope is what a metric's number is of.
type scope uint8

// The scopes.
const (
	perPod     scope = iota // the average of the pods' samples
	perReplica              // a value divided by the count
	whole                   // a value
)

// shape is how a metric's numbers are to be read.
type shape struct {
	unit  unit
	scope scope
}

// shapeOf returns how a metric's numbers are to be read. Without a specification its
// name has to tell.
func shapeOf(m *autoscaler.MetricDecision, spec *autoscalingv2.MetricSpec) shape {
	var s shape
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType:
		s.unit = unitOf(resourceOf(m, spec))
	case autoscalingv2.ObjectMetricSourceType, autoscalingv2.ExternalMetricSourceType:
		s.scope = whole
		if spec != nil && (spec.Object != nil && spec.Object.Target.AverageValue != nil && spec.Object.Target.Type == autoscalingv2.AverageValueMetricType ||
			spec.External != nil && spec.External.Target.AverageValue != nil) {
			s.scope = perReplica
		}
	}
	return s
}

func (t *teller) shape(m *autoscaler.MetricDecision) shape { return shapeOf(m, t.spec(m.Index)) }

// resourceOf returns the resource of a metric of resources.
func resourceOf(m *autoscaler.MetricDecision, spec *autoscalingv2.MetricSpec) corev1.ResourceName {
	switch {
	case spec != nil && spec.Resource != nil:
		return spec.Resource.Name
	case spec != nil && spec.ContainerResource != nil:
		return spec.ContainerResource.Name
	}
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if len(m.Name) >= len(r) && m.Name[:len(r)] == string(r) {
			return r
		}
	}
	return ""
}

var outcomes = map[autoscaler.Outcome]string{
	autoscaler.OutcomeNone: "Failed", autoscaler.Scaled: "Scaled", autoscaler.WithinTolerance: "WithinTolerance",
	autoscaler.WouldTurn: "WouldTurn", autoscaler.FromZero: "FromZero",
}

// metric tells what one metric asks for.
func (t *teller) metric(m *autoscaler.MetricDecision, decides bool) Metric {
	s := t.shape(m)
	out := Metric{
		Name: m.Name, Type: string(m.Type), Decides: decides, Reason: m.Reason, Outcome: outcomes[m.Outcome],
		ToleranceDown: m.ToleranceDown, ToleranceUp: m.ToleranceUp, MeasuredAt: m.At.UTC(), Target: t.target(m, s),
	}
	if m.Err != nil {
		out.Error, out.Outcome = wrong(m), outcomes[autoscaler.OutcomeNone]
	} else {
		out.Proposal, out.Usage, out.Count = &m.Proposal, s.unit.quantity(m.Usage), m.Count
		if m.Percent {
			out.Usage = fmt.Sprintf("%d%%", m.Utilization)
		}
		if s.scope == perReplica && m.Count == 0 {
			out.Usage = "" // a share of nobody's
		}
		out.Ratio = finite(m.Ratio)
		out.Arithmetic = t.arithmetic(m, s)
		if m.Recounted {
			out.Recount = &Recount{Ratio: m.Ratio2, Count: m.Count2, Arithmetic: t.recount(m, s)}
		}
	}
	for i := range m.Pods {
		out.Pods = append(out.Pods, t.pod(m, s, &m.Pods[i]))
	}
	return out
}

// wrong is a metric's error without its name, which stands beside it.
func wrong(m *autoscaler.MetricDecision) string {
	return strings.TrimPrefix(m.Err.Error(), m.Name+": ")
}

// target writes what a metric is compared with; empty if there is none.
func (t *teller) target(m *autoscaler.MetricDecision, s shape) string {
	switch {
	case m.Percent:
		return fmt.Sprintf("%d%%", m.Target)
	case m.Target == 0:
		return ""
	}
	return s.unit.quantity(m.Target)
}

// finite returns a number that JSON has; nil for infinity, as of no replicas.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// level says where a metric is and where it should be: "cpu is at 80% of its
// request and the target is 50%".
func (t *teller) level(m *autoscaler.MetricDecision) string {
	s := t.shape(m)
	if m.Percent {
		return fmt.Sprintf("%s is at %d%% of its request and the target is %d%%", m.Name, m.Utilization, m.Target)
	}
	switch {
	case s.scope == perReplica && m.Total == math.MaxInt64:
		return fmt.Sprintf("%s is at less than nothing, or at more than can be counted, which Kubernetes takes for the same", m.Name)
	case s.scope == perReplica && m.Count == 0:
		return fmt.Sprintf("%s is at %s and the target is %s a replica", m.Name, s.unit.words(m.Total), s.unit.words(m.Target))
	}
	of := map[scope]string{perPod: " a pod", perReplica: " a replica"}[s.scope]
	return fmt.Sprintf("%s is at %s%s and the target is %s", m.Name, s.unit.words(m.Usage), of, s.unit.words(m.Target))
}

// pod tells how a pod was counted.
func (t *teller) pod(m *autoscaler.MetricDecision, s shape, p *autoscaler.PodCase) Pod {
	out := Pod{Name: p.Pod, Class: classes[p.Class], Why: t.why(m, p)}
	if p.HasSample {
		out.Usage, out.At = s.unit.quantity(p.Usage), p.At().UTC()
		if p.Window > 0 {
			out.Window = p.Window.String()
		}
	}
	if m.Percent && p.Request > 0 {
		out.Request = s.unit.quantity(p.Request)
	}
	if p.HasAssumed {
		out.Assumed = s.unit.quantity(p.Assumed)
	}
	if p.Class == autoscaler.Missing && t.Verdict != nil {
		if v, ok := t.Verdict(m.Index, p.Pod); ok {
			out.Verdict = &v
		}
	}
	return out
}
