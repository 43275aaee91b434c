package replay

import (
	"errors"
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
)

// Errors for what a metrics API would report with other words.
var (
	errGap        = errors.New("the trace has a gap here")
	errUnmeasured = errors.New("no pod has been measured yet")
)

// targetMetric is one metric of a specification, with its data in the trace.
type targetMetric struct {
	spec autoscalingv2.MetricSpec
	name string
	// uses are the series that add up to the metric. For a Resource metric there is one for each
	// container.
	uses   []Series
	maxAge time.Duration
	bytes  bool // set for memory, which has no fractions
	// perPod is set if more pods reduce the value for each pod. That holds for all targets except
	// those of type Value.
	perPod bool
	// goal is the target in thousandths; it is for each pod if perPod is set.
	goal float64
	// request is the request of a pod in thousandths, if the target is a share of the request.
	request int64
}

// targetMetrics returns the data of each metric of spec. The error says which data the trace lacks.
func targetMetrics(t *Trace, spec *autoscalingv2.HorizontalPodAutoscalerSpec) ([]targetMetric, error) {
	if len(spec.Metrics) == 0 {
		return nil, errors.New("the specification has no metrics: there is nothing to replay")
	}
	list := make([]targetMetric, len(spec.Metrics))
	for i := range spec.Metrics {
		m := &spec.Metrics[i]
		tg := targetMetric{spec: *m, maxAge: t.maxAge()}
		var err error
		switch {
		case m.Resource != nil:
			tg.name = string(m.Resource.Name)
			err = tg.resource(t, m.Resource.Target, tg.name, func(c *TraceContainer) bool { return c.Role != cluster.Init })
		case m.ContainerResource != nil:
			resource, container := string(m.ContainerResource.Name), m.ContainerResource.Container
			tg.name = resource + " of container " + container
			err = tg.resource(t, m.ContainerResource.Target, resource, func(c *TraceContainer) bool { return c.Name == container })
		case m.Pods != nil:
			err = tg.named(t, m.Pods.Metric.Name, m.Pods.Target)
		case m.Object != nil:
			err = tg.named(t, m.Object.Metric.Name, m.Object.Target)
		case m.External != nil:
			err = tg.named(t, m.External.Metric.Name, m.External.Target)
		default:
			err = fmt.Errorf("a metric of type %q names no source", m.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("metric %d: %w", i, err)
		}
		list[i] = tg
	}
	return list, nil
}

// resource sets the fields of tg for a resource of the chosen containers.
func (m *targetMetric) resource(t *Trace, goal autoscalingv2.MetricTarget, resource string, chosen func(*TraceContainer) bool) error {
	if resource != "cpu" && resource != "memory" {
		return fmt.Errorf("%s: only cpu and memory can be replayed", resource)
	}
	m.bytes = resource == "memory"
	name, podLevel := corev1.ResourceName(resource), false
	if m.spec.Resource != nil {
		m.request, podLevel = podRequest(t, name)
	}
	for i := range t.Containers {
		c := &t.Containers[i]
		if !chosen(c) {
			continue
		}
		if len(c.usage(resource)) == 0 {
			return fmt.Errorf("the trace has no %s of container %s", resource, c.Name)
		}
		m.uses = append(m.uses, c.usage(resource))
		if podLevel {
			continue
		}
		request := c.Requests.Amount(name)
		if goal.AverageUtilization != nil && !request.Set {
			return fmt.Errorf("the target is a share of what pods request, and container %s requests no %s, as far as the trace knows", c.Name, resource)
		}
		m.request += request.Milli
	}
	if len(m.uses) == 0 {
		return fmt.Errorf("the trace has no container for %s", m.name)
	}
	if goal.AverageUtilization != nil && m.request <= 0 {
		return fmt.Errorf("the target is a share of what pods request, and that is %d: nothing", m.request)
	}
	return m.setGoal(goal)
}

// podRequest returns what a pod requests besides its containers. If it has a request of its own (podLevel),
// those of its containers do not count.
func podRequest(t *Trace, name corev1.ResourceName) (milli int64, podLevel bool) {
	milli = t.Overhead.Amount(name).Milli
	if t.PodLevel != nil && t.PodLevel.Amount(name).Set {
		return milli + t.PodLevel.Amount(name).Milli, true
	}
	return milli, false
}

// named sets the fields of tg for a custom or external metric.
func (m *targetMetric) named(t *Trace, name string, goal autoscalingv2.MetricTarget) error {
	m.name = name
	series := t.Named[name]
	if len(series) == 0 {
		return fmt.Errorf("the trace has no metric %s", name)
	}
	m.uses = []Series{series}
	return m.setGoal(goal)
}

func (m *targetMetric) setGoal(goal autoscalingv2.MetricTarget) error {
	m.perPod = true
	switch {
	case goal.AverageUtilization != nil:
		m.goal = float64(*goal.AverageUtilization) / 100 * float64(m.request)
	case goal.AverageValue != nil:
		m.request, m.goal = 0, float64(goal.AverageValue.MilliValue())
	case goal.Value != nil:
		m.perPod, m.request, m.goal = false, 0, float64(goal.Value.MilliValue())
	}
	if m.goal <= 0 {
		return fmt.Errorf("%s has no target above zero", m.name)
	}
	return nil
}

// targetText returns the target as text: "60%", "100m".
func (m *targetMetric) targetText() string {
	if m.request > 0 {
		return fmt.Sprintf("%.4g%%", m.goal/float64(m.request)*100)
	}
	format := resource.DecimalSI
	if m.bytes {
		format = resource.BinarySI
	}
	return resource.NewMilliQuantity(int64(m.goal), format).String()
}

// totalAt returns the metric of the whole workload in thousandths, not rounded. It reports whether
// the value is known.
func (m *targetMetric) totalAt(now time.Time) (float64, bool) {
	sum := 0.0
	for _, s := range m.uses {
		v, ok := s.At(now, m.maxAge)
		if !ok {
			return 0, false
		}
		sum += v
	}
	return sum * 1000, true
}

// readingAt returns the metric as the APIs would return it: a sample of each measured pod, with the
// demand divided among the ready pods.
func (m *targetMetric) readingAt(now time.Time, w *modelWorkload) autoscaler.Reading {
	r := autoscaler.Reading{At: now}
	if _, ok := m.totalAt(now); !ok {
		r.Err = errGap
		return r
	}
	if m.spec.Object != nil || m.spec.External != nil {
		v, _ := m.uses[0].At(now, m.maxAge)
		r.Values = []int64{m.milli(v)}
		return r
	}
	ready := w.ready(now)
	var each int64 // the usage of a ready pod, the sum over the containers, each rounded up
	for _, s := range m.uses {
		v, _ := s.At(now, m.maxAge)
		if ready > 0 {
			each += m.milli(v / float64(ready))
		}
	}
	for i := range w.pods {
		p := &w.pods[i]
		if now.Before(p.measured) {
			continue
		}
		s := autoscaler.PodSample{Pod: p.name, At: now, Window: w.options.Window}
		if !now.Before(p.ready) {
			s.Milli = each
		}
		r.Samples = append(r.Samples, s)
	}
	if len(r.Samples) == 0 {
		r.Err = errUnmeasured
	}
	return r
}

// milli rounds as the metrics APIs do: first to billionths (memory: to bytes), then up to
// thousandths.
func (m *targetMetric) milli(v float64) int64 {
	if m.bytes {
		return clampInt64(math.Round(v) * 1000)
	}
	return clampInt64(math.Ceil(math.Round(v*1e9) / 1e6))
}

// clampInt64 converts a number and limits it to the range of int64.
func clampInt64(v float64) int64 {
	switch {
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}
