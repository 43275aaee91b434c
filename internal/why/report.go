package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// writeReport writes everything that is missing, one cause after the other.
func writeReport(p *page, r *explain.Report) {
	answer := r.Summary
	if len(r.Causes) == 0 && r.Nodes.Expected+r.Pods.Expected > 0 {
		answer = "Nothing is missing. " + answer
	}
	p.line(0, "", bold, answer)
	for i := range r.Causes {
		p.gap()
		writeCause(p, r.At, &r.Causes[i])
	}
	if more := command(r); more != "" {
		p.gap()
		p.line(0, "In full: ", noTint, p.command+" "+more)
	}
}

// command returns the noun and the name by which to learn more of the first that
// a report names; empty without any.
func command(r *explain.Report) string {
	for i := range r.Causes {
		for _, name := range r.Causes[i].Names {
			if kind, name := noun(name); kind != "" {
				return kind + " " + name
			}
		}
	}
	return ""
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

func writeCause(p *page, at time.Time, c *explain.Cause) {
	head := c.Reason
	if c.Node != "" {
		head += " on " + string(c.Node)
	}
	head += ": " + counts(c)
	tinted := noTint
	switch c.Gravity {
	case metric.Broken.String():
		tinted, head = red, head+", broken"
	case metric.Passing.String():
		tinted, head = amber, head+", passing"
	}
	p.line(0, "", tinted, head)
	p.item(2, "why", c.Message)
	p.item(2, "who", who(c))
	p.item(2, "scaled", strings.Join(c.Autoscalers, ", "))
	p.item(2, "since", moment(c.Since, at))
	p.item(2, "next", c.Next)
	p.item(2, "do", c.Advice)
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

// who names some, and says how many more there are.
func who(c *explain.Cause) string {
	s := strings.Join(c.Names, ", ")
	if more := c.Pods + c.Nodes - len(c.Names); more > 0 && len(c.Names) > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
