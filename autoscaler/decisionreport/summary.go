package decisionreport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// summary returns the decision and its reason in one sentence.
func (re *reporter) summary(missing []MissingCause) string {
	line := fmt.Sprintf("%s: %s", re.Object.Name, re.changeText())
	switch reason := re.reasonText(missing); {
	case reason == "":
	case re.undecided() && re.Err != nil && reason == re.Err.Error():
		line += ": " + reason
	default:
		line += ", because " + reason
	}
	if re.WriteErr != nil {
		line += fmt.Sprintf("; but that could not be written: %v", re.WriteErr)
	}
	return line
}

// changeText describes how the count changes.
func (re *reporter) changeText() string {
	count := humanize.Count(re.Current, "replica")
	switch acts := re.Mode == Active; {
	case re.undecided() && len(re.Steps) == 0 && len(re.Metrics) == 0 && re.Current == 0 && re.Desired == 0:
		return "no decision" // the count is not known either
	case re.undecided():
		return "no decision, stays at " + count
	case re.Desired == re.Current && acts:
		return "stays at " + count
	case re.Desired == re.Current:
		return "would stay at " + count
	case acts:
		return fmt.Sprintf("%d → %s", re.Current, humanize.Count(re.Desired, "replica"))
	}
	return fmt.Sprintf("would go %d → %s", re.Current, humanize.Count(re.Desired, "replica"))
}

// undecided reports whether an error prevented a decision.
func (re *reporter) undecided() bool {
	proposed := slices.ContainsFunc(re.Steps, func(s autoscaler.DerivationStep) bool { return s.Kind == autoscaler.StepPropose })
	return re.Err != nil && !re.Rescale && !proposed
}

// reasonText explains why the decision was made.
func (re *reporter) reasonText(missing []MissingCause) string {
	unknown := re.failedMetricsText(missing)
	if re.undecided() {
		if unknown != "" {
			return unknown
		}
		return re.Err.Error()
	}
	if text := re.unmeasuredText(); text != "" {
		return text
	}
	if re.Chosen < 0 || re.Chosen >= len(re.Metrics) {
		return unknown
	}
	m := &re.Metrics[re.Chosen]
	reason := re.levelText(m) + re.outcomeText(m) + re.limitText(m)
	if unknown != "" {
		reason += "; " + unknown
	}
	return reason
}

// outcomeText explains how the outcome of a metric follows from its level; empty if that is plain.
func (re *reporter) outcomeText(m *autoscaler.MetricDecision) string {
	assumed := "; with an assumed usage for " + assumedPodsText(m)
	switch {
	case m.Outcome == autoscaler.WithinTolerance && m.Recounted:
		return assumed + " it is " + toleranceText(m)
	case m.Outcome == autoscaler.WithinTolerance:
		return ", " + toleranceText(m) + re.statusCountNote(m)
	case m.Outcome == autoscaler.WouldReverse:
		return assumed + " the change would reverse"
	case m.Outcome == autoscaler.Scaled && m.Recounted:
		return assumed + " it is at " + re.recountedLevel(m)
	case m.Outcome == autoscaler.Scaled && re.format(m).scope != perReplica && m.Count != int(re.Current):
		return ", over " + re.countedText(m)
	}
	return ""
}

// unmeasuredText returns the reason of a decision that reads no metric; empty for others.
func (re *reporter) unmeasuredText() string {
	for i := range re.Steps {
		switch s := &re.Steps[i]; s.Kind {
		case autoscaler.StepDisabled:
			return "the target has 0 replicas, which disables autoscaling"
		case autoscaler.StepAboveMax:
			return fmt.Sprintf("maxReplicas is %d", s.Limit)
		case autoscaler.StepBelowMin:
			return fmt.Sprintf("minReplicas is %d", s.Limit)
		}
	}
	return ""
}

// limitText explains why the count is not the one that the metrics require.
func (re *reporter) limitText(m *autoscaler.MetricDecision) string {
	asks := fmt.Sprintf("; that asks for %d, but ", m.Proposal)
	for i := len(re.Steps) - 1; i >= 0; i-- {
		s := &re.Steps[i]
		if s.From == s.To {
			continue
		}
		switch s.Kind {
		case autoscaler.StepStabilizeDown, autoscaler.StepStabilizeUp:
			direction := map[bool]string{true: "scaleDown", false: "scaleUp"}[s.Kind == autoscaler.StepStabilizeDown]
			return fmt.Sprintf("%s%d was recommended at %s, within the %s window of %s", asks, s.Limit, humanize.Clock(s.At, re.At), direction, humanize.Duration(s.Window))
		case autoscaler.StepPolicyUp, autoscaler.StepPolicyDown:
			direction := map[bool]string{true: "scaleUp", false: "scaleDown"}[s.Kind == autoscaler.StepPolicyUp]
			if s.Policy == nil {
				return fmt.Sprintf("%s%s is Disabled", asks, direction)
			}
			most := map[bool]string{true: "at most", false: "at least"}[s.Kind == autoscaler.StepPolicyUp]
			return fmt.Sprintf("%sthe %s policy of %s allows %s %d", asks, direction, policyText(s.Policy), most, s.Limit)
		case autoscaler.StepDoubling:
			return fmt.Sprintf("%sa count at most doubles in one step", asks)
		case autoscaler.StepMax:
			return fmt.Sprintf("%smaxReplicas is %d", asks, s.Limit)
		case autoscaler.StepMin, autoscaler.StepLeaveZero:
			return fmt.Sprintf("%sminReplicas is %d", asks, s.Limit)
		}
	}
	return ""
}

// failedMetricsText shows which metrics failed, with the first reason; empty if none failed.
func (re *reporter) failedMetricsText(missing []MissingCause) string {
	var names []string
	for i := range re.Metrics {
		if re.Metrics[i].Err != nil {
			names = append(names, re.Metrics[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	line := fmt.Sprintf("%s %s <unknown>", strings.Join(names, " and "), humanize.IsAre(len(names)))
	c := firstCause(missing, names[0])
	switch {
	case c == nil:
		return line
	case len(c.Pods) == 0 || c.Reason == missingRequest:
		return line + ": " + c.Message
	case len(c.Pods) == 1:
		return fmt.Sprintf("%s: pod %s: %s", line, c.Pods[0], c.Message)
	}
	return fmt.Sprintf("%s: %s: %s", line, humanize.Count(len(c.Pods), "pod"), c.Message)
}

// firstCause returns the cause to report for a metric. A cause without pods comes first, because
// then the whole metric could not be read.
func firstCause(missing []MissingCause, name string) (found *MissingCause) {
	for i := range missing {
		c := &missing[i]
		if c.Metric == name && (found == nil || len(found.Pods) > 0 && len(c.Pods) == 0) {
			found = c
		}
	}
	return found
}
