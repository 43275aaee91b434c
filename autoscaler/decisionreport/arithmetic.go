package decisionreport

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/humanize"
)

// arithmeticText returns how a metric's count was computed, with operands, ratio and rounding, so
// that a person can check it.
func (re *reporter) arithmeticText(m *autoscaler.MetricDecision, s metricFormat) string {
	var line strings.Builder
	line.WriteString(re.operandsText(m, s))
	r := formatRatio(m.Ratio)
	switch {
	case m.Recounted:
		fmt.Fprintf(&line, " = %s", r)
	case s.scope == perReplica && m.Outcome == autoscaler.Scaled:
		if m.Total == math.MaxInt64 {
			fmt.Fprintf(&line, "; asks for %d", m.Proposal)
			break
		}
		// The count is computed from the whole value and rounded up; the ratio is not used for it.
		fmt.Fprintf(&line, " = %s; ceil(%s / %s) = %d", r, s.unit.display(m.Total), s.unit.display(m.Target), m.Proposal)
	case m.Outcome == autoscaler.Scaled:
		fmt.Fprintf(&line, " = %s; ceil(%s × %d) = %d", r, r, m.Count, m.Proposal)
	case m.Outcome == autoscaler.FromZero && s.scope == perReplica:
		return fmt.Sprintf("from zero replicas: ceil(%s / %s) = %d", s.unit.display(m.Total), s.unit.display(m.Target), m.Proposal)
	case m.Outcome == autoscaler.FromZero:
		fmt.Fprintf(&line, " = %s; from zero replicas: ceil(%s) = %d", r, r, m.Proposal)
	case m.Outcome == autoscaler.WithinTolerance:
		fmt.Fprintf(&line, " = %s, %s: stays %d%s", r, toleranceText(m), m.Proposal, re.statusCountNote(m))
	default:
		fmt.Fprintf(&line, " = %s", r)
	}
	return line.String()
}

// operandsText returns the operands of the ratio, up to the division.
func (re *reporter) operandsText(m *autoscaler.MetricDecision, s metricFormat) string {
	switch {
	case m.Percent:
		usage, requests := sumCounted(m)
		return fmt.Sprintf("%s of %s requested, over %s: %d%% / %d%%", s.unit.display(usage), s.unit.display(requests), re.countedText(m), m.Utilization, m.Target)
	case s.scope == perPod:
		return fmt.Sprintf("%s a pod, over %s%s: %s / %s", s.unit.display(m.Usage), re.countedText(m), notInTargetText(m), s.unit.display(m.Usage), s.unit.display(m.Target))
	case s.scope == perReplica && m.Total == math.MaxInt64:
		return fmt.Sprintf("the sum of the values is negative or too large, and Kubernetes treats both as too large: over %s", humanize.Count(m.Count, "replica"))
	case s.scope == perReplica:
		return fmt.Sprintf("%s over %s: %s / (%d × %s)", s.unit.display(m.Total), humanize.Count(m.Count, "replica"), s.unit.display(m.Total), m.Count, s.unit.display(m.Target))
	case m.Outcome == autoscaler.Scaled:
		return fmt.Sprintf("over %s: %s / %s", re.countedText(m), s.unit.display(m.Usage), s.unit.display(m.Target))
	}
	return fmt.Sprintf("%s / %s", s.unit.display(m.Usage), s.unit.display(m.Target))
}

// countedText describes how many pods a ratio was computed over. Readiness matters only for CPU and for
// values that are multiplied by the number of pods.
func (re *reporter) countedText(m *autoscaler.MetricDecision) string {
	if s := re.format(m); s.scope == perPod && s.unit != millicores {
		return humanize.Count(m.Count, "pod")
	}
	return humanize.Count(m.Count, "ready pod")
}

// notInTargetText reports that an average includes samples of other pods.
func notInTargetText(m *autoscaler.MetricDecision) string {
	n := 0
	for i := range m.Pods {
		if m.Pods[i].Class == autoscaler.NotInTarget {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %s that the target does not own", humanize.Count(n, "pod"))
}

// statusCountNote explains a count that stays, but is not the one that the target requests.
func (re *reporter) statusCountNote(m *autoscaler.MetricDecision) string {
	if m.Proposal == re.Current {
		return ""
	}
	return fmt.Sprintf(", the count in the target's status (its spec asks for %d)", re.Current)
}

// assumedPodsText describes the pods that got an assumed usage in the recount.
func assumedPodsText(m *autoscaler.MetricDecision) string {
	missing, unready := false, false
	for i := range m.Pods {
		if p := &m.Pods[i]; p.HasAssumed {
			missing = missing || p.Class == autoscaler.Missing
			unready = unready || p.Class == autoscaler.Unready
		}
	}
	switch {
	case missing && unready:
		return "the pods that have no number or are not ready"
	case unready:
		return "the pods that are not ready"
	}
	return "the pods without a number"
}

// recountedLevel returns the usage after the recount.
func (re *reporter) recountedLevel(m *autoscaler.MetricDecision) string {
	at := int64(math.Round(m.RecountedRatio * float64(m.Target)))
	if m.Percent {
		return fmt.Sprintf("%d%%", at)
	}
	return re.format(m).unit.display(at) + " a pod"
}

// sumCounted adds up the usage and the requests of the counted pods.
func sumCounted(m *autoscaler.MetricDecision) (usage, requests int64) {
	for i := range m.Pods {
		if p := &m.Pods[i]; p.Class == autoscaler.Counted && p.HasSample {
			usage += p.Usage
			requests += p.Request
		}
	}
	return usage, requests
}

// toleranceText returns the tolerance that a ratio is within.
func toleranceText(m *autoscaler.MetricDecision) string {
	if m.ToleranceDown == m.ToleranceUp {
		return fmt.Sprintf("within the tolerance of %s%%", humanize.Decimal(m.ToleranceUp*100, 2))
	}
	return fmt.Sprintf("within the tolerance of %s%% down and %s%% up", humanize.Decimal(m.ToleranceDown*100, 2), humanize.Decimal(m.ToleranceUp*100, 2))
}

// recountText returns how the ratio was computed with an assumed usage for the pods without a
// number.
func (re *reporter) recountText(m *autoscaler.MetricDecision, s metricFormat) string {
	var line strings.Builder
	line.WriteString(strings.Join(assumptionTexts(m, s), "; "))
	if m.Percent {
		usage, requests := sumCounted(m)
		for i := range m.Pods {
			if p := &m.Pods[i]; p.HasAssumed {
				usage += p.Assumed
				requests += p.Request
			}
		}
		if requests > 0 {
			fmt.Fprintf(&line, ": %s of %s requested is %d%%; %[3]d%% / %[4]d%%", s.unit.display(usage), s.unit.display(requests), usage*100/requests, m.Target)
		}
	} else if m.Target != 0 {
		average := int64(math.Round(m.RecountedRatio * float64(m.Target)))
		fmt.Fprintf(&line, ": %s a pod; %[1]s / %s", s.unit.display(average), s.unit.display(m.Target))
	}
	r := formatRatio(m.RecountedRatio)
	switch m.Outcome {
	case autoscaler.WithinTolerance:
		fmt.Fprintf(&line, " = %s, %s: stays %d", r, toleranceText(m), m.Proposal)
	case autoscaler.WouldReverse:
		if (m.Ratio > 1) != (m.RecountedRatio > 1) {
			fmt.Fprintf(&line, " = %s, which would reverse the change: stays %d", r, m.Proposal)
			break
		}
		fmt.Fprintf(&line, " = %s; ceil(%s × %d) = %d would reverse the change: stays %d", r, r, m.RecountedPods, int64(math.Ceil(m.RecountedRatio*float64(m.RecountedPods))), m.Proposal)
	default:
		fmt.Fprintf(&line, " = %s; ceil(%s × %d) = %d", r, r, m.RecountedPods, m.Proposal)
	}
	return line.String()
}

// assumptionTexts returns the assumed usage of pods without a number.
func assumptionTexts(m *autoscaler.MetricDecision, s metricFormat) (all []string) {
	type kind struct {
		class   autoscaler.PodClass
		nonzero bool
	}
	counts, amount := map[kind]int{}, map[kind]int64{}
	for i := range m.Pods {
		if p := &m.Pods[i]; p.HasAssumed {
			k := kind{p.Class, p.Assumed > 0}
			counts[k]++
			amount[k] += p.Assumed
		}
	}
	for _, group := range []struct {
		class autoscaler.PodClass
		words string
	}{{autoscaler.Missing, "without a number"}, {autoscaler.Unready, "not ready"}} {
		for _, nonzero := range []bool{true, false} {
			k := kind{group.class, nonzero}
			n := counts[k]
			if n == 0 {
				continue
			}
			assumed := "nothing"
			if nonzero {
				assumed = s.unit.display(amount[k])
				if n > 1 {
					assumed += " together"
				}
			}
			all = append(all, fmt.Sprintf("%s %s %s assumed to use %s", humanize.Count(n, "pod"), group.words, humanize.IsAre(n), assumed))
		}
	}
	if len(all) == 0 { // a ratio of exactly 1, so no usage was assumed for the pods without a number
		all = append(all, "counted again with the pods without a number")
	}
	return all
}
