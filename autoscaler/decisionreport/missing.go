package decisionreport

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// severityOrder sorts causes, with the most severe first.
var severityOrder = map[string]int{metric.Broken.String(): 0, metric.Temporary.String(): 1, metric.None.String(): 2}

// missingCauses returns the reasons why metrics or pods have no number.
func (re *reporter) missingCauses() []MissingCause {
	var all []MissingCause
	for i := range re.Metrics {
		all = append(all, re.metricCauses(&re.Metrics[i])...)
	}
	slices.SortStableFunc(all, func(a, b MissingCause) int {
		return cmp.Or(cmp.Compare(severityOrder[a.Severity], severityOrder[b.Severity]), cmp.Compare(len(b.Pods), len(a.Pods)))
	})
	return all
}

// metricCauses returns the reasons why a metric, or pods in it, have no number.
func (re *reporter) metricCauses(m *autoscaler.MetricDecision) []MissingCause {
	ofPods := m.Type == autoscalingv2.ResourceMetricSourceType || m.Type == autoscalingv2.ContainerResourceMetricSourceType || m.Type == autoscalingv2.PodsMetricSourceType
	if m.Err != nil && re.Input != nil && re.Input.PodsErr == nil && len(re.Input.Pods) == 0 && (ofPods || errors.Is(m.Err, autoscaler.ErrNoPods)) {
		return []MissingCause{re.noPodsCause(m)}
	}
	var all []MissingCause
	explained := true
	if ofPods {
		all, explained = re.podCauses(m)
	}
	if m.Err == nil {
		return all
	}
	if c, ok := re.requestCause(m); ok {
		all = append([]MissingCause{c}, all...)
	}
	if len(all) == 0 || !explained {
		todo := advice[m.Type]
		if strings.HasPrefix(m.AnsweredBy, "adapter ") {
			todo = "Run `weir doctor`: it shows whether the adapter answers. If it does, look for the metric there."
		}
		all = append([]MissingCause{{Metric: m.Name, Reason: m.Reason, Severity: metric.Broken.String(), Message: errorText(m), Advice: todo}}, all...)
	}
	return all
}

// advice describes what to do about an error that has no other explanation.
var advice = map[autoscalingv2.MetricSourceType]string{
	autoscalingv2.ResourceMetricSourceType:          "Run `weir explain missing`: it lists what has no number, and why.",
	autoscalingv2.ContainerResourceMetricSourceType: "Check that the pods have a container of this name.",
	autoscalingv2.PodsMetricSourceType:              "Check that custom.metrics.k8s.io has the metric, under this name, for these pods.",
	autoscalingv2.ObjectMetricSourceType:            "Check that custom.metrics.k8s.io has the metric for the object that describedObject names.",
	autoscalingv2.ExternalMetricSourceType:          "Check that a rule defines the metric and that its selector matches a series: docs/external-metrics.md.",
}

// noPodsCause returns the cause for a target without pods.
func (re *reporter) noPodsCause(m *autoscaler.MetricDecision) MissingCause {
	selector := re.Input.Scale.Selector
	return MissingCause{
		Metric: m.Name, Reason: "NoPods", Severity: metric.Broken.String(), Message: fmt.Sprintf("no pod matches the target's selector %q", selector),
		Advice: fmt.Sprintf("Check that the target's pods exist and have these labels: `kubectl get pods -n %s -l '%s'`.", re.Object.Namespace, selector),
	}
}

// podCauses groups the pods without a counted sample by reason. explained is false if the metric
// could not be read and no verdict explains the missing sample of some pod. The error is then not a
// problem of the pods.
func (re *reporter) podCauses(m *autoscaler.MetricDecision) (all []MissingCause, explained bool) {
	explained = true
	// The advice has the name of its pod. Pods share a cause if their advice is otherwise the same.
	alike := func(c MissingCause, pod string) string { return strings.ReplaceAll(c.Advice, pod, "") }
	add := func(c MissingCause, pod string) {
		i := slices.IndexFunc(all, func(o MissingCause) bool { return o.Reason == c.Reason && alike(o, o.Pods[0]) == alike(c, pod) })
		if i < 0 {
			all, i = append(all, c), len(all)
		}
		all[i].Pods = append(all[i].Pods, pod)
	}
	for i := range m.Pods {
		p := &m.Pods[i]
		switch {
		case p.Class == autoscaler.Missing:
			// If no verdict names the pod, the pod is not the cause of the error.
			c, known := re.sampleCause(m, p.Pod)
			if known || !errors.Is(m.Err, autoscaler.ErrUnread) {
				add(c, p.Pod)
			} else {
				explained = false
			}
		case (p.Class == autoscaler.Unready || p.Class == autoscaler.Ignored) && m.Err != nil && m.Count == 0:
			// No pod was counted, and this is one of the reasons.
			add(MissingCause{Metric: m.Name, Reason: uncountedReasons[p.Reason], Severity: metric.Temporary.String(), Message: re.classReasonText(m, p), Advice: re.uncountedAdvice(p)}, p.Pod)
		}
	}
	return all, explained
}

// uncountedReasons are the reasons of pods that have a number, but are not counted.
var uncountedReasons = map[autoscaler.ClassReason]string{
	autoscaler.ReasonPending: "PodPending", autoscaler.ReasonNoCondition: "PodNotReady", autoscaler.ReasonStarting: "PodStarting",
	autoscaler.ReasonWindowTooEarly: "WindowTooEarly", autoscaler.ReasonNeverReady: "PodNeverReady",
	autoscaler.ReasonTerminating: "PodTerminating", autoscaler.ReasonFailed: "PodFailed",
}

// uncountedAdvice describes what to do about a pod that has a number, but is not counted.
func (re *reporter) uncountedAdvice(p *autoscaler.ClassifiedPod) string {
	describe := fmt.Sprintf("`kubectl describe pod -n %s %s`", re.Object.Namespace, p.Pod)
	switch p.Reason {
	case autoscaler.ReasonPending:
		return describe + " shows what it is waiting for: a node with room, a volume or an image."
	case autoscaler.ReasonNeverReady:
		return "See why its readiness probe fails: " + describe + "."
	}
	return ""
}

// sampleCause returns why a pod has no number.
func (re *reporter) sampleCause(m *autoscaler.MetricDecision, pod string) (_ MissingCause, known bool) {
	c := MissingCause{Metric: m.Name, Reason: "NoSample", Severity: metric.Broken.String(), Message: "the metrics API has no entry for it",
		Advice: fmt.Sprintf("Run `weir explain namespace %s` to see what is known about its pods.", re.Object.Namespace)}
	if re.Verdict == nil {
		return c, false
	}
	v, ok := re.Verdict(m.Index, pod)
	if !ok {
		return c, false
	}
	c.Reason, c.Message, c.Advice = v.Reason, v.Message, v.Advice
	if reason, ok := metric.ParseReason(v.Reason); ok {
		c.Severity = reason.Severity().String()
	}
	return c, true
}

// missingRequest is the reason for containers without a request.
const missingRequest = "MissingRequest"

// maxRequests is the number of containers without a request that a sentence names.
const maxRequests = 5

// requestCause returns the cause that names the containers without a request, if the utilization is
// a share of that request.
func (re *reporter) requestCause(m *autoscaler.MetricDecision) (MissingCause, bool) {
	spec := re.spec(m.Index)
	if re.Input == nil || spec == nil || !isUtilization(spec) {
		return MissingCause{}, false
	}
	resource, container := resourceOf(m, spec)
	var pods, lines []string
	for i := range re.Input.Pods {
		p, podLevel := &re.Input.Pods[i], re.settings().PodLevelResources
		_, err := autoscaler.RequestOf(p, container, resource, podLevel)
		if err == nil {
			continue
		}
		pods = append(pods, p.Name)
		if p.PodLevel && podLevel {
			lines = append(lines, err.Error())
			continue
		}
		named := containersWithoutRequest(p, container, resource)
		if len(named) == 0 {
			named = []string{err.Error()}
		}
		lines = append(lines, named...)
	}
	if len(lines) == 0 {
		return MissingCause{}, false
	}
	if more := len(lines) - maxRequests; more > 0 {
		lines = append(lines[:maxRequests], fmt.Sprintf("and %d more", more))
	}
	return MissingCause{
		Metric: m.Name, Reason: missingRequest, Severity: metric.Broken.String(), Message: strings.Join(lines, "; "), Pods: pods,
		Advice: fmt.Sprintf("A utilization is a share of the request: give every container a %s request, sidecars included. Or scale by an AverageValue, or by one container (ContainerResource).", resource),
	}, true
}

// containersWithoutRequest returns a sentence for each container of a pod, or for the named one, that
// has no request for a resource.
func containersWithoutRequest(p *autoscaler.PodInput, container string, resource corev1.ResourceName) (lines []string) {
	for i := range p.Containers {
		c := &p.Containers[i]
		counts := c.Role == cluster.Regular || c.Role == cluster.Sidecar
		if counts && (container == "" || container == c.Name) && !c.Requests.Amount(resource).Set {
			lines = append(lines, fmt.Sprintf("pod %s: container %s has no %s request", p.Name, c.Name, resource))
		}
	}
	return lines
}

// isUtilization reports whether a metric's target is a share of requests.
func isUtilization(spec *autoscalingv2.MetricSpec) bool {
	return spec.Resource != nil && spec.Resource.Target.AverageUtilization != nil || spec.ContainerResource != nil && spec.ContainerResource.Target.AverageUtilization != nil
}
