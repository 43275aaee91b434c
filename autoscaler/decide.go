package autoscaler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Decide returns what to do with a target now. It changes nothing in what it is
// given (but Input.Reuse), and says the same whenever it is given the same.
func Decide(in *Input) *Decision {
	d := &Decision{Object: in.Object, At: in.Now, Chosen: -1, Memory: in.Memory}
	d.begin(in)

	if in.ScaleErr != nil {
		d.Err = fmt.Errorf("get the scale of %s: %w", d.target(), in.ScaleErr)
		d.Current = d.old.CurrentReplicas
		d.Desired = d.Current
		d.ends = noScale
		d.warn("FailedGetScale", in.ScaleErr.Error())
		d.set(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale",
			"the target's scale cannot be read: "+in.ScaleErr.Error())
		return d
	}
	d.set(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale", "the target's scale was read")
	d.Current = in.Scale.Spec
	d.Memory = d.Memory.seeded(d.Current, in.Now)

	current, lowest, highest := d.Current, d.lowest, in.Spec.MaxReplicas
	byUs := in.Settings.ScaleToZero && scaledToZero(d.old)
	switch {
	case current == 0 && !(byUs && (lowest != 0 || d.fromOutside)):
		// Somebody scaled it to zero, and only they bring it back.
		d.Desired = 0
		d.Steps = append(d.Steps, Step{Kind: StepDisabled})
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled",
			"scaling is off while the target has zero replicas")
		if !in.Settings.ScaleToZero {
			d.unset(autoscalingv2.ScaledToZero)
		}
	case current != 0 && current > highest:
		d.Because = "Current number of replicas above Spec.MaxReplicas"
		d.correct(StepAboveMax, highest)
	case current != 0 && current < lowest:
		d.Because = belowMin
		d.correct(StepBelowMin, lowest)
	default:
		d.byMetrics(in, byUs)
	}
	return d
}

const belowMin = "Current number of replicas below Spec.MinReplicas"

// correct brings a count back within its bounds, whatever the metrics say.
func (d *Decision) correct(kind StepKind, to int32) {
	d.Desired, d.Rescale = to, true
	d.Steps = append(d.Steps, Step{Kind: kind, From: d.Current, To: to, Limit: to})
}

// byMetrics decides by the metrics, and by what limits a change.
func (d *Decision) byMetrics(in *Input, byUs bool) {
	proposal, err := d.propose(in)
	if err != nil && d.Chosen < 0 {
		d.Err = fmt.Errorf("compute the replicas of %s: %w", d.target(), err)
		d.Desired = d.Current
		d.ends = noMetrics
		d.warn("FailedComputeMetricsReplicas", err.Error())
		return
	}
	d.Err = err

	// A negative metric may ask for fewer than none.
	desired := max(proposal, 0)
	d.Steps = make([]Step, 0, 5)
	d.step(Step{Kind: StepPropose, From: d.Current, To: desired})
	if desired > d.Current {
		d.Because = d.named(proposal) + " above target"
	} else if desired < d.Current {
		d.Because = "All metrics below target"
	}
	if in.Spec.Behavior == nil {
		desired = d.stabilizePlainly(in, desired)
		desired = d.limitPlainly(in, desired)
	} else {
		desired = d.stabilize(in, desired)
		desired = d.limit(in, desired)
	}
	if d.Current == 0 && d.lowest != 0 && byUs {
		from := desired
		desired = max(desired, d.lowest)
		d.step(Step{Kind: StepLeaveZero, From: from, To: desired, Limit: d.lowest})
		if desired != from && d.Because == "" {
			d.Because = belowMin
		}
	}
	d.Desired = desired
	d.Rescale = desired != d.Current
	if !d.Rescale {
		d.Because = ""
	}
}

// named is what Kubernetes calls the metric that asked for the most.
func (d *Decision) named(proposal int32) string {
	if d.Chosen < 0 || proposal <= 0 {
		return ""
	}
	return upstreamName(&d.spec.Metrics[d.Chosen])
}

// propose returns what the metrics ask for: the largest of their proposals. Where
// some fail, the others may keep or raise the count, and the error comes with it;
// they may not lower it, nor may none at all: Chosen is then -1.
func (d *Decision) propose(in *Input) (int32, error) {
	if err := d.mayCompute(in); err != nil {
		return -1, err
	}
	metrics := in.Spec.Metrics
	if len(metrics) == 0 {
		// An API server fills a metric in. Without one, Kubernetes sets a nameless
		// condition and goes on as if the proposal were negative.
		d.set("", "", "", "")
		return -1, nil
	}
	calc := newCalculation(in)
	d.Metrics = make([]MetricDecision, len(metrics))
	var (
		proposal int32
		chosen   = -1
		first    *MetricDecision
		failed   int
	)
	for i := range metrics {
		m := &d.Metrics[i]
		calc.metric(m, i)
		if m.Err != nil {
			d.warn(m.Reason, m.Err.Error())
			failed++
			if first == nil {
				first = m
			}
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
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, first.Reason,
			"the replicas cannot be computed: "+first.Err.Error())
		return -1, err
	}
	d.Chosen = chosen
	d.set(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound",
		"the replicas were computed from "+d.Metrics[chosen].Name)
	return proposal, err
}

// mayCompute returns why no metric is to be asked: the target's pods cannot be
// told, or they are not this autoscaler's alone.
func (d *Decision) mayCompute(in *Input) error {
	if in.Scale.Selector == "" {
		d.warn("SelectorRequired", "the target's scale has no selector; set status.selector")
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector",
			"the target's scale has no selector")
		return errors.New("the target's scale has no selector")
	}
	if in.Selector == nil {
		if _, err := labels.Parse(in.Scale.Selector); err != nil {
			err = fmt.Errorf("parse the target's selector %q: %w", in.Scale.Selector, err)
			d.warn("InvalidSelector", err.Error())
			d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector", err.Error())
			return err
		}
	}
	if in.PodsErr != nil {
		return fmt.Errorf("list the target's pods: %w", in.PodsErr)
	}
	if len(in.Rivals) > 1 {
		names := make([]string, len(in.Rivals))
		for i, r := range in.Rivals {
			names[i] = r.String()
		}
		err := fmt.Errorf("the pods selected by %s belong to more than one autoscaler: %s; leave them to one",
			in.Scale.Selector, strings.Join(names, ", "))
		d.warn("AmbiguousSelector", err.Error())
		d.set(autoscalingv2.ScalingActive, corev1.ConditionFalse, "AmbiguousSelector", err.Error())
		return err
	}
	return nil
}

// begin notes what Conclude will need.
func (d *Decision) begin(in *Input) {
	d.spec, d.old = in.Spec, in.Status
	if d.old == nil {
		d.old = &autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
	d.ends = decided
	d.zeroGate = in.Settings.ScaleToZero
	d.lowest = 1
	if in.Spec.MinReplicas != nil {
		d.lowest = *in.Spec.MinReplicas
	}
	for i := range in.Spec.Metrics {
		switch in.Spec.Metrics[i].Type {
		case autoscalingv2.ObjectMetricSourceType, autoscalingv2.ExternalMetricSourceType:
			d.fromOutside = true
		}
	}
	// Room for those that a decision may add.
	d.conditions = make([]autoscalingv2.HorizontalPodAutoscalerCondition, len(d.old.Conditions), len(d.old.Conditions)+3)
	copy(d.conditions, d.old.Conditions)
}

func (d *Decision) target() string {
	ref := &d.spec.ScaleTargetRef
	return ref.Kind + " " + d.Object.Namespace + "/" + ref.Name
}

func (d *Decision) step(s Step) { d.Steps = append(d.Steps, s) }

func scaledToZero(s *autoscalingv2.HorizontalPodAutoscalerStatus) bool {
	for i := range s.Conditions {
		if s.Conditions[i].Type == autoscalingv2.ScaledToZero {
			return s.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// seconds is a whole number of them.
func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
