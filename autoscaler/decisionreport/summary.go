package decisionreport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// summary returns the decision and its reason in one sentence.
func (t *reporter) summary(missing []MissingCause) string {
	line := fmt.Sprintf("%s: %s", t.Object.Name, t.changeText())
	switch reason := t.reasonText(missing); {
	case reason == "":
	case t.undecided() && t.Err != nil && reason == t.Err.Error():
		line += ": " + reason
	default:
		line += ", because " + reason
	}
	if t.WriteErr != nil {
		line += fmt.Sprintf("; but that could not be written: %v", t.WriteErr)
	}
	return line
}

// changeText says how the count changes.
func (t *reporter) changeText() string {
	count := humanize.Count(t.Current, "replica")
	switch acts := t.Mode == Active; {
	case t.undecided() && len(t.Steps) == 0 && len(t.Metrics) == 0 && t.Current == 0 && t.Desired == 0:
		return "no decision" // the count is not known either
	case t.undecided():
		return "no decision, stays at " + count
	case t.Desired == t.Current && acts:
		return "stays at " + count
	case t.Desired == t.Current:
		return "would stay at " + count
	case acts:
		return fmt.Sprintf("%d → %s", t.Current, humanize.Count(t.Desired, "replica"))
	}
	return fmt.Sprintf("would go %d → %s", t.Current, humanize.Count(t.Desired, "replica"))
}

// undecided reports whether an error prevented a decision.
func (t *reporter) undecided() bool {
	return t.Err != nil && !t.Rescale && !t.hasStep(autoscaler.StepPropose)
}

func (t *reporter) hasStep(kind autoscaler.StepKind) bool {
	return slices.ContainsFunc(t.Steps, func(s autoscaler.DerivationStep) bool { return s.Kind == kind })
}

// reasonText says why the decision was made.
func (t *reporter) reasonText(missing []MissingCause) string {
	unknown := t.failedMetricsText(missing)
	if t.undecided() {
		if unknown != "" {
			return unknown
		}
		return t.Err.Error()
	}
	if text := t.unmeasuredText(); text != "" {
		return text
	}
	if t.Chosen < 0 || t.Chosen >= len(t.Metrics) {
		return unknown
	}
	m := &t.Metrics[t.Chosen]
	reason := t.levelText(m)
	switch {
	case m.Outcome == autoscaler.WithinTolerance && m.Recounted:
		reason += fmt.Sprintf("; with an assumed usage for %s it is %s", assumedPodsText(m), toleranceText(m))
	case m.Outcome == autoscaler.WithinTolerance:
		reason += ", " + toleranceText(m) + t.statusCountNote(m)
	case m.Outcome == autoscaler.WouldReverse:
		reason += fmt.Sprintf("; with an assumed usage for %s the change would reverse", assumedPodsText(m))
	case m.Outcome == autoscaler.Scaled && m.Recounted:
		reason += fmt.Sprintf("; with an assumed usage for %s it is at %s", assumedPodsText(m), t.recountedLevel(m))
	case m.Outcome == autoscaler.Scaled && t.format(m).scope != perReplica && m.Count != int(t.Current):
		reason += ", over " + t.countedText(m)
	}
	reason += t.limitText(m)
	if unknown != "" {
		reason += "; " + unknown
	}
	return reason
}

// unmeasuredText returns the reason of a decision that reads no metric; empty for others.
func (t *reporter) unmeasuredText() string {
	for i := range t.Steps {
		switch s := &t.Steps[i]; s.Kind {
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

// limitText says why the count is not the one that the metrics require.
func (t *reporter) limitText(m *autoscaler.MetricDecision) string {
	asks := fmt.Sprintf("; that asks for %d, but ", m.Proposal)
	for i := len(t.Steps) - 1; i >= 0; i-- {
		s := &t.Steps[i]
		if s.From == s.To {
			continue
		}
		switch s.Kind {
		case autoscaler.StepStabilizeDown, autoscaler.StepStabilizeUp:
			direction := map[bool]string{true: "scaleDown", false: "scaleUp"}[s.Kind == autoscaler.StepStabilizeDown]
			return fmt.Sprintf("%s%d was recommended at %s, within the %s window of %s", asks, s.Limit, humanize.Clock(s.At, t.At), direction, humanize.Duration(s.Window))
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

// failedMetricsText says which metrics failed, with the first reason; empty if none failed.
func (t *reporter) failedMetricsText(missing []MissingCause) string {
	var names []string
	for i := range t.Metrics {
		if t.Metrics[i].Err != nil {
			names = append(names, t.Metrics[i].Name)
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
