package autoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// limitWithoutBehavior applies the bounds of a specification without a behavior. The count may at
// most double, or become 4.
func (d *decider) limitWithoutBehavior(from int32) int32 {
	to, reason := d.raiseToMin(from), tooFew
	if to == from {
		double := toInt32(math.Max(2*float64(d.Current), 4))
		if reason = tooMany; d.in.Spec.MaxReplicas > double {
			reason = tooFastUp
		}
		to = d.capAt(StepDoubling, to, double)
		to = d.capAt(StepMax, to, d.in.Spec.MaxReplicas)
	}
	d.setLimitedCondition(from, to, reason)
	return to
}

// limit applies the bounds and the policies of a behavior.
func (d *decider) limit(from int32) int32 {
	to, reason := from, withinRange
	switch {
	case from > d.Current:
		s := d.scaleUpLimit()
		if s.Limit = max(s.Limit, d.Current); d.in.Spec.MaxReplicas > s.Limit {
			reason = tooFastUp
		} else {
			reason = tooMany
		}
		s.Kind, s.From, s.To = StepPolicyUp, from, min(from, s.Limit)
		d.addStep(s)
		to = d.capAt(StepMax, s.To, d.in.Spec.MaxReplicas)
	case from < d.Current:
		s := d.scaleDownLimit()
		if s.Limit = min(s.Limit, d.Current); d.minReplicas < s.Limit {
			reason = tooFastDown
		} else {
			reason = tooFew
		}
		s.Kind, s.From, s.To = StepPolicyDown, from, max(from, s.Limit)
		d.addStep(s)
		to = d.raiseToMin(s.To)
	}
	d.setLimitedCondition(from, to, reason)
	return to
}

func (d *decider) capAt(kind StepKind, from, limit int32) int32 {
	to := min(from, limit)
	d.addStep(DerivationStep{Kind: kind, From: from, To: to, Limit: limit})
	return to
}

func (d *decider) raiseToMin(from int32) int32 {
	to := max(from, d.minReplicas)
	d.addStep(DerivationStep{Kind: StepMin, From: from, To: to, Limit: d.minReplicas})
	return to
}

// limitReason is the reason why a count is limited, in the form of a condition.
type limitReason struct{ name, message string }

var (
	withinRange = limitReason{"DesiredWithinRange", "the count is within its bounds"}
	tooFew      = limitReason{"TooFewReplicas", "fewer replicas are asked for than minReplicas allows"}
	tooMany     = limitReason{"TooManyReplicas", "more replicas are asked for than maxReplicas allows"}
	tooFastUp   = limitReason{"ScaleUpLimit", "more replicas are asked for than may be added at once"}
	tooFastDown = limitReason{"ScaleDownLimit", "fewer replicas are asked for than may be removed at once"}
)

func (d *decider) setLimitedCondition(from, to int32, r limitReason) {
	status := corev1.ConditionTrue
	if to == from {
		status, r = corev1.ConditionFalse, withinRange
	}
	d.setCondition(autoscalingv2.ScalingLimited, status, r.name, r.message)
}

// scaleUpLimit returns a step with the largest count that the policies allow, and the policy that
// decided.
func (d *decider) scaleUpLimit() DerivationStep {
	rules := scaleUpRules(d.in.Spec.Behavior)
	return d.policyLimit(rules, selectPolicy(rules) == autoscalingv2.MinChangePolicySelect, func(start int32, p *autoscalingv2.HPAScalingPolicy) int32 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return start + p.Value
		}
		// The result is rounded up, so that a small percentage of few replicas is at least one replica.
		return toInt32(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
	})
}

// scaleDownLimit returns a step with the smallest count that the policies allow, and the policy
// that decided.
func (d *decider) scaleDownLimit() DerivationStep {
	rules := scaleDownRules(d.in.Spec.Behavior)
	return d.policyLimit(rules, selectPolicy(rules) != autoscalingv2.MinChangePolicySelect, func(start int32, p *autoscalingv2.HPAScalingPolicy) int32 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return start - p.Value
		}
		return toInt32(float64(start) * (1 - float64(p.Value)/100))
	})
}

// policyLimit returns a step with the lowest or highest count that a policy allows. Each policy
// starts from the count at the beginning of its period.
func (d *decider) policyLimit(rules *autoscalingv2.HPAScalingRules, lowest bool, allows func(start int32, p *autoscalingv2.HPAScalingPolicy) int32) DerivationStep {
	if selectPolicy(rules) == autoscalingv2.DisabledPolicySelect {
		return DerivationStep{Limit: d.Current}
	}
	// If there is no policy, this value is returned, as in Kubernetes.
	best := DerivationStep{Limit: math.MinInt32}
	if lowest {
		best.Limit = math.MaxInt32
	}
	for i := range rules.Policies {
		s := d.changesWithinPeriod(&rules.Policies[i])
		s.Limit = allows(d.Current-s.Added+s.Removed, s.Policy)
		if best.Policy == nil || lowest && s.Limit < best.Limit || !lowest && s.Limit > best.Limit {
			best = s
		}
	}
	return best
}

// changesWithinPeriod returns a step with the numbers of replicas that were changed within a
// policy's period.
func (d *decider) changesWithinPeriod(p *autoscalingv2.HPAScalingPolicy) DerivationStep {
	period := seconds(p.PeriodSeconds)
	return DerivationStep{
		Policy:  p,
		Window:  period,
		Added:   replicasChangedWithin(d.Memory.Ups, period, d.in.Now),
		Removed: replicasChangedWithin(d.Memory.Downs, period, d.in.Now),
	}
}

func selectPolicy(r *autoscalingv2.HPAScalingRules) autoscalingv2.ScalingPolicySelect {
	if r.SelectPolicy == nil {
		return autoscalingv2.MaxChangePolicySelect
	}
	return *r.SelectPolicy
}

// stabilizeWithoutBehavior returns the highest recommendation of the downscale window, for a
// specification without a behavior. A recommendation exactly as old as the window counts.
func (d *decider) stabilizeWithoutBehavior(desired int32) int32 {
	window := d.in.Settings.DownscaleStabilization
	cutoff := d.in.Now.Add(-window)
	best := ReplicaRecommendation{desired, d.in.Now}
	position := -1
	for i, r := range d.Memory.Recommendations {
		if r.At.Before(cutoff) {
			position = i
		} else if r.Replicas > best.Replicas {
			best = r
		}
	}
	d.Memory = d.Memory.withRecommendation(position, ReplicaRecommendation{desired, d.in.Now})
	d.addStep(DerivationStep{Kind: StepStabilizeDown, From: desired, To: best.Replicas, Window: window, At: best.At, Limit: best.Replicas})
	d.setStabilizedCondition(best.Replicas != desired, true)
	return best.Replicas
}

// stabilize applies the windows of a behavior: the lowest recommendation of the window when scaling
// up, the highest when scaling down, but never beyond the current count. A recommendation exactly
// as old as the window does not count.
func (d *decider) stabilize(desired int32) int32 {
	up, down := scaleUpWindow(d.in.Spec.Behavior), scaleDownWindow(d.in.Spec.Behavior, d.in.Settings)
	upCutoff, downCutoff := d.in.Now.Add(-up), d.in.Now.Add(-down)
	low := ReplicaRecommendation{desired, d.in.Now}
	high := low
	position := -1
	for i, r := range d.Memory.Recommendations {
		if r.At.After(upCutoff) && r.Replicas < low.Replicas {
			low = r
		}
		if r.At.After(downCutoff) && r.Replicas > high.Replicas {
			high = r
		}
		if r.At.Before(upCutoff) && r.At.Before(downCutoff) {
			position = i
		}
	}
	d.Memory = d.Memory.withRecommendation(position, ReplicaRecommendation{desired, d.in.Now})

	to := min(max(d.Current, low.Replicas), high.Replicas)
	switch {
	case desired > d.Current:
		d.addStep(DerivationStep{Kind: StepStabilizeUp, From: desired, To: to, Window: up, At: low.At, Limit: low.Replicas})
	case desired < d.Current:
		d.addStep(DerivationStep{Kind: StepStabilizeDown, From: desired, To: to, Window: down, At: high.At, Limit: high.Replicas})
	}
	d.setStabilizedCondition(to != desired, desired < d.Current)
	return to
}

// setStabilizedCondition sets the condition that reports stabilization.
func (d *decider) setStabilizedCondition(changed, down bool) {
	reason, message := "ReadyForNewScale", "no earlier recommendation stands against the count asked for"
	switch {
	case changed && down:
		reason, message = "ScaleDownStabilized", "a recent recommendation was higher: the highest of the window holds"
	case changed:
		reason, message = "ScaleUpStabilized", "a recent recommendation was lower: the lowest of the window holds"
	}
	d.setCondition(autoscalingv2.AbleToScale, corev1.ConditionTrue, reason, message)
}

func scaleUpWindow(b *autoscalingv2.HorizontalPodAutoscalerBehavior) time.Duration {
	if w := scaleUpRules(b).StabilizationWindowSeconds; w != nil {
		return seconds(*w)
	}
	return 0
}

func scaleDownWindow(b *autoscalingv2.HorizontalPodAutoscalerBehavior, s *Settings) time.Duration {
	if w := scaleDownRules(b).StabilizationWindowSeconds; w != nil {
		return seconds(*w)
	}
	return seconds(toInt32(s.DownscaleStabilization.Seconds()))
}

// LongestWindow returns how far back recommendations matter.
func LongestWindow(spec *autoscalingv2.HorizontalPodAutoscalerSpec, s *Settings) time.Duration {
	if spec.Behavior == nil {
		return s.DownscaleStabilization
	}
	return max(scaleUpWindow(spec.Behavior), scaleDownWindow(spec.Behavior, s))
}
