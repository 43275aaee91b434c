package replay

import (
	"errors"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// describeDecision returns a decision in one line: the metric that decided, and then each limit
// that changed the count.
func describeDecision(d *autoscaler.Decision) string {
	var parts []string
	if d.Chosen >= 0 && d.Chosen < len(d.Metrics) && d.Metrics[d.Chosen].Err == nil {
		parts = append(parts, describeMetric(&d.Metrics[d.Chosen]))
	}
	for i := range d.Steps {
		if s := describeStep(&d.Steps[i]); s != "" {
			parts = append(parts, s)
		}
	}
	for i := range d.Metrics {
		if m := &d.Metrics[i]; m.Err != nil {
			parts = append(parts, fmt.Sprintf("%s failed: %v", m.Name, rootError(m.Err)))
		}
	}
	if d.Err != nil && len(parts) == 0 {
		parts = append(parts, "no decision: "+d.Err.Error())
	}
	return strings.Join(parts, "; ")
}

// rootError returns the innermost error.
func rootError(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// describeMetric returns a metric and its proposal as text: "cpu 84% of 60% asks for 7".
func describeMetric(m *autoscaler.MetricDecision) string {
	use, target := quantity(m.Name, m.Usage), quantity(m.Name, m.Target)
	if m.Percent {
		use, target = fmt.Sprintf("%d%%", m.Utilization), fmt.Sprintf("%d%%", m.Target)
	}
	s := fmt.Sprintf("%s %s of %s", m.Name, use, target)
	switch m.Outcome {
	case autoscaler.WithinTolerance:
		return s + " is within tolerance"
	case autoscaler.WouldReverse:
		return s + ", but pods without a number could reverse it"
	}
	return fmt.Sprintf("%s asks for %d", s, m.Proposal)
}

// quantity formats thousandths: 250m, 12Mi.
func quantity(metric string, milli int64) string {
	switch {
	case strings.HasPrefix(metric, "memory"):
		return humanize.Bytes(float64(milli) / 1000)
	case strings.HasPrefix(metric, "cpu"):
		return humanize.Cores(float64(milli) * 1e6)
	}
	return humanize.Decimal(float64(milli)/1000, 3)
}

// describeStep returns a limit that changed the count as text; empty if it changed nothing.
func describeStep(s *autoscaler.DerivationStep) string {
	if s.Kind == autoscaler.StepDisabled {
		return "at 0 replicas: not scaled"
	}
	if s.From == s.To || s.Kind == autoscaler.StepPropose {
		return ""
	}
	switch s.Kind {
	case autoscaler.StepAboveMax:
		return fmt.Sprintf("above maxReplicas %d", s.To)
	case autoscaler.StepBelowMin:
		return fmt.Sprintf("below minReplicas %d", s.To)
	case autoscaler.StepStabilizeDown, autoscaler.StepStabilizeUp:
		return fmt.Sprintf("kept at %d by the window of %s", s.To, humanize.Duration(s.Window))
	case autoscaler.StepPolicyUp, autoscaler.StepPolicyDown:
		return describePolicy(s)
	case autoscaler.StepDoubling:
		return fmt.Sprintf("at most doubled: %d", s.To)
	case autoscaler.StepMax:
		return fmt.Sprintf("at most %d", s.To)
	case autoscaler.StepMin, autoscaler.StepLeaveZero:
		return fmt.Sprintf("at least %d", s.To)
	}
	return ""
}

func describePolicy(s *autoscaler.DerivationStep) string {
	if s.Policy == nil {
		return fmt.Sprintf("kept at %d: scaling this way is disabled", s.To)
	}
	each := fmt.Sprintf("%d pods", s.Policy.Value)
	if s.Policy.Type == autoscalingv2.PercentScalingPolicy {
		each = fmt.Sprintf("%d%%", s.Policy.Value)
	}
	return fmt.Sprintf("%d by the policy %s in %s", s.To, each, humanize.Duration(time.Duration(s.Policy.PeriodSeconds)*time.Second))
}
