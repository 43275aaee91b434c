package explaincmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// writeReport writes everything that is missing, one cause after the other.
func writeReport(p *page, r *explain.Report) {
	answer := r.Summary
	if len(r.Causes) == 0 && r.Nodes.Expected+r.Pods.Expected > 0 {
		answer = "Nothing is missing. " + answer
	}
	p.line(0, "", humanize.Bold, answer)
	advised := map[string]bool{}
	for i := range r.Causes {
		c := &r.Causes[i]
		p.Gap()
		writeCause(p, r.At, c, advised[c.Reason])
		advised[c.Reason] = true
	}
	for i := range r.Idle {
		c := &r.Idle[i]
		p.Gap()
		if i == 0 {
			p.line(0, "", humanize.Bold, "Nothing to measure, which an autoscaler shows as <unknown> too:")
		}
		writeCause(p, r.At, c, advised[c.Reason])
		advised[c.Reason] = true
	}
	if more := command(r); more != "" {
		p.Gap()
		p.line(0, "In full: ", humanize.Plain, p.command+" "+more)
	}
}

// command returns the noun and the name by which to learn more of the first that
// a report names; empty without any.
func command(r *explain.Report) string {
	for _, c := range slices.Concat(r.Causes, r.Idle) {
		for _, name := range c.Names {
			if kind, name := noun(name); kind != "" && typed(name) {
				return kind + " " + name
			}
		}
	}
	return ""
}

// typed reports whether a name can be typed as it is. Without an API server names
// are what nodes say, and this one is put where people copy it to a shell.
func typed(name string) bool {
	return !strings.HasPrefix(name, "-") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/") == ""
}

// noun returns what a name of a report is the name of.
func noun(name string) (kind, plain string) {
	if node, ok := strings.CutPrefix(name, "node/"); ok && !strings.Contains(node, "/") {
		return "node", node
	}
	if strings.HasPrefix(name, "/") {
		return "", name // a pod of which only its UID is known
	}
	switch strings.Count(name, "/") {
	case 1:
		return "pod", name
	case 2:
		return "container", name
	}
	return "", name
}

// writeCause writes one cause. What to do is the same on every node: again says
// that it was written above.
func writeCause(p *page, at time.Time, c *explain.Cause, again bool) {
	head := c.Reason
	if c.Why != "" {
		head += ", " + c.Why
	}
	if c.Node != "" {
		head += " on " + string(c.Node)
	}
	head += ": " + counts(c)
	tinted := humanize.Plain
	switch c.Severity {
	case metric.Broken.String():
		tinted, head = humanize.Red, head+", broken"
	case metric.Temporary.String():
		tinted, head = humanize.Amber, head+", temporary"
	}
	p.line(0, "", tinted, head)
	p.item(2, "why", c.Message)
	p.item(2, "who", who(c))
	p.item(2, "scaled", some(c.Autoscalers, len(c.Autoscalers)))
	p.item(2, "since", moment(c.Since, at))
	p.item(2, "next", c.Next)
	if again && c.Advice != "" {
		p.item(2, "do", "as of "+c.Reason+" above")
		return
	}
	p.advise(2, c.Advice)
}

// counts says how many lack a number.
func counts(c *explain.Cause) string {
	var parts []string
	for _, n := range []struct {
		count int
		noun  string
	}{{c.Nodes, "node"}, {c.Pods, "pod"}} {
		switch n.count {
		case 0:
		case 1:
			parts = append(parts, "1 "+n.noun)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n.count, n.noun))
		}
	}
	if len(parts) == 0 {
		return "none whole"
	}
	return strings.Join(parts, " and ")
}

// who names those that lack a number.
func who(c *explain.Cause) string {
	if len(c.Names) == 0 {
		return ""
	}
	return some(c.Names, c.Pods+c.Nodes)
}

// mostNames is how many names a line has.
const mostNames = 10

// some writes the first names, and how many more of them all there are.
func some(names []string, all int) string {
	names = names[:min(len(names), mostNames)]
	s := strings.Join(names, ", ")
	if more := all - len(names); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
