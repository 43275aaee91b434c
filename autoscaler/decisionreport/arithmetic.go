package decisionreport

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-metrics/weir/autoscaler"
)

// The arithmetic is written so that it can be checked by hand: the numbers it
// starts from, the ratio, the rounding.

// arithmetic writes how a metric's count came about.
func (t *teller) arithmetic(m *autoscaler.MetricDecision, s shape) string {
	var line strings.Builder
	line.WriteString(t.operands(m, s))
	r := ratio(m.Ratio)
	switch {
	case m.Recounted:
		fmt.Fprintf(&line, " = %s", r)
	case s.scope == perReplica && m.Outcome == autoscaler.Scaled:
		if m.Total == math.MaxInt64 {
			fmt.Fprintf(&line, "; asks for %d", m.Proposal)
			break
		}
		// The count is rounded up from the whole value, not from the ratio.
		fmt.Fprintf(&line, " = %s; ceil(%s / %s) = %d", r, s.unit.words(m.Total), s.unit.words(m.Target), m.Proposal)
	case m.Outcome == autoscaler.Scaled:
		fmt.Fprintf(&line, " = %s; ceil(%s × %d) = %d", r, r, m.Count, m.Proposal)
	case m.Outcome == autoscaler.FromZero && s.scope == perReplica:
		return fmt.Sprintf("from zero replicas: ceil(%s / %s) = %d", s.unit.words(m.Total), s.unit.words(m.Target), m.Proposal)
	case m.Outcome == autoscaler.FromZero:
		fmt.Fprintf(&line, " = %s; from zero replicas: ceil(%s) = %d", r, r, m.Proposal)
	case m.Outcome == autoscaler.WithinTolerance:
		fmt.Fprintf(&line, " = %s, %s: stays %d%s", r, tolerance(m), m.Proposal, t.observed(m))
	default:
		fmt.Fprintf(&line, " = %s", r)
	}
	return line.String()
}

// operands writes what the ratio is the ratio of, up to the division.
func (t *teller) operands(m *autoscaler.MetricDecision, s shape) string {
	switch {
	case m.Percent:
		usage, requests := sums(m)
		return fmt.Sprintf("%s of %s requested, over %s: %d%% / %d%%", s.unit.words(usage), s.unit.words(requests), t.counted(m), m.Utilization, m.Target)
	case s.scope == perPod:
		return fmt.Sprintf("%s a pod, over %s%s: %s / %s", s.unit.words(m.Usage), t.counted(m), strangers(m), s.unit.words(m.Usage), s.unit.words(m.Target))
	case s.scope == perReplica && m.Total == math.MaxInt64:
		return fmt.Sprintf("the values add up to less than nothing, or to more than can be counted, and Kubernetes takes both for the latter: over %s", plural(m.Count, "replica"))
	case s.scope == perReplica:
		return fmt.Sprintf("%s over %s: %s / (%d × %s)", s.unit.words(m.Total), plural(m.Count, "replica"), s.unit.words(m.Total), m.Count, s.unit.words(m.Target))
	case m.Outcome == autoscaler.Scaled:
		return fmt.Sprintf("over %s: %s / %s", t.counted(m), s.unit.words(m.Usage), s.unit.words(m.Target))
	}
	return fmt.Sprintf("%s / %s", s.unit.words(m.Usage), s.unit.words(m.Target))
}

// counted says over how many pods a ratio is. Readiness matters to CPU, and to the
// pods that a whole value is multiplied with.
func (t *teller) counted(m *autoscaler.MetricDecision) string {
	if s := t.shape(m); s.scope == perPod && s.unit != cores {
		return plural(m.Count, "pod")
	}
	return plural(m.Count, "ready pod")
}

// strangers says that an average has samples of other pods in it.
func strangers(m *autoscaler.MetricDecision) string {
	n := 0
	for i := range m.Pods {
		if m.Pods[i].Class == autoscaler.Stranger {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %s that the target does not have", plural(n, "pod"))
}

// observed says where a count that stays comes from, if it is not the one asked for.
func (t *teller) observed(m *autoscaler.MetricDecision) string {
	if m.Proposal == t.Current {
		return ""
	}
	return fmt.Sprintf(", the count that the target's status has (it asks for %d)", t.Current)
}

// others names the pods that were given a number when the ratio was recounted.
func others(m *autoscaler.MetricDecision) string {
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

// recounted says where a metric is once it was recounted.
func (t *teller) recounted(m *autoscaler.MetricDecision) string {
	at := int64(math.Round(m.Ratio2 * float64(m.Target)))
	if m.Percent {
		return fmt.Sprintf("%d%%", at)
	}
	return t.shape(m).unit.words(at) + " a pod"
}

// sums adds what the pods that count use and request.
func sums(m *autoscaler.MetricDecision) (usage, requests int64) {
	for i := range m.Pods {
		if p := &m.Pods[i]; p.Class == autoscaler.Counted && p.HasSample {
			usage += p.Usage
			requests += p.Request
		}
	}
	return usage, requests
}

// tolerance says within which bound a ratio lies.
func tolerance(m *autoscaler.MetricDecision) string {
	if m.ToleranceDown == m.ToleranceUp {
		return fmt.Sprintf("within the tolerance of %s%%", decimal(m.ToleranceUp*100, 2))
	}
	return fmt.Sprintf("within the tolerance of %s%% down and %s%% up", decimal(m.ToleranceDown*100, 2), decimal(m.ToleranceUp*100, 2))
}

// recount writes how the ratio came about in which pods without a number have one
// that holds the change back.
func (t *teller) recount(m *autoscaler.MetricDecision, s shape) string {
	var line strings.Builder
	line.WriteString(strings.Join(assumptions(m, s), "; "))
	if m.Percent {
		usage, requests := sums(m)
		for i := range m.Pods {
			if p := &m.Pods[i]; p.HasAssumed {
				usage += p.Assumed
				requests += p.Request
			}
		}
		if requests > 0 {
			fmt.Fprintf(&line, ": %s of %s requested is %d%%; %[3]d%% / %[4]d%%", s.unit.words(usage), s.unit.words(requests), usage*100/requests, m.Target)
		}
	} else if m.Target != 0 {
		average := int64(math.Round(m.Ratio2 * float64(m.Target)))
		fmt.Fprintf(&line, ": %s a pod; %[1]s / %s", s.unit.words(average), s.unit.words(m.Target))
	}
	r := ratio(m.Ratio2)
	switch m.Outcome {
	case autoscaler.WithinTolerance:
		fmt.Fprintf(&line, " = %s, %s: stays %d", r, tolerance(m), m.Proposal)
	case autoscaler.WouldTurn:
		if (m.Ratio > 1) != (m.Ratio2 > 1) {
			fmt.Fprintf(&line, " = %s, which would turn the change round: stays %d", r, m.Proposal)
			break
		}
		fmt.Fprintf(&line, " = %s; ceil(%s × %d) = %d would turn the change round: stays %d", r, r, m.Count2, int64(math.Ceil(m.Ratio2*float64(m.Count2))), m.Proposal)
	default:
		fmt.Fprintf(&line, " = %s; ceil(%s × %d) = %d", r, r, m.Count2, m.Proposal)
	}
	return line.String()
}

// assumptions say what was taken for the usage of pods without a number, in words.
func assumptions(m *autoscaler.MetricDecision, s shape) (all []string) {
	type kind struct {
		class autoscaler.Class
		much  bool
	}
	counts, amount := map[kind]int{}, map[kind]int64{}
	for i := range m.Pods {
		if p := &m.Pods[i]; p.HasAssumed {
			k := kind{p.Class, p.Assumed > 0}
			counts[k]++
			amount[k] += p.Assumed
		}
	}
	for _, of := range []struct {
		class autoscaler.Class
		words string
	}{{autoscaler.Missing, "without a number"}, {autoscaler.Unready, "not ready"}} {
		for _, much := range []bool{true, false} {
			k := kind{of.class, much}
			n := counts[k]
			if n == 0 {
				continue
			}
			taken := "nothing"
			if much {
				taken = s.unit.words(amount[k])
				if n > 1 {
					taken += " together"
				}
			}
			is := "is"
			if n > 1 {
				is = "are"
			}
			all = append(all, fmt.Sprintf("%s %s %s taken to use %s", plural(n, "pod"), of.words, is, taken))
		}
	}
	if len(all) == 0 { // pods without a number, at a ratio of exactly 1
		all = append(all, "counted anew with the pods without a number")
	}
	return all
}
