package decisionreport

import (
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// hasLimit has the kinds of steps that compare the count with a bound.
var hasLimit = map[autoscaler.StepKind]bool{
	autoscaler.StepAboveMax: true, autoscaler.StepBelowMin: true, autoscaler.StepPolicyUp: true, autoscaler.StepPolicyDown: true,
	autoscaler.StepDoubling: true, autoscaler.StepMax: true, autoscaler.StepMin: true, autoscaler.StepLeaveZero: true,
}

// stepReport returns the report of one step.
func (re *reporter) stepReport(s *autoscaler.DerivationStep) StepReport {
	out := StepReport{Kind: s.Kind.String(), From: s.From, To: s.To, At: s.At.UTC(), Message: re.stepText(s)}
	if hasLimit[s.Kind] {
		limit := s.Limit
		out.Limit = &limit
	}
	if s.Window > 0 {
		out.Window = s.Window.String()
	}
	if s.Policy != nil {
		out.Policy = policyText(s.Policy)
	}
	return out
}

// policyText formats a policy: "4 pods per 15s", "100% per 15s".
func policyText(p *autoscalingv2.HPAScalingPolicy) string {
	per := humanize.Duration(time.Duration(p.PeriodSeconds) * time.Second)
	if p.Type == autoscalingv2.PercentScalingPolicy {
		return fmt.Sprintf("%d%% per %s", p.Value, per)
	}
	return fmt.Sprintf("%s per %s", humanize.Count(p.Value, "pod"), per)
}

// stepText describes what a step did.
func (re *reporter) stepText(s *autoscaler.DerivationStep) string {
	became := fmt.Sprintf("stays %d", s.To)
	if s.From != s.To {
		became = fmt.Sprintf("%d becomes %d", s.From, s.To)
	}
	switch s.Kind {
	case autoscaler.StepDisabled:
		return "the target has 0 replicas, which disables autoscaling"
	case autoscaler.StepAboveMax:
		return fmt.Sprintf("maxReplicas is %d: %s, and no metric is read", s.Limit, became)
	case autoscaler.StepBelowMin:
		return fmt.Sprintf("minReplicas is %d: %s, and no metric is read", s.Limit, became)
	case autoscaler.StepPropose:
		return re.proposalText(s)
	case autoscaler.StepStabilizeDown, autoscaler.StepStabilizeUp:
		return re.stabilizationText(s, became)
	case autoscaler.StepPolicyUp, autoscaler.StepPolicyDown:
		return re.allowanceText(s, became)
	case autoscaler.StepDoubling:
		return fmt.Sprintf("without spec.behavior at most %d in one step, twice the current count or 4: %s", s.Limit, became)
	case autoscaler.StepMax:
		return fmt.Sprintf("maxReplicas %d: %s", s.Limit, became)
	case autoscaler.StepMin:
		return fmt.Sprintf("minReplicas %d: %s", s.Limit, became)
	case autoscaler.StepLeaveZero:
		return fmt.Sprintf("a target that leaves 0 replicas gets at least minReplicas, %d: %s", s.Limit, became)
	}
	return became
}

// proposalText shows which metric requires the highest count.
func (re *reporter) proposalText(s *autoscaler.DerivationStep) string {
	var asked []string
	for i := range re.Metrics {
		m := &re.Metrics[i]
		if m.Err != nil {
			asked = append(asked, m.Name+" <unknown>")
			continue
		}
		asked = append(asked, fmt.Sprintf("%s %d", m.Name, m.Proposal))
	}
	switch len(asked) {
	case 0:
		return "there is no metric"
	case 1:
		return fmt.Sprintf("%s asks for %d", re.Metrics[0].Name, s.To)
	}
	return fmt.Sprintf("the metrics ask for %d, the most of %s", s.To, strings.Join(asked, ", "))
}

// stabilizationText shows which recommendation of a window decided.
func (re *reporter) stabilizationText(s *autoscaler.DerivationStep, became string) string {
	direction, extreme := "scaleDown", "higher"
	if s.Kind == autoscaler.StepStabilizeUp {
		direction, extreme = "scaleUp", "lower"
	}
	if s.Window <= 0 {
		return fmt.Sprintf("no %s window: %s", direction, became)
	}
	window := fmt.Sprintf("%s window of %s", direction, humanize.Duration(s.Window))
	if s.From == s.To {
		return fmt.Sprintf("%s: nothing %s was recommended in it, %s", window, extreme, became)
	}
	return fmt.Sprintf("%s: %d was recommended at %s, so %s", window, s.Limit, humanize.Clock(s.At, re.At), became)
}

// allowanceText describes what a policy allows.
func (re *reporter) allowanceText(s *autoscaler.DerivationStep, became string) string {
	direction, most, changed, done := "scaleUp", "at most", s.Added, "added"
	if s.Kind == autoscaler.StepPolicyDown {
		direction, most, changed, done = "scaleDown", "at least", s.Removed, "removed"
	}
	if s.Policy == nil {
		if s.Limit == re.Current {
			return fmt.Sprintf("%s is Disabled: %s", direction, became)
		}
		return fmt.Sprintf("%s policies allow %s %d: %s", direction, most, s.Limit, became)
	}
	line := fmt.Sprintf("%s policy of %s allows %s %d", direction, policyText(s.Policy), most, s.Limit)
	if changed > 0 {
		line += fmt.Sprintf(" (%d %s within that time)", changed, done)
	}
	return line + ": " + became
}
