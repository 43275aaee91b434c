package decisionreport

import (
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// nextChanges predicts changes that need no new metric: when a recommendation leaves its window,
// and when a policy allows a larger change.
func (re *reporter) nextChanges() []NextChange {
	for i := range re.Steps {
		s := &re.Steps[i]
		switch {
		case s.Kind == autoscaler.StepStabilizeDown && s.To > s.From && re.Desired <= re.Current:
			return re.expiringRecommendations(s, func(a, b int32) bool { return a > b })
		case s.Kind == autoscaler.StepStabilizeUp && s.To < s.From && re.Desired >= re.Current:
			return re.expiringRecommendations(s, func(a, b int32) bool { return a < b })
		case s.Kind == autoscaler.StepPolicyUp && s.To < s.From:
			return re.policyAllowance(s, re.Memory.Ups)
		case s.Kind == autoscaler.StepPolicyDown && s.To > s.From:
			return re.policyAllowance(s, re.Memory.Downs)
		case s.Kind == autoscaler.StepDoubling && s.To < s.From && re.Rescale:
			return []NextChange{{Message: "the next decision may double again"}}
		}
	}
	return nil
}

// maxNext is the number of changes that are predicted.
const maxNext = 3

// expiringRecommendations predicts the counts after recommendations have left the window of a step.
// beyond(a, b) reports whether recommendation a limits the change more than b.
func (re *reporter) expiringRecommendations(s *autoscaler.DerivationStep, beyond func(a, b int32) bool) (all []NextChange) {
	now, limit := re.Desired, s.Limit
	for len(all) < maxNext && beyond(limit, s.From) {
		// The count stays until the last recommendation that limits at least as much has left the window.
		var last time.Time
		for _, r := range re.Memory.Recommendations {
			if !beyond(limit, r.Replicas) && r.At.After(last) && r.At.Add(s.Window).After(re.At) {
				last = r.At
			}
		}
		if last.IsZero() {
			return all
		}
		leaves := last.Add(s.Window)
		replicas := s.From
		for _, r := range re.Memory.Recommendations {
			if r.At.After(last) && beyond(r.Replicas, replicas) {
				replicas = r.Replicas
			}
		}
		count := re.withinBounds(replicas)
		if !beyond(now, count) {
			count = now // a window only delays a change
		}
		limit = replicas
		if count == now {
			continue
		}
		n := NextChange{At: leaves.UTC(), Message: fmt.Sprintf("if the metrics stay as they are: %s at %s, when the recommendation of %s leaves the window", humanize.Count(count, "replica"), humanize.Clock(leaves, re.At), humanize.Clock(last, re.At))}
		if re.limitedByPolicy(now, count) {
			n.Message = fmt.Sprintf("if the metrics stay as they are: towards %s from %s on, in the steps that the policies allow", humanize.Count(count, "replica"), humanize.Clock(leaves, re.At))
			return append(all, n)
		}
		n.Replicas = &count
		all, now = append(all, n), count
	}
	return all
}

// withinBounds limits a count to the bounds of the specification.
func (re *reporter) withinBounds(n int32) int32 {
	if re.maxReplicas > 0 {
		n = min(n, re.maxReplicas)
	}
	return max(n, re.minReplicas)
}

// limitedByPolicy reports whether the policies allow less than the whole change at once.
func (re *reporter) limitedByPolicy(from, to int32) bool {
	if re.Input == nil || re.Input.Spec == nil || re.Input.Spec.Behavior == nil {
		return to > max(2*from, 4) // without a behavior a count at most doubles
	}
	rules := re.Input.Spec.Behavior.ScaleDown
	if to > from {
		rules = re.Input.Spec.Behavior.ScaleUp
	}
	if rules == nil || len(rules.Policies) == 0 {
		return false
	}
	least := rules.SelectPolicy != nil && *rules.SelectPolicy == autoscalingv2.MinChangePolicySelect
	if rules.SelectPolicy != nil && *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return true
	}
	change, allowed := math.Abs(float64(to-from)), -1.0
	for _, p := range rules.Policies {
		amount := float64(p.Value)
		if p.Type == autoscalingv2.PercentScalingPolicy {
			amount = math.Ceil(float64(from) * float64(p.Value) / 100)
		}
		if allowed < 0 || least == (amount < allowed) {
			allowed = amount
		}
	}
	return allowed < change
}

// policyAllowance predicts when a policy allows a larger change: after the oldest change has left
// its period.
func (re *reporter) policyAllowance(s *autoscaler.DerivationStep, changes []autoscaler.ReplicaChange) []NextChange {
	if s.Policy == nil {
		return nil
	}
	period := time.Duration(s.Policy.PeriodSeconds) * time.Second
	var oldest time.Time
	if re.Rescale {
		oldest = re.At
	}
	for _, c := range changes {
		if c.At.Add(period).After(re.At) && (oldest.IsZero() || c.At.Before(oldest)) {
			oldest = c.At
		}
	}
	if oldest.IsZero() {
		return nil
	}
	at := oldest.Add(period)
	return []NextChange{{At: at.UTC(), Message: fmt.Sprintf("if the metrics stay as they are: the policy of %s allows more at %s", policyText(s.Policy), humanize.Clock(at, re.At))}}
}
