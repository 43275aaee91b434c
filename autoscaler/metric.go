package autoscaler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Propose returns the count that the metric Spec.Metrics[i] alone requires, before windows,
// policies and bounds. It reads only that metric.
func Propose(in *Input, i int) MetricDecision {
	var m MetricDecision
	newCalculation(in).fillMetric(&m, i)
	return m
}

// calculation has what the metrics of one decision share.
type calculation struct {
	in                         *Input
	pods                       []PodInput // sorted by name after sortPods
	toleranceDown, toleranceUp float64
	startedAfter               time.Time // a pod that started later is in its CPU initialization period
}

func newCalculation(in *Input) *calculation {
	c := &calculation{in: in, pods: in.Pods, startedAfter: in.Now.Add(-in.Settings.CPUInitialization)}
	c.toleranceDown, c.toleranceUp = Tolerances(in.Spec, in.Settings)
	return c
}

// Tolerances returns how far below and above 1 a ratio may be without a change.
func Tolerances(spec *autoscalingv2.HorizontalPodAutoscalerSpec, s *Settings) (down, up float64) {
	down, up = s.Tolerance, s.Tolerance
	if b := spec.Behavior; b != nil && s.ConfigurableTolerance {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return down, up
}

// sortPods sorts the pods by name. Lists of pods are usually already sorted.
func (c *calculation) sortPods() {
	byName := func(a, b PodInput) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(c.pods, byName) {
		c.pods = slices.Clone(c.pods)
		slices.SortStableFunc(c.pods, byName)
	}
}

// withinTolerance reports whether a ratio is so close to 1 that the count stays. It returns false
// for NaN.
func (c *calculation) withinTolerance(ratio float64) bool {
	return 1-c.toleranceDown <= ratio && ratio <= 1+c.toleranceUp
}

// The reasons of a condition for a metric that gave no count.
const (
	failedResource  = "FailedGetResourceMetric"
	failedContainer = "FailedGetContainerResourceMetric"
	failedPods      = "FailedGetPodsMetric"
	failedObject    = "FailedGetObjectMetric"
	failedExternal  = "FailedGetExternalMetric"
	failedType      = "InvalidMetricSourceType"
)

// fillMetric computes m for the metric at index i.
func (c *calculation) fillMetric(m *MetricDecision, i int) {
	spec := &c.in.Spec.Metrics[i]
	m.Index, m.Type = i, spec.Type
	m.ToleranceDown, m.ToleranceUp = c.toleranceDown, c.toleranceUp
	var err error
	switch {
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		m.Name, m.Reason = string(spec.Resource.Name), failedResource
		err = c.resourceMetric(m, spec.Resource.Name, "", &spec.Resource.Target)
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		s := spec.ContainerResource
		m.Name, m.Reason = string(s.Name)+" of container "+s.Container, failedContainer
		err = c.resourceMetric(m, s.Name, s.Container, &s.Target)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		m.Name, m.Reason = spec.Pods.Metric.Name, failedPods
		err = c.podsMetric(m, spec.Pods)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		m.Name, m.Reason = spec.Object.Metric.Name, failedObject
		err = c.objectMetric(m, spec.Object)
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		m.Name, m.Reason = spec.External.Metric.Name, failedExternal
		err = c.externalMetric(m, spec.External)
	default:
		m.Name, m.Reason = string(spec.Type), failedType
		err = fmt.Errorf("unknown type or no source: use one of %s, and fill in the field of that name", strings.Join(sourceTypes, ", "))
	}
	if err == nil {
		m.Reason = ""
		return
	}
	m.Outcome, m.Proposal = OutcomeNone, 0
	m.Err = fmt.Errorf("%s: %w", m.Name, err)
}

// readMetric reads the metric's current value.
func (c *calculation) readMetric(m *MetricDecision) (Reading, error) {
	if c.in.ReadMetric == nil {
		return Reading{}, fmt.Errorf("%w: there is nothing to read it from", ErrUnread)
	}
	r := c.in.ReadMetric(m.Index)
	m.At, m.AnsweredBy = r.At, r.AnsweredBy
	if r.Err != nil {
		return r, fmt.Errorf("%w: %w", ErrUnread, r.Err)
	}
	return r, nil
}

// checkPods returns the error if the target's pods cannot be counted.
func (c *calculation) checkPods() error {
	if c.in.PodsErr != nil {
		return fmt.Errorf("list the target's pods: %w", c.in.PodsErr)
	}
	if len(c.pods) == 0 {
		return ErrNoPods
	}
	return nil
}

// Errors of a metric (MetricDecision.Err) that do not concern a single pod.
var (
	ErrUnread = errors.New("read the metric") // wrapped with the cause
	ErrNoPods = errors.New("the target's selector matches no pod")
)

func (c *calculation) resourceMetric(m *MetricDecision, name corev1.ResourceName, container string, target *autoscalingv2.MetricTarget) error {
	s := podMetric{calculation: c, resource: name, container: container}
	switch {
	case target.AverageValue != nil:
		m.Target = target.AverageValue.MilliValue()
	case target.AverageUtilization != nil:
		m.Percent, m.Target = true, int64(*target.AverageUtilization)
	default:
		return errors.New("the target is neither averageUtilization nor averageValue")
	}
	return s.compute(m)
}

func (c *calculation) podsMetric(m *MetricDecision, spec *autoscalingv2.PodsMetricSource) error {
	if err := checkSelector(spec.Metric.Selector); err != nil {
		return err
	}
	if spec.Target.AverageValue == nil {
		return errors.New("the target is not averageValue")
	}
	m.Target = spec.Target.AverageValue.MilliValue()
	s := podMetric{calculation: c}
	return s.compute(m)
}

// checkSelector returns the error in a metric's selector; nil if it is valid.
func checkSelector(s *metav1.LabelSelector) error {
	if s == nil {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return fmt.Errorf("parse the metric's selector: %w", err)
	}
	return nil
}

// upstreamName returns the name that Kubernetes uses for a metric in the Event of a rescale. Like
// Kubernetes it names an Object metric with an average target "external".
func upstreamName(spec *autoscalingv2.MetricSpec) string {
	switch spec.Type {
	case autoscalingv2.ResourceMetricSourceType:
		if spec.Resource.Target.AverageValue != nil {
			return string(spec.Resource.Name) + " resource"
		}
		return string(spec.Resource.Name) + " resource utilization (percentage of request)"
	case autoscalingv2.ContainerResourceMetricSourceType:
		if spec.ContainerResource.Target.AverageValue != nil {
			return string(spec.ContainerResource.Name) + " resource"
		}
		return string(spec.ContainerResource.Name) + " container resource utilization (percentage of request)"
	case autoscalingv2.PodsMetricSourceType:
		return "pods metric " + spec.Pods.Metric.Name
	case autoscalingv2.ObjectMetricSourceType:
		if spec.Object.Target.Type == autoscalingv2.ValueMetricType {
			return spec.Object.DescribedObject.Kind + " metric " + spec.Object.Metric.Name
		}
		return fmt.Sprintf("external metric %s(%+v)", spec.Object.Metric.Name, spec.Object.Metric.Selector)
	default:
		return fmt.Sprintf("external metric %s(%+v)", spec.External.Metric.Name, spec.External.Metric.Selector)
	}
}
