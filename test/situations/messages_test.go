package situations

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// describeAnswers returns what weir says about the situation's pod, its
// containers and its node: for each the reason for CPU, and the reason for
// memory if it differs. It also names the reason and rule of rejected
// duplicates.
//
//	pod Incomplete, app CounterReset/Measured, proxy Measured, node Measured
func (g *stage) describeAnswers() string {
	w := g.explainer()
	victim := g.victim()
	ref := metric.PodRef{Namespace: metric.Namespace(victim.Namespace), Name: metric.PodName(victim.Name)}
	var parts []string
	describe := func(name string, e explain.Explanation, known bool) {
		if !known {
			parts = append(parts, name+" unknown")
			return
		}
		parts = append(parts, name+" "+reasons(&e, g.s.groups)+describeDuplicates(&e))
	}
	pod, ok := w.Pod(ref)
	describe("pod", pod, ok)
	for _, c := range victim.Containers {
		container, ok := w.Container(ref, c.Name)
		describe(c.Name, container, ok)
	}
	node, ok := w.Node(metric.NodeName(victim.Node.Name))
	describe("node", node, ok)
	return strings.Join(parts, ", ")
}

// reasons returns the reason for CPU and, if it differs, a slash and the reason
// for memory. A last known value is "last known".
func reasons(e *explain.Explanation, groups []string) string {
	if groups == nil {
		groups = []string{"cpu", "memory"}
	}
	var said []string
	for _, group := range groups {
		i := slices.IndexFunc(e.Findings, func(f explain.Finding) bool { return f.Group == group })
		if i < 0 {
			said = append(said, "nothing")
			continue
		}
		reason := e.Findings[i].Reason
		if e.Findings[i].LastKnown {
			reason += " last known"
		}
		said = append(said, reason)
	}
	return strings.Join(slices.Compact(said), "/")
}

func describeDuplicates(e *explain.Explanation) string {
	var said []string
	for _, r := range e.Duplicates {
		said = append(said, fmt.Sprintf("%s by %s", r.Reason, r.Rule))
	}
	slices.Sort(said)
	if said = slices.Compact(said); len(said) > 0 {
		return " (not " + strings.Join(said, ", ") + ")"
	}
	return ""
}
