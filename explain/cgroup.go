package explain

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// Cgroup explains a cgroup of a node that belongs to no pod. Its name is its path, or what a kubelet
// calls it: "runtime". The root is the node itself. Cgroup returns false if nothing is known of it.
func (ex *Explainer) Cgroup(node metric.NodeName, name string) (Explanation, bool) {
	entity := metric.Entity{Kind: metric.System, Node: node, Name: name}
	sample := ex.lookup(entity)
	var verdicts []activeVerdict
	for v, since := range ex.verdictsOn(node) {
		if v.Entity == entity {
			verdicts = append(verdicts, withEvidence(v, since))
		}
	}
	switch {
	case sample != nil || len(verdicts) > 0:
	case name == "/":
		return ex.Node(node)
	default:
		return Explanation{}, false
	}
	e := Explanation{Kind: "cgroup", Node: node, Cgroup: name, At: ex.Now, Reads: ex.reads(node, false)}
	t := &messageWriter{now: ex.Now, kind: metric.System, node: node, facts: ex.Facts.Node(node), read: ex.readingOf(node)}
	for _, g := range explainedGroups(sample, func(g metric.Group) bool {
		return slices.ContainsFunc(verdicts, func(s activeVerdict) bool { return s.group == g })
	}) {
		best := bestOf(verdicts, g)
		r := judgeCgroup(entity, g, measure(sample, g), measure(sample, metric.Memory), best, func() Outcome { return ex.SurveyOf().Node(node) })
		if best != nil && r.Reason == best.reason {
			r.evidence = best.verdict.Evidence
		}
		t.asked = g
		e.Findings = append(e.Findings, t.finding(&r, g, sample))
	}
	e.Summary = summary("cgroup "+name, e.Findings)
	return e, true
}

// judgeCgroup returns the outcome of group g of a cgroup that belongs to no pod. l is what was
// measured of the group, memory that of its memory. st is the best verdict, or nil. node returns
// the outcome of the node's CPU and memory.
func judgeCgroup(e metric.Entity, g metric.Group, l, memory measurement, st *activeVerdict, node func() Outcome) Outcome {
	r := Outcome{Reason: l.missingReason(), group: g}
	switch {
	case l.complete:
		return l.outcome(g)
	case l.metricMissing:
		return l.withoutMetric(g)
	case st != nil:
		r = st.outcome(e.Node)
	case l.reported:
		if n := node(); !n.Served && n.Reason.Layer() <= metric.LayerScrape {
			return n
		}
		if l.reason.Layer() == metric.LayerNone { // it is reported without this group
			r.Reason = metric.Unsupported
		}
	}
	if r.Reason == metric.Unsupported && g == metric.CPU && strings.HasPrefix(e.Name, "/") {
		r.Said = "the cgroup exists in no hierarchy that counts CPU time"
		if memory.complete {
			r.Said = "the cgroup exists in the memory hierarchy only, which counts no CPU time"
		}
	}
	return r
}

// cgroupState is what is known of a cgroup that belongs to no pod.
type cgroupState struct {
	cpu, memory measurement
	best        *activeVerdict // why CPU or memory is not served; nil if no verdict explains why
}

// cgroup returns the outcome of the CPU and memory of a cgroup that belongs to no pod.
func (s *Survey) cgroup(e metric.Entity) Outcome {
	c, node := s.on(e.Node).cgroups[e.Name], func() Outcome { return s.ofNode(e.Node) }
	if r := judgeCgroup(e, metric.CPU, c.cpu, c.memory, c.best, node); !r.Served {
		return r
	}
	return judgeCgroup(e, metric.Memory, c.memory, c.memory, c.best, node)
}

// cgroup returns what is known of a cgroup, for changes.
func (n *nodeState) cgroup(name string) *cgroupState {
	if n.cgroups == nil {
		n.cgroups = map[string]*cgroupState{}
	}
	c := n.cgroups[name]
	if c == nil {
		c = &cgroupState{}
		n.cgroups[name] = c
	}
	return c
}

// countCgroups counts the cgroups of a node that belong to no pod.
func (r *reporter) countCgroups(node metric.NodeName) {
	for _, name := range slices.Sorted(maps.Keys(r.s.on(node).cgroups)) {
		if name == "/" {
			continue // the node itself
		}
		outcome := r.s.cgroup(metric.Entity{Kind: metric.System, Node: node, Name: name})
		r.cgroups.count(&outcome)
		if c := r.cause(&outcome, node, metric.System); c != nil {
			c.Cgroups++
			c.names = append(c.names, named{node: node, cgroup: name})
		}
	}
}
