package autoscaler

import (
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// limitPlainly holds a count within its bounds, for a specification without a
// behavior: at most twice the current count (or 4) at once.
func (d *Decision) limitPlainly(in *Input, from int32) int32 {
	to, why := from, withinRange
	if to = d.atLeast(to); to != from {
		why = tooFew
	} else {
		double := toInt32(math.Max(2*float64(d.Current), 4))
		if in.Spec.MaxReplicas > double {
			why = tooFastUp
		} else {
			why = tooMany
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

// upLimit returns a step with the count that the policies allow and the policy that
// decided. Each policy starts from the count its period began with.
func (d *Decision) upLimit(in *Input) Step {
	rules := upRules(in.Spec.Behavior)
	choose := selectPolicy(rules)
	if choose == autoscalingv2.DisabledPolicySelect {
		return Step{Limit: d.Current}
	}
	lowest := choose == autoscalingv2.MinChangePolicySelect
	best := Step{Limit: math.MinInt32}
	if lowest {
		best.Limit = math.MaxInt32
	}
	var allowed int32
	for i := range rules.Policies {
		p := &rules.Policies[i]
		s := d.period(in, p)
		start := d.Current - s.Added + s.Removed
		switch p.Type {
		case autoscalingv2.PodsScalingPolicy:
			allowed = start + p.Value
		case autoscalingv2.PercentScalingPolicy:
			// Rounded up, so that a small percentage of few replicas is not none.
			allowed = toInt32(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
		}
		s.Limit = allowed
		if best.Policy == nil || lowest && allowed < best.Limit || !lowest && allowed > best.Limit {
			best = s
		}
	}
	return best
}

// downLimit is upLimit's counterpart: how few the policies allow.
func (d *Decision) downLimit(in *Input) Step {
	rules := downRules(in.Spec.Behavior)
	choose := selectPolicy(rules)
	if choose == autoscalingv2.DisabledPolicySelect {
		return Step{Limit: d.Current}
	}
	highest := choose == autoscalingv2.MinChangePolicySelect
	best := Step{Limit: math.MaxInt32}
	if highest {
		best.Limit = math.MinInt32
	}
	var allowed int32
	for i := range rules.Policies {
		p := &rules.Policies[i]
		s := d.period(in, p)
		start := d.Current - s.Added + s.Removed
		switch p.Type {
		case autoscalingv2.PodsScalingPolicy:
			allowed = start - p.Value
		case autoscalingv2.PercentScalingPolicy:
			allowed = toInt32(float64(start) * (1 - float64(p.Value)/100))
		}
		s.Limit = allowed
		if best.Policy == nil || highest && allowed > best.Limit || !highest && allowed < best.Limit {
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
