package parity

import (
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
)

// coverage counts the branches that the cases met.
type coverage map[string]int

func (c coverage) add(what string) { c[what]++ }

func (c coverage) String() string {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%10d  %s\n", c[name], name)
	}
	return b.String()
}

var outcomes = map[autoscaler.RatioOutcome]string{
	autoscaler.OutcomeNone: "error", autoscaler.Scaled: "scaled", autoscaler.WithinTolerance: "within tolerance",
	autoscaler.WouldReverse: "would turn", autoscaler.FromZero: "from zero",
}

var classes = map[autoscaler.PodClass]string{
	autoscaler.Counted: "counted", autoscaler.Unready: "unready", autoscaler.Missing: "missing",
	autoscaler.Ignored: "ignored", autoscaler.NotInTarget: "stranger",
}

func className(c autoscaler.PodClass) string { return classes[c] }

var whys = map[autoscaler.ClassReason]string{
	autoscaler.ReasonReady: "ready", autoscaler.ReasonTerminating: "terminating", autoscaler.ReasonFailed: "failed",
	autoscaler.ReasonPending: "pending", autoscaler.ReasonNoSample: "no sample", autoscaler.ReasonNoCondition: "no condition",
	autoscaler.ReasonStarting: "starting", autoscaler.ReasonWindowTooEarly: "window too early", autoscaler.ReasonNeverReady: "never ready",
	autoscaler.ReasonNotRunning: "not running", autoscaler.ReasonNotReady: "not ready", autoscaler.ReasonNotInTarget: "unknown",
}

var stepKinds = map[autoscaler.StepKind]string{
	autoscaler.StepDisabled: "disabled", autoscaler.StepAboveMax: "above max", autoscaler.StepBelowMin: "below min",
	autoscaler.StepPropose: "propose", autoscaler.StepStabilizeDown: "stabilize down", autoscaler.StepStabilizeUp: "stabilize up",
	autoscaler.StepPolicyUp: "policy up", autoscaler.StepPolicyDown: "policy down", autoscaler.StepDoubling: "doubling",
	autoscaler.StepMax: "max", autoscaler.StepMin: "min", autoscaler.StepLeaveZero: "leave zero",
}

// call counts the branches of a call of the calculator.
func (c coverage) call(k *call, method string, m *autoscaler.MetricDecision, want proposal) {
	outcome := outcomes[m.Outcome]
	if want.Err != nil {
		outcome = "error"
	}
	c.add(method + ": " + outcome)
	if want.Err != nil {
		return
	}
	if m.Recounted {
		c.add(method + ": recounted")
	}
	switch t := k.tolerances(); m.Ratio {
	case 1:
		c.add("ratio: exactly 1")
	case 1 + t.up:
		c.add("ratio: exactly at the upper tolerance")
	case 1 - t.down:
		c.add("ratio: exactly at the lower tolerance")
	}
	if m.Proposal < 0 {
		c.add("proposal: negative")
	}
	for i := range m.Pods {
		c.add("pod: " + classes[m.Pods[i].Class] + ", " + whys[m.Pods[i].Reason])
	}
}

// step counts the branches of a reconcile.
func (c coverage) step(s *step, before *autoscaler.Memory, o *ours, want *outcome) {
	c.add("action: reconcile")
	for _, taken := range o.last.Steps {
		what := "step: " + stepKinds[taken.Kind]
		c.add(what)
		if taken.From != taken.To {
			c.add(what + ", binding")
		}
	}
	for _, e := range want.Events {
		c.add("event: " + e.Reason)
	}
	if want.Status == nil {
		c.add("status: unchanged")
	} else {
		for _, condition := range want.Status.Conditions {
			c.add(fmt.Sprintf("condition: %s=%s %s", condition.Type, condition.Status, condition.Reason))
		}
	}
	if want.Err != nil {
		c.add("result: error")
		if len(want.Updates) > 0 && slices.ContainsFunc(want.Events, func(e autoscaler.Event) bool { return e.Reason == "SuccessfulRescale" }) {
			c.add("result: rescaled, and an error")
		}
	}
	if len(want.Updates) > 1 {
		c.add("result: scale update tried again")
	}
	if n := len(before.Recommendations); n > 0 && len(o.last.Metrics) > 0 && o.last.Chosen >= 0 {
		if len(want.Memory.Recommendations) == n {
			c.add("memory: recommendation replaced")
		} else {
			c.add("memory: recommendation added")
		}
		c.edges(s, before, o)
	}
	for _, side := range [][2][]autoscaler.ReplicaChange{{before.Ups, want.Memory.Ups}, {before.Downs, want.Memory.Downs}} {
		switch a, b := side[0], side[1]; {
		case len(b) > len(a):
			c.add("memory: change added")
		case !slices.Equal(a, b):
			c.add("memory: change replaced or outdated")
		}
	}
}

// edges counts recommendations and changes with exactly the age at which they
// are forgotten.
func (c coverage) edges(s *step, before *autoscaler.Memory, o *ours) {
	age := func(r autoscaler.ReplicaRecommendation) int64 { return int64(o.last.At.Sub(r.At)) }
	for _, r := range before.Recommendations {
		if s.Spec.Behavior == nil {
			continue
		}
		for _, rules := range []*autoscalingv2.HPAScalingRules{s.Spec.Behavior.ScaleUp, s.Spec.Behavior.ScaleDown} {
			if w := rules.StabilizationWindowSeconds; w != nil && age(r) == int64(*w)*1e9 {
				c.add("memory: recommendation at a window's edge")
			}
		}
	}
	if s.Spec.Behavior == nil {
		return
	}
	for _, side := range [][]autoscaler.ReplicaChange{before.Ups, before.Downs} {
		for _, change := range side {
			for _, rules := range []*autoscalingv2.HPAScalingRules{s.Spec.Behavior.ScaleUp, s.Spec.Behavior.ScaleDown} {
				for _, policy := range rules.Policies {
					if int64(o.last.At.Sub(change.At)) == int64(policy.PeriodSeconds)*1e9 {
						c.add("memory: change at a period's edge")
					}
				}
			}
		}
	}
}

// calculatorBranches and reconcileBranches are the branches that a run with
// enough cases must meet.
var calculatorBranches = lines(`
containerAverageValue: error
containerAverageValue: recounted
containerAverageValue: scaled
containerAverageValue: within tolerance
containerAverageValue: would turn
containerUtilization: error
containerUtilization: recounted
containerUtilization: scaled
containerUtilization: within tolerance
containerUtilization: would turn
externalAverageValue: error
externalAverageValue: from zero
externalAverageValue: scaled
externalAverageValue: within tolerance
externalValue: error
externalValue: from zero
externalValue: scaled
externalValue: within tolerance
objectAverageValue: error
objectAverageValue: from zero
objectAverageValue: scaled
objectAverageValue: within tolerance
objectValue: error
objectValue: from zero
objectValue: scaled
objectValue: within tolerance
pod: counted, ready
pod: ignored, failed
pod: ignored, not ready
pod: ignored, not running
pod: ignored, terminating
pod: missing, no sample
pod: stranger, unknown
pod: unready, never ready
pod: unready, no condition
pod: unready, pending
pod: unready, starting
pod: unready, window too early
pods: error
pods: recounted
pods: scaled
pods: within tolerance
pods: would turn
proposal: negative
ratio: exactly 1
ratio: exactly at the lower tolerance
ratio: exactly at the upper tolerance
resourceAverageValue: error
resourceAverageValue: recounted
resourceAverageValue: scaled
resourceAverageValue: within tolerance
resourceAverageValue: would turn
resourceUtilization: error
resourceUtilization: recounted
resourceUtilization: scaled
resourceUtilization: within tolerance
resourceUtilization: would turn
`)

var reconcileBranches = lines(`
action: delete
action: reconcile
action: restart
condition: AbleToScale=False FailedGetScale
condition: AbleToScale=False FailedUpdateScale
condition: AbleToScale=True ReadyForNewScale
condition: AbleToScale=True ScaleDownStabilized
condition: AbleToScale=True ScaleUpStabilized
condition: AbleToScale=True SucceededGetScale
condition: AbleToScale=True SucceededRescale
condition: ScaledToZero=False NotScaledToZero
condition: ScaledToZero=True ScaledToZero
condition: ScalingActive=False AmbiguousSelector
condition: ScalingActive=False FailedGetContainerResourceMetric
condition: ScalingActive=False FailedGetExternalMetric
condition: ScalingActive=False FailedGetObjectMetric
condition: ScalingActive=False FailedGetPodsMetric
condition: ScalingActive=False FailedGetResourceMetric
condition: ScalingActive=False InvalidMetricSourceType
condition: ScalingActive=False InvalidSelector
condition: ScalingActive=False ScalingDisabled
condition: ScalingActive=True ValidMetricFound
condition: ScalingLimited=False DesiredWithinRange
condition: ScalingLimited=True ScaleDownLimit
condition: ScalingLimited=True ScaleUpLimit
condition: ScalingLimited=True TooFewReplicas
condition: ScalingLimited=True TooManyReplicas
event: FailedComputeMetricsReplicas
event: FailedRescale
event: SelectorRequired
event: SuccessfulRescale
memory: change added
memory: change at a period's edge
memory: change replaced or outdated
memory: recommendation added
memory: recommendation at a window's edge
memory: recommendation replaced
result: error
result: rescaled, and an error
result: scale update tried again
status: unchanged
step: above max, binding
step: below min, binding
step: disabled
step: doubling, binding
step: leave zero, binding
step: max, binding
step: min, binding
step: policy down, binding
step: policy up, binding
step: propose
step: stabilize down, binding
step: stabilize up, binding
`)

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
