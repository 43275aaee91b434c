package autoscaler

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Decide returns what to do with a target now. It is deterministic. It changes nothing in its input
// except Input.Reuse.
func Decide(in *Input) *Decision {
	d := decider{&Decision{Object: in.Object, At: in.Now, Chosen: -1, Memory: in.Memory, statusDraft: newStatusDraft(in)}, in}
	d.decide()
	return d.Decision
}

// decider makes one decision: it reads the input and fills the result.
type decider struct {
	*Decision
	in *Input
}

func (d *decider) decide() {
	in := d.in
	if in.ScaleErr != nil {
		d.Err = fmt.Errorf("get the scale of %s: %w", d.targetText(), in.ScaleErr)
		d.Current = d.oldStatus.CurrentReplicas
		d.Desired = d.Current
		d.progress = scaleUnknown
		d.addWarning("FailedGetScale", in.ScaleErr.Error())
		d.setCondition(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale",
			"the target's scale cannot be read: "+in.ScaleErr.Error())
		return
	}
	d.setCondition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale", "the target's scale was read")
	d.Current = in.Scale.SpecReplicas
	d.Memory = d.Memory.withFirstRecommendation(d.Current, in.Now)

	current, lowest, highest := d.Current, d.minReplicas, in.Spec.MaxReplicas
	scaledByAutoscaler := in.Settings.ScaleToZero && ConditionTrue(d.oldStatus.Conditions, autoscalingv2.ScaledToZero)
	switch {
	case current == 0 && !(scaledByAutoscaler && (lowest != 0 || d.hasOutsideMetric)):
		// A person or another program scaled the target to zero. Autoscaling stays off.
		d.Desired = 0
		d.Steps = append(d.Steps, DerivationStep{Kind: StepDisabled})
		d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled",
			"scaling is off while the target has zero replicas")
		if !in.Settings.ScaleToZero {
			d.conditions = RemoveCondition(d.conditions, autoscalingv2.ScaledToZero)
		}
	case current != 0 && current > highest:
		d.RescaleReason = "Current number of replicas above Spec.MaxReplicas"
		d.correctToBound(StepAboveMax, highest)
	case current != 0 && current < lowest:
		d.RescaleReason = belowMinReason
		d.correctToBound(StepBelowMin, lowest)
	default:
		d.decideByMetrics(scaledByAutoscaler)
	}
}

const belowMinReason = "Current number of replicas below Spec.MinReplicas"

// correctToBound sets a count that is outside its bounds to the bound. No metric is read.
func (d *decider) correctToBound(kind StepKind, to int32) {
	d.Desired, d.Rescale = to, true
	d.Steps = append(d.Steps, DerivationStep{Kind: kind, From: d.Current, To: to, Limit: to})
}

// decideByMetrics decides by the metrics, and then applies windows, policies and bounds.
func (d *decider) decideByMetrics(scaledByAutoscaler bool) {
	proposal, err := d.proposeReplicas()
	if err != nil && d.Chosen < 0 {
		d.Err = fmt.Errorf("compute the replicas of %s: %w", d.targetText(), err)
		d.Desired = d.Current
		d.progress = metricsFailed
		d.addWarning("FailedComputeMetricsReplicas", err.Error())
		return
	}
	d.Err = err

	// A negative metric may propose a negative count.
	desired := max(proposal, 0)
	d.Steps = make([]DerivationStep, 0, 5)
	d.addStep(DerivationStep{Kind: StepPropose, From: d.Current, To: desired})
	if desired > d.Current {
		d.RescaleReason = d.chosenMetricName(proposal) + " above target"
	} else if desired < d.Current {
		d.RescaleReason = "All metrics below target"
	}
	if d.in.Spec.Behavior == nil {
		desired = d.stabilizeWithoutBehavior(desired)
		desired = d.limitWithoutBehavior(desired)
	} else {
		desired = d.stabilize(desired)
		desired = d.limit(desired)
	}
	if d.Current == 0 && d.minReplicas != 0 && scaledByAutoscaler {
		from := desired
		desired = max(desired, d.minReplicas)
		d.addStep(DerivationStep{Kind: StepLeaveZero, From: from, To: desired, Limit: d.minReplicas})
		if desired != from && d.RescaleReason == "" {
			d.RescaleReason = belowMinReason
		}
	}
	d.Desired = desired
	d.Rescale = desired != d.Current
	if !d.Rescale {
		d.RescaleReason = ""
	}
}

// chosenMetricName returns the name that Kubernetes uses for the metric with the largest proposal.
func (d *decider) chosenMetricName(proposal int32) string {
	if d.Chosen < 0 || proposal <= 0 {
		return ""
	}
	return upstreamName(&d.spec.Metrics[d.Chosen])
}

// proposeReplicas returns the largest proposal of the metrics. If some metrics fail, it also
// returns the error; the other metrics may then keep or raise the count, but not lower it. If no
// metric may decide, Chosen is -1.
func (d *decider) proposeReplicas() (int32, error) {
	if err := d.checkTarget(); err != nil {
		return -1, err
	}
	metrics := d.in.Spec.Metrics
	if len(metrics) == 0 {
		// An API server adds a default metric. Without a metric, Kubernetes sets a condition without a
		// name and continues as if the proposal were negative.
		d.setCondition("", "", "", "")
		return -1, nil
	}
	calc := newCalculation(d.in)
	d.Metrics = make([]MetricDecision, len(metrics))
	var (
		proposal int32
		chosen   = -1
		first    *MetricDecision
		failed   int
	)
	for i := range metrics {
		m := &d.Metrics[i]
		calc.fillMetric(m, i)
		if m.Err != nil {
			d.addWarning(m.Reason, m.Err.Error())
			failed++
			first = cmp.Or(first, m)
			continue
		}
		if proposal == 0 || m.Proposal > proposal {
			proposal, chosen = m.Proposal, i
		}
	}
	var err error
	if first != nil {
		err = fmt.Errorf("%d of %d metrics failed, the first: %w", failed, len(metrics), first.Err)
	}
	if failed == len(metrics) || failed > 0 && proposal < d.Current {
		d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionFalse, first.Reason,
			"the replicas cannot be computed: "+first.Err.Error())
		return -1, err
	}
	d.Chosen = chosen
	d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound",
		"the replicas were computed from "+d.Metrics[chosen].Name)
	return proposal, err
}

// checkTarget returns an error if the target's pods are unknown or belong to several autoscalers.
// In that case no metric is read.
func (d *decider) checkTarget() error {
	if d.in.Scale.Selector == "" {
		d.addWarning("SelectorRequired", "the target's scale has no selector; set status.selector")
		d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector",
			"the target's scale has no selector")
		return errors.New("the target's scale has no selector")
	}
	if d.in.Selector == nil {
		if _, err := labels.Parse(d.in.Scale.Selector); err != nil {
			err = fmt.Errorf("parse the target's selector %q: %w", d.in.Scale.Selector, err)
			d.addWarning("InvalidSelector", err.Error())
			d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector", err.Error())
			return err
		}
	}
	if d.in.PodsErr != nil {
		return fmt.Errorf("list the target's pods: %w", d.in.PodsErr)
	}
	if len(d.in.Overlapping) > 1 {
		names := make([]string, len(d.in.Overlapping))
		for i, r := range d.in.Overlapping {
			names[i] = r.String()
		}
		err := fmt.Errorf("the pods selected by %s belong to more than one autoscaler: %s; leave them to one",
			d.in.Scale.Selector, strings.Join(names, ", "))
		d.addWarning("AmbiguousSelector", err.Error())
		d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "AmbiguousSelector", err.Error())
		return err
	}
	return nil
}

func (d *Decision) targetText() string {
	ref := &d.spec.ScaleTargetRef
	return ref.Kind + " " + d.Object.Namespace + "/" + ref.Name
}

func (d *decider) addStep(s DerivationStep) { d.Steps = append(d.Steps, s) }

// seconds converts a number of seconds to a duration.
func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
