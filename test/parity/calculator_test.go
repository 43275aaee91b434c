package parity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

	"github.com/weir-metrics/weir/autoscaler"
)

// TestCalculator compares calls of upstream's ReplicaCalculator with weir's
// proposal for one metric.
func TestCalculator(t *testing.T) {
	up := newUpstream(t.Context())
	run(t, func(t *testing.T, number uint64, gates autoscaler.Settings, seen coverage) (difference string) {
		synctest.Test(t, func(*testing.T) {
			c := newCall(newRandom(*seed, number), time.Now(), gates)
			again := func(c *call) string { return guarded(func() string { return c.difference(up, coverage{}) }) }
			if difference = guarded(func() string { return c.difference(up, seen) }); difference == "" {
				return
			}
			c = shrink(c, func(c *call) bool { return again(c) != "" })
			difference = fmt.Sprintf("%s\n%s", again(c), c)
		})
		return difference
	}, calculatorBranches)
}

// proposal is the result of a call.
type proposal struct {
	Replicas    int32
	Utilization int32
	Usage       int64
	At          time.Time
	Err         error
}

func (p proposal) String() string {
	if p.Err != nil {
		return "error: " + p.Err.Error()
	}
	return fmt.Sprintf("%d replicas, usage %d, %d%%, measured %s", p.Replicas, p.Usage, p.Utilization, p.At.Format(time.StampMilli))
}

// tolerances returns the tolerances of the call.
func (c *call) tolerances() tolerances {
	t := tolerances{down: c.Config.Tolerance, up: c.Config.Tolerance}
	if c.Behavior != nil && c.Config.ConfigurableTolerance {
		if q := c.Behavior.ScaleDown.Tolerance; q != nil {
			t.down = q.AsApproximateFloat64()
		}
		if q := c.Behavior.ScaleUp.Tolerance; q != nil {
			t.up = q.AsApproximateFloat64()
		}
	}
	return t
}

// upstream makes the call with upstream's code, and returns the name of the
// method.
func (c *call) upstream(u *upstream) (method string, p proposal) {
	u.setGates(c.Config.Settings)
	u.see(&c.Input)
	calc, within, selector, ctx := u.calculator(c.Config), c.tolerances().upstream(), parse(c.Selector), context.Background()
	ofResource := func(kind string, name corev1.ResourceName, container string, t autoscalingv2.MetricTarget) {
		switch {
		case t.AverageValue != nil:
			method = kind + "AverageValue"
			p.Replicas, p.Usage, p.At, p.Err = calc.GetRawResourceReplicas(ctx, c.Current, t.AverageValue.MilliValue(), name, within, namespace, selector, container)
		case t.AverageUtilization != nil:
			method = kind + "Utilization"
			p.Replicas, p.Utilization, p.Usage, p.At, p.Err = calc.GetResourceReplicas(ctx, c.Current, *t.AverageUtilization, name, within, namespace, selector, container)
		default:
			method, p.Err = kind+"WithoutTarget", errAPI
		}
	}
	metricSelector := func(id autoscalingv2.MetricIdentifier) labels.Selector {
		s, err := metav1.LabelSelectorAsSelector(id.Selector)
		p.Err = err
		return s
	}
	switch m := c.Metric; {
	case m.Resource != nil:
		ofResource("resource", m.Resource.Name, "", m.Resource.Target)
	case m.ContainerResource != nil:
		ofResource("container", m.ContainerResource.Name, m.ContainerResource.Container, m.ContainerResource.Target)
	case m.Pods != nil:
		method = "pods"
		if s := metricSelector(m.Pods.Metric); p.Err == nil {
			p.Replicas, p.Usage, p.At, p.Err = calc.GetMetricReplicas(c.Current, m.Pods.Target.AverageValue.MilliValue(), m.Pods.Metric.Name, within, namespace, selector, s)
		}
	case m.Object != nil:
		s := metricSelector(m.Object.Metric)
		switch t := m.Object.Target; {
		case t.Value == nil && t.AverageValue == nil:
			method, p.Err = "objectWithoutTarget", errAPI
		case t.Value != nil:
			if method = "objectValue"; p.Err == nil {
				p.Replicas, p.Usage, p.At, p.Err = calc.GetObjectMetricReplicas(c.Current, t.Value.MilliValue(), m.Object.Metric.Name, within, namespace, &m.Object.DescribedObject, selector, s)
			}
		default:
			if method = "objectAverageValue"; p.Err == nil {
				p.Replicas, p.Usage, p.At, p.Err = calc.GetObjectPerPodMetricReplicas(c.Current, t.AverageValue.MilliValue(), m.Object.Metric.Name, within, namespace, &m.Object.DescribedObject, s)
			}
		}
	case m.External != nil:
		switch t := m.External.Target; {
		case t.AverageValue != nil:
			method = "externalAverageValue"
			p.Replicas, p.Usage, p.At, p.Err = calc.GetExternalPerPodMetricReplicas(c.Current, t.AverageValue.MilliValue(), m.External.Metric.Name, within, namespace, m.External.Metric.Selector)
		case t.Value != nil:
			method = "externalValue"
			p.Replicas, p.Usage, p.At, p.Err = calc.GetExternalMetricReplicas(c.Current, t.Value.MilliValue(), m.External.Metric.Name, within, namespace, m.External.Metric.Selector, selector)
		default:
			method, p.Err = "externalWithoutTarget", errAPI
		}
	}
	return method, p
}

// ours makes the call with weir's code.
func (c *call) ours() autoscaler.MetricDecision {
	settings := c.Config.Settings
	spec := &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{c.Metric}, Behavior: c.Behavior}
	target := autoscaler.Scale{SpecReplicas: c.Current, StatusReplicas: c.Current, Selector: c.Selector}
	return autoscaler.Propose(c.Input.input(time.Now(), &settings, spec, nil, target), 0)
}

// difference makes the call with both and returns the difference, or "".
func (c *call) difference(u *upstream, seen coverage) string {
	method, want := c.upstream(u)
	m := c.ours()
	got := proposal{Replicas: m.Proposal, Utilization: m.Utilization, Usage: m.Usage, At: m.At, Err: m.Err}

	seen.call(c, method, &m, want)
	same := (want.Err == nil) == (got.Err == nil)
	if want.Err == nil && same {
		same = want.Replicas == got.Replicas && want.Utilization == got.Utilization && want.Usage == got.Usage
	}
	var b strings.Builder
	if !same {
		fmt.Fprintf(&b, "%s differs:\n  upstream: %v\n  weir:     %v\n", method, want, got)
	}
	b.WriteString(c.classes(u, &m))
	return b.String()
}

// classes compares the classes of the pods, where upstream has classes.
func (c *call) classes(u *upstream, m *autoscaler.MetricDecision) string {
	if m.Err != nil {
		return ""
	}
	selector := parse(c.Selector)
	var resource corev1.ResourceName
	var err error
	var samples metrics.PodMetricsInfo
	ctx := context.Background()
	switch {
	case c.Metric.Resource != nil:
		resource = c.Metric.Resource.Name
		samples, _, err = u.client.GetResourceMetric(ctx, resource, namespace, selector, "")
	case c.Metric.ContainerResource != nil:
		resource = c.Metric.ContainerResource.Name
		samples, _, err = u.client.GetResourceMetric(ctx, resource, namespace, selector, c.Metric.ContainerResource.Container)
	case c.Metric.Pods != nil:
		samples, _, err = u.client.GetRawMetric(c.Metric.Pods.Metric.Name, namespace, selector, labels.Everything())
	default:
		return ""
	}
	if err != nil {
		return fmt.Sprintf("weir counted pods of a metric that upstream cannot read: %v\n", err)
	}
	pods, err := listerOver(u.pods, u.apis).Pods(namespace).List(selector)
	if err != nil {
		return fmt.Sprintf("list pods: %v\n", err)
	}
	_, unready, missing, ignored := groupPods(pods, samples, resource, c.Config.CPUInitialization, c.Config.InitialReadinessDelay)
	var want, got []string
	known := map[string]bool{}
	for _, p := range pods {
		known[p.Name] = true
		class := autoscaler.Counted
		switch {
		case unready.Has(p.Name):
			class = autoscaler.Unready
		case missing.Has(p.Name):
			class = autoscaler.Missing
		case ignored.Has(p.Name):
			class = autoscaler.Ignored
		}
		want = append(want, fmt.Sprint(p.Name, "=", className(class)))
	}
	for pod := range samples {
		if !known[pod] {
			want = append(want, fmt.Sprint(pod, "=", className(autoscaler.NotInTarget)))
		}
	}
	for _, p := range m.Pods {
		got = append(got, fmt.Sprint(p.Pod, "=", className(p.Class)))
	}
	slices.Sort(want)
	slices.Sort(got)
	if slices.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("classes of pods differ:\n  upstream: %v\n  weir:     %v\n", want, got)
}
