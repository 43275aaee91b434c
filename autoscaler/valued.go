package autoscaler

import (
	"errors"
	"fmt"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/cluster"
)

func (c *calculation) object(m *MetricDecision, spec *autoscalingv2.ObjectMetricSource) error {
	if err := selectable(spec.Metric.Selector); err != nil {
		return err
	}
	value := spec.Target.Type == autoscalingv2.ValueMetricType && spec.Target.Value != nil
	average := spec.Target.Type == autoscalingv2.AverageValueMetricType && spec.Target.AverageValue != nil
	if !value && !average {
		return errors.New("the target is neither value nor averageValue, or its type says otherwise")
	}
	r, err := c.read(m)
	if err != nil {
		return err
	}
	if len(r.Values) == 0 {
		return errNoValue
	}
	m.Total = r.Values[0]
	if value {
		m.Target = spec.Target.Value.MilliValue()
		return c.whole(m)
	}
	m.Target = spec.Target.AverageValue.MilliValue()
	c.shared(m, toInt32)
	return nil
}

func (c *calculation) external(m *MetricDecision, spec *autoscalingv2.ExternalMetricSource) error {
	if spec.Target.AverageValue == nil && spec.Target.Value == nil {
		return errors.New("the target is neither value nor averageValue")
	}
	if err := selectable(spec.Metric.Selector); err != nil {
		return err
	}
	r, err := c.read(m)
	if err != nil {
		return err
	}
	if len(r.Values) == 0 {
		return errNoValue
	}
	if spec.Target.AverageValue != nil {
		m.Target = spec.Target.AverageValue.MilliValue()
		m.Total = sumOrOverflow(r.Values)
		c.shared(m, capInt32)
		return nil
	}
	m.Target = spec.Target.Value.MilliValue()
	m.Total = sumCapped(r.Values)
	return c.whole(m)
}

var errNoValue = fmt.Errorf("%w: the answer has no value", ErrUnread)

// whole compares the metric itself with its target, and multiplies the ratio with the
// pods that are Running and Ready. Pods being deleted are among them.
func (c *calculation) whole(m *MetricDecision) error {
	m.Usage = m.Total
	m.Ratio = float64(m.Usage) / float64(m.Target)
	current := c.in.Scale.Spec
	switch {
	case current == 0:
		m.Proposal, m.Outcome = toInt32(math.Ceil(m.Ratio)), FromZero
		return nil
	case c.near(m.Ratio):
		m.Proposal, m.Outcome = current, WithinTolerance
		return nil
	}
	if err := c.listed(); err != nil {
		return fmt.Errorf("count the ready pods: %w", err)
	}
	c.order()
	m.Pods = c.room(m.Index)
	for i := range c.pods {
		p := &m.Pods[i]
		*p = PodCase{Pod: c.pods[i].Name}
		switch {
		case c.pods[i].Phase != cluster.Running:
			p.Class, p.Why = Ignored, WhyNotRunning
		case c.pods[i].Ready != cluster.ReadyTrue:
			p.Class, p.Why = Ignored, WhyNotReady
		default:
			m.Count++
		}
	}
	m.Proposal, m.Outcome = capInt32(math.Ceil(m.Ratio*float64(m.Count))), Scaled
	return nil
}

// shared compares the metric with so much for each replica the target's status
// counts. It looks at no pod, and inside the tolerance it proposes the status' count
// even if another is asked for. The usage it reports is a replica's share, rounded up.
func (c *calculation) shared(m *MetricDecision, convert func(float64) int32) {
	replicas := c.in.Scale.Status
	m.Count = int(replicas)
	m.Ratio = float64(m.Total) / (float64(m.Target) * float64(replicas))
	m.Proposal, m.Outcome = replicas, WithinTolerance
	if !c.near(m.Ratio) {
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

// sumCapped adds values up, and stops at the largest number there is.
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

// sumOrOverflow adds values up, and takes a sum below zero for an overflow.
func sumOrOverflow(values []int64) int64 {
	var sum int64
	for _, v := range values {
		if sum += v; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}
