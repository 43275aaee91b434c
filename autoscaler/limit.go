package autoscaler

import (
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// limitPlainly holds a count within its bounds, for a specification without a
// behavior: at most twice the current count (or 4) at once.
func (d *Decision) limitPlainly(in *Input, from int32) int32 {
	to, why := d.atLeast(from), tooFew
	if to == from {
		double := toInt32(math.Max(2*float64(d.Current), 4))
		if why = tooMany; in.Spec.MaxReplicas > double {
			why = tooFastUp
		}
		to = d.atMost(StepDoubling, to, double)
		to = d.atMost(StepMax, to, in.Spec.MaxReplicas)
	}
	d.limited(from, to, why)
	return to
}

// limit holds a count within its bounds and within what the policies of a behavior
// allow.
func (d *Decision) limit(in *Input, from int32) int32 {
	to, why := from, withinRange
	switch {
	case from > d.Current:
		s := d.upLimit(in)
		if s.Limit = max(s.Limit, d.Current); in.Spec.MaxReplicas > s.Limit {
			why = tooFastUp
		} else {
			why = tooMany
		}
		s.Kind, s.From, s.To = StepPolicyUp, from, min(from, s.Limit)
		d.step(s)
		to = d.atMost(StepMax, s.To, in.Spec.MaxReplicas)
	case from < d.Current:
		s := d.downLimit(in)
		if s.Limit = min(s.Limit, d.Current); d.lowest < s.Limit {
			why = tooFastDown
		} else {
			why = tooFew
		}
		s.Kind, s.From, s.To = StepPolicyDown, from, max(from, s.Limit)
		d.step(s)
		to = d.atLeast(s.To)
	}
	d.limited(from, to, why)
	return to
}

func (d *Decision) atMost(kind StepKind, from, limit int32) int32 {
	to := min(from, limit)
	d.step(Step{Kind: kind, From: from, To: to, Limit: limit})
	return to
}

func (d *Decision) atLeast(from int32) int32 {
	to := max(from, d.lowest)
	d.step(Step{Kind: StepMin, From: from, To: to, Limit: d.lowest})
	return to
}

// reason is why a count is held back, and how a condition says it.
type reason struct{ name, message string }

var (
	withinRange = reason{"DesiredWithinRange", "the count is within its bounds"}
	tooFew      = reason{"TooFewReplicas", "fewer replicas are asked for than minReplicas allows"}
	tooMany     = reason{"TooManyReplicas", "more replicas are asked for than maxReplicas allows"}
	tooFastUp   = reason{"ScaleUpLimit", "more replicas are asked for than may be added at once"}
	tooFastDown = reason{"ScaleDownLimit", "fewer replicas are asked for than may be removed at once"}
)

func (d *Decision) limited(from, to int32, r reason) {
	status := corev1.ConditionTrue
	if to == from {
		status, r = corev1.ConditionFalse, withinRange
	}
	d.set(autoscalingv2.ScalingLimited, status, r.name, r.message)
}

// upLimit returns a step with how many replicas the policies allow, and the policy that
// decided.
func (d *Decision) upLimit(in *Input) Step {
	rules := upRules(in.Spec.Behavior)
	return d.policyLimit(in, rules, selectPolicy(rules) == autoscalingv2.MinChangePolicySelect, func(start int32, p *autoscalingv2.HPAScalingPolicy) int32 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return start + p.Value
		}
		// Rounded up, so that a small percentage of few replicas is not none.
		return toInt32(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
	})
}

// downLimit is upLimit's counterpart: how few the policies allow.
func (d *Decision) downLimit(in *Input) Step {
	rules := downRules(in.Spec.Behavior)
	return d.policyLimit(in, rules, selectPolicy(rules) != autoscalingv2.MinChangePolicySelect, func(start int32, p *autoscalingv2.HPAScalingPolicy) int32 {
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return start - p.Value
		}
		return toInt32(float64(start) * (1 - float64(p.Value)/100))
	})
}

// policyLimit returns a step with the lowest or the highest count that a policy of rules
// allows. Each starts from the count that its period began with.
func (d *Decision) policyLimit(in *Input, rules *autoscalingv2.HPAScalingRules, lowest bool, allows func(start int32, p *autoscalingv2.HPAScalingPolicy) int32) Step {
	if selectPolicy(rules) == autoscalingv2.DisabledPolicySelect {
		return Step{Limit: d.Current}
	}
	// Where there is no policy this is left, as it is with Kubernetes.
	best := Step{Limit: math.MinInt32}
	if lowest {
		best.Limit = math.MaxInt32
	}
	for i := range rules.Policies {
		s := d.period(in, &rules.Policies[i])
		s.Limit = allows(d.Current-s.Added+s.Removed, s.Policy)
		if best.Policy == nil || lowest && s.Limit < best.Limit || !lowest && s.Limit > best.Limit {
			best = s
		}
	}
	return best
}

// period returns a step with what was changed within a policy's period.
func (d *Decision) period(in *Input, p *autoscalingv2.HPAScalingPolicy) Step {
	period := seconds(p.PeriodSeconds)
	return Step{
		Policy:  p,
		Window:  period,
		Added:   within(d.Memory.Ups, period, in.Now),
		Removed: within(d.Memory.Downs, period, in.Now),
	}
}

func selectPolicy(r *autoscalingv2.HPAScalingRules) autoscalingv2.ScalingPolicySelect {
	if r.SelectPolicy == nil {
		return autoscalingv2.MaxChangePolicySelect
	}
	return *r.SelectPolicy
}
