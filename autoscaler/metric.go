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

// Propose returns what the metric Spec.Metrics[i] alone asks for, before any window,
// policy or bound. It reads that metric, and looks at no other.
func Propose(in *Input, i int) MetricDecision {
	var m MetricDecision
	newCalculation(in).metric(&m, i)
	return m
}

// calculation is what the metrics of one decision have in common.
type calculation struct {
	in       *Input
	pods     []Pod // by name, once order was called
	down, up float64
	starting time.Time // who started after this is in its CPU initialization period
}

func newCalculation(in *Input) *calculation {
	c := &calculation{
		in: in, pods: in.Pods, down: in.Settings.Tolerance, up: in.Settings.Tolerance,
		starting: in.Now.Add(-in.Settings.CPUInitialization),
	}
	if b := in.Spec.Behavior; b != nil && in.Settings.ConfigurableTolerance {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			c.down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			c.up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return c
}

// order brings the pods into the order of their names, as they come in already if they
// come from a list.
func (c *calculation) order() {
	byName := func(a, b Pod) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(c.pods, byName) {
		c.pods = slices.Clone(c.pods)
		slices.SortStableFunc(c.pods, byName)
	}
}

// near reports whether a ratio is near enough to 1 to leave the count alone. One that
// is not a number never is.
func (c *calculation) near(ratio float64) bool { return 1-c.down <= ratio && ratio <= 1+c.up }

// The reasons of a condition for a metric that gave no count.
const (
	failedResource  = "FailedGetResourceMetric"
	failedContainer = "FailedGetContainerResourceMetric"
	failedPods      = "FailedGetPodsMetric"
	failedObject    = "FailedGetObjectMetric"
	failedExternal  = "FailedGetExternalMetric"
	failedType      = "InvalidMetricSourceType"
)

// metric fills in m for the metric at an index.
func (c *calculation) metric(m *MetricDecision, i int) {
	spec := &c.in.Spec.Metrics[i]
	m.Index, m.Type = i, spec.Type
	m.ToleranceDown, m.ToleranceUp = c.down, c.up
	var err error
	switch {
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		m.Name, m.Reason = string(spec.Resource.Name), failedResource
		err = c.resource(m, spec.Resource.Name, "", &spec.Resource.Target)
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		s := spec.ContainerResource
		m.Name, m.Reason = string(s.Name)+" of container "+s.Container, failedContainer
		err = c.resource(m, s.Name, s.Container, &s.Target)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		m.Name, m.Reason = spec.Pods.Metric.Name, failedPods
		err = c.podsMetric(m, spec.Pods)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		m.Name, m.Reason = spec.Object.Metric.Name, failedObject
		err = c.object(m, spec.Object)
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		m.Name, m.Reason = spec.External.Metric.Name, failedExternal
		err = c.external(m, spec.External)
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

// read asks for the metric's present value.
func (c *calculation) read(m *MetricDecision) (Reading, error) {
	if c.in.Read == nil {
		return Reading{}, fmt.Errorf("%w: there is nothing to read it from", ErrUnread)
	}
	r := c.in.Read(m.Index)
	m.At = r.At
	if r.Err != nil {
		return r, fmt.Errorf("%w: %w", ErrUnread, r.Err)
	}
	return r, nil
}

// listed returns why the target's pods cannot be counted.
func (c *calculation) listed() error {
	if c.in.PodsErr != nil {
		return fmt.Errorf("list the target's pods: %w", c.in.PodsErr)
	}
	if len(c.pods) == 0 {
		return ErrNoPods
	}
	return nil
}

// Why a metric gave no count (MetricDecision.Err), where that is not one pod's matter.
var (
	ErrUnread = errors.New("read the metric") // and what stood in the way
	ErrNoPods = errors.New("the target's selector matches no pod")
)

func (c *calculation) resource(m *MetricDecision, name corev1.ResourceName, container string, target *autoscalingv2.MetricTarget) error {
	s := sampled{calculation: c, resource: name, container: container}
	switch {
	case target.AverageValue != nil:
		m.Target = target.AverageValue.MilliValue()
	case target.AverageUtilization != nil:
		m.Percent, m.Target = true, int64(*target.AverageUtilization)
	default:
		return errors.New("the target is neither averageUtilization nor averageValue")
	}
	return s.decide(m)
}

func (c *calculation) podsMetric(m *MetricDecision, spec *autoscalingv2.PodsMetricSource) error {
	if err := selectable(spec.Metric.Selector); err != nil {
		return err
	}
	if spec.Target.AverageValue == nil {
		return errors.New("the target is not averageValue")
	}
	m.Target = spec.Target.AverageValue.MilliValue()
	s := sampled{calculation: c}
	return s.decide(m)
}

// selectable returns what is wrong with a metric's selector.
func selectable(s *metav1.LabelSelector) error {
	if s == nil {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return fmt.Errorf("parse the metric's selector: %w", err)
	}
	return nil
}

// upstreamName is what Kubernetes calls a metric in the event of a rescale, its own
// slip included: an Object metric with an average is called external.
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
