package autoscaler

import (
	"errors"
	"fmt"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/cluster"
)

func (c *calculation) objectMetric(m *MetricDecision, spec *autoscalingv2.ObjectMetricSource) error {
	if err := checkSelector(spec.Metric.Selector); err != nil {
		return err
	}
	value := spec.Target.Type == autoscalingv2.ValueMetricType && spec.Target.Value != nil
	average := spec.Target.Type == autoscalingv2.AverageValueMetricType && spec.Target.AverageValue != nil
	if !value && !average {
		return errors.New("the target has neither value nor averageValue, or its type is another one")
	}
	r, err := c.readMetric(m)
	if err != nil {
		return err
	}
	if len(r.Values) == 0 {
		return errNoValue
	}
	m.Total = r.Values[0]
	if value {
		m.Target = spec.Target.Value.MilliValue()
		return c.compareValue(m)
	}
	m.Target = spec.Target.AverageValue.MilliValue()
	c.compareAverage(m, toInt32)
	return nil
}

func (c *calculation) externalMetric(m *MetricDecision, spec *autoscalingv2.ExternalMetricSource) error {
	if spec.Target.AverageValue == nil && spec.Target.Value == nil {
		return errors.New("the target is neither value nor averageValue")
	}
	if err := checkSelector(spec.Metric.Selector); err != nil {
		return err
	}
	r, err := c.readMetric(m)
	if err != nil {
		return err
	}
	if len(r.Values) == 0 {
		return errNoValue
	}
	if spec.Target.AverageValue != nil {
		m.Target = spec.Target.AverageValue.MilliValue()
		m.Total = sumOrOverflow(r.Values)
		c.compareAverage(m, toInt32Capped)
		return nil
	}
	m.Target = spec.Target.Value.MilliValue()
	m.Total = sumCapped(r.Values)
	return c.compareValue(m)
}

var errNoValue = fmt.Errorf("%w: the answer has no value", ErrUnread)

// compareValue compares the value itself with its target and multiplies the ratio by the number of
// pods that are Running and Ready. This includes pods that are being deleted.
func (c *calculation) compareValue(m *MetricDecision) error {
	m.Usage = m.Total
	m.Ratio = float64(m.Usage) / float64(m.Target)
	current := c.in.Scale.SpecReplicas
	switch {
	case current == 0:
		m.Proposal, m.Outcome = toInt32(math.Ceil(m.Ratio)), FromZero
		return nil
	case c.withinTolerance(m.Ratio):
		m.Proposal, m.Outcome = current, WithinTolerance
		return nil
	}
	if err := c.checkPods(); err != nil {
		return fmt.Errorf("count the ready pods: %w", err)
	}
	c.sortPods()
	m.Pods = c.reusablePods(m.Index)
	for i := range c.pods {
		p := &m.Pods[i]
		*p = ClassifiedPod{Pod: c.pods[i].Name}
		switch {
		case c.pods[i].Phase != cluster.Running:
			p.Class, p.Reason = Ignored, ReasonNotRunning
		case c.pods[i].Ready != cluster.ReadyTrue:
			p.Class, p.Reason = Ignored, ReasonNotReady
		default:
			m.Count++
		}
	}
	m.Proposal, m.Outcome = toInt32Capped(math.Ceil(m.Ratio*float64(m.Count))), Scaled
	return nil
}

// compareAverage compares the value divided by the replicas in the target's status. It reads no
// pods. Within the tolerance it proposes the count in the status, even if the target requests
// another one. Usage is the share of one replica, rounded up.
func (c *calculation) compareAverage(m *MetricDecision, convert func(float64) int32) {
	replicas := c.in.Scale.StatusReplicas
	m.Count = int(replicas)
	m.Ratio = float64(m.Total) / (float64(m.Target) * float64(replicas))
	m.Proposal, m.Outcome = replicas, WithinTolerance
	if !c.withinTolerance(m.Ratio) {
		m.Proposal, m.Outcome = convert(math.Ceil(float64(m.Total)/float64(m.Target))), Scaled
		if replicas == 0 {
			m.Outcome = FromZero
		}
	}
	if m.Type == autoscalingv2.ExternalMetricSourceType && float64(m.Total) >= math.MaxInt64 {
		m.Usage = math.MaxInt64
		return
	}
	m.Usage = toInt64(math.Ceil(float64(m.Total) / float64(replicas)))
}

// sumCapped adds values. The result is at most math.MaxInt64.
func sumCapped(values []int64) int64 {
	var sum int64
	for _, v := range values {
		if v > 0 && sum > math.MaxInt64-v {
			return math.MaxInt64
		}
		sum += v
	}
	return sum
}

// sumOrOverflow adds values. Like Kubernetes it interprets a negative sum as an overflow and
// returns math.MaxInt64.
func sumOrOverflow(values []int64) int64 {
	var sum int64
	for _, v := range values {
		if sum += v; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}

// toInt32 converts f as amd64 does, on every processor: a number outside the range, and NaN, become
// the smallest integer. In Go the result of such a conversion depends on the processor.
func toInt32(f float64) int32 {
	if f > math.MinInt32-1 && f < math.MaxInt32+1 {
		return int32(f)
	}
	return math.MinInt32
}

func toInt64(f float64) int64 {
	if f >= math.MinInt64 && f < math.MaxInt64 { // as a double, math.MaxInt64 is 1<<63
		return int64(f)
	}
	return math.MinInt64
}

// toInt32Capped converts like toInt32, but a number above the range becomes the largest integer.
func toInt32Capped(f float64) int32 {
	if f > math.MaxInt32 {
		return math.MaxInt32
	}
	return toInt32(f)
}
