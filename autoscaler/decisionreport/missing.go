package decisionreport

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// severities order causes, the most harmful first.
var severities = map[string]int{metric.Broken.String(): 0, metric.Temporary.String(): 1, metric.None.String(): 2}

// missing says what the metrics lack and whose fault that is.
func (t *teller) missing() []Cause {
	var all []Cause
	for i := range t.Metrics {
		all = append(all, t.lacking(&t.Metrics[i])...)
	}
	slices.SortStableFunc(all, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(severities[a.Severity], severities[b.Severity]), cmp.Compare(len(b.Pods), len(a.Pods)))
	})
	return all
}

// lacking says what one metric lacks.
func (t *teller) lacking(m *autoscaler.MetricDecision) []Cause {
	ofPods := m.Type == autoscalingv2.ResourceMetricSourceType || m.Type == autoscalingv2.ContainerResourceMetricSourceType || m.Type == autoscalingv2.PodsMetricSourceType
	if m.Err != nil && t.Input != nil && t.Input.PodsErr == nil && len(t.Input.Pods) == 0 && (ofPods || errors.Is(m.Err, autoscaler.ErrNoPods)) {
		return []Cause{t.noPods(m)}
	}
	var all []Cause
	explained := true
	if ofPods {
		all, explained = t.numberless(m)
	}
	if m.Err == nil {
		return all
	}
	if c, ok := t.requests(m); ok {
		all = append([]Cause{c}, all...)
	}
	if len(all) == 0 || !explained {
		all = append([]Cause{{Metric: m.Name, Reason: m.Reason, Severity: metric.Broken.String(), Message: wrong(m), Advice: advice[m.Type]}}, all...)
	}
	return all
}

// advice is what to do about an error that nothing else explains.
var advice = map[autoscalingv2.MetricSourceType]string{
	autoscalingv2.ResourceMetricSourceType:          "`weir explain missing` says what has no number, and why.",
	autoscalingv2.ContainerResourceMetricSourceType: "See whether the container's name is that of a container of the pods.",
	autoscalingv2.PodsMetricSourceType:              "See whether custom.metrics.k8s.io has the metric, under this name, for these pods.",
	autoscalingv2.ObjectMetricSourceType:            "See whether custom.metrics.k8s.io has the metric for the object that describedObject names.",
	autoscalingv2.ExternalMetricSourceType:          "See whether a rule gives the metric, and its selector picks a series: docs/external-metrics.md.",
}

// noPods says that a target has none.
func (t *teller) noPods(m *autoscaler.MetricDecision) Cause {
	selector := t.Input.Scale.Selector
	return Cause{
		Metric: m.Name, Reason: "NoPods", Severity: metric.Broken.String(), Message: fmt.Sprintf("no pod matches the target's selector %q", selector),
		Advice: fmt.Sprintf("See whether the target's pods exist and carry these labels: `kubectl get pods -n %s -l '%s'`.", t.Object.Namespace, selector),
	}
}

// numberless groups the pods without a sample that counts by what is said of them.
// explained is whether that leaves no pod of which nothing is known, if the metric
// could not be read: where it does, the error is not the pods'.
func (t *teller) numberless(m *autoscaler.MetricDecision) (all []Cause, explained bool) {
	explained = true
	add := func(c Cause, pod string) {
		i := slices.IndexFunc(all, func(o Cause) bool { return o.Reason == c.Reason && o.Advice == c.Advice })
		if i < 0 {
			all, i = append(all, c), len(all)
		}
		all[i].Pods = append(all[i].Pods, pod)
	}
	for i := range m.Pods {
		p := &m.Pods[i]
		switch {
		case p.Class == autoscaler.Missing:
			// Where nothing is known against a pod, an error is not its fault.
			c, known := t.verdict(m, p.Pod)
			if known || !errors.Is(m.Err, autoscaler.ErrUnread) {
				add(c, p.Pod)
			} else {
				explained = false
			}
		case (p.Class == autoscaler.Unready || p.Class == autoscaler.Ignored) && m.Err != nil && m.Count == 0:
			// Nothing counted, and this is one of the reasons.
			add(Cause{Metric: m.Name, Reason: uncounted[p.Why], Severity: metric.Temporary.String(), Message: t.why(m, p), Advice: uncountedAdvice[p.Why]}, p.Pod)
		}
	}
	return all, explained
}

// uncounted are what a cause is called that is no want of a number.
var uncounted = map[autoscaler.Why]string{
	autoscaler.WhyPending: "PodPending", autoscaler.WhyNoCondition: "PodNotReady", autoscaler.WhyStarting: "PodStarting",
	autoscaler.WhyWindowTooEarly: "WindowTooEarly", autoscaler.WhyNeverReady: "PodNeverReady",
	autoscaler.WhyTerminating: "PodTerminating", autoscaler.WhyFailed: "PodFailed",
}

var uncountedAdvice = map[autoscaler.Why]string{
	autoscaler.WhyPending:    "`kubectl describe pod` tells what it waits for: a node with room, a volume or an image.",
	autoscaler.WhyNeverReady: "See why its readiness probe fails: `kubectl describe pod`.",
}

// verdict says why a pod has no number.
func (t *teller) verdict(m *autoscaler.MetricDecision, pod string) (_ Cause, known bool) {
	c := Cause{Metric: m.Name, Reason: "NoSample", Severity: metric.Broken.String(), Message: "the metrics API does not mention it",
		Advice: fmt.Sprintf("`weir explain namespace %s` tells what is known of its pods.", t.Object.Namespace)}
	if t.Verdict == nil {
		return c, false
	}
	v, ok := t.Verdict(m.Index, pod)
	if !ok {
		return c, false
	}
	c.Reason, c.Message, c.Advice = v.Reason, v.Message, v.Advice
	if reason, ok := metric.ParseReason(v.Reason); ok {
		c.Severity = reason.Severity().String()
	}
	return c, true
}

// missingRequest is the reason where containers do not say what they request.
const missingRequest = "MissingRequest"

// mostRequests is how many containers without a request a sentence names.
const mostRequests = 5

// requests names the containers that lack the request a utilization is a share of.
func (t *teller) requests(m *autoscaler.MetricDecision) (Cause, bool) {
	spec := t.spec(m.Index)
	if t.Input == nil || spec == nil || !utilization(spec) {
		return Cause{}, false
	}
	resource := resourceOf(m, spec)
	amount := func(r *autoscaler.Requests) autoscaler.Amount {
		if unitOf(resource) == ofBytes {
			return r.Memory
		}
		return r.CPU
	}
	container := ""
	if spec.ContainerResource != nil {
		container = spec.ContainerResource.Container
	}
	var pods, lines []string
	for i := range t.Input.Pods {
		p := t.Input.Pods[i]
		p.PodLevel = p.PodLevel && t.settings().PodLevelResources
		_, err := autoscaler.RequestOf(&p, container, resource)
		if err == nil {
			continue
		}
		pods = append(pods, p.Name)
		said := len(lines)
		for j := range p.Containers {
			c := &p.Containers[j]
			counts := c.Role == cluster.Regular || c.Role == cluster.Sidecar
			if counts && !p.PodLevel && (container == "" || container == c.Name) && !amount(&c.Requests).Set {
				lines = append(lines, fmt.Sprintf("pod %s: container %s has no %s request", p.Name, c.Name, resource))
			}
		}
		if len(lines) == said {
			lines = append(lines, err.Error())
		}
	}
	if len(lines) == 0 {
		return Cause{}, false
	}
	if more := len(lines) - mostRequests; more > 0 {
		lines = append(lines[:mostRequests], fmt.Sprintf("and %d more", more))
	}
	return Cause{
		Metric: m.Name, Reason: missingRequest, Severity: metric.Broken.String(), Message: strings.Join(lines, "; "), Pods: pods,
		Advice: fmt.Sprintf("A utilization is a share of what is requested: give every container a %s request, sidecars included; or scale by an AverageValue, or by one container (ContainerResource).", resource),
	}, true
}

// utilization reports whether a metric is compared as a share of requests.
func utilization(spec *autoscalingv2.MetricSpec) bool {
	return spec.Resource != nil && spec.Resource.Target.AverageUtilization != nil || spec.ContainerResource != nil && spec.ContainerResource.Target.AverageUtilization != nil
}
