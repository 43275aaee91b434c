package explaincmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// writeReport writes everything that is missing, cause by cause.
func writeReport(p *page, r *explain.MissingReport) {
	answer := r.Summary
	if len(r.Causes) == 0 && r.Nodes.Expected+r.Pods.Expected+r.Cgroups.Expected > 0 {
		answer = "Nothing is missing. " + answer
	}
	p.line(0, "", humanize.Bold, answer)
	if text := r.RiskText(); text != "" {
		p.line(0, "", humanize.Amber, text)
	}
	for i := range r.Receivers {
		p.Gap()
		p.line(0, "", humanize.Red, r.Receivers[i].Text(r.At))
		p.advise(2, explain.ReceiverAdvice)
	}
	for i := range r.Adapters {
		p.Gap()
		p.line(0, "", humanize.Red, r.Adapters[i].Text(r.At))
		p.advise(2, explain.AdapterAdvice)
	}
	advised := map[string]bool{}
	all := slices.Concat(r.Causes, r.Partial, r.Idle)
	for i := range all {
		c := &all[i]
		p.Gap()
		if i == len(r.Causes) && len(r.Partial) > 0 {
			p.line(0, "", humanize.Bold, "Measured without a container that does not run:")
		}
		if i == len(r.Causes)+len(r.Partial) {
			p.line(0, "", humanize.Bold, "Nothing to measure, which an autoscaler shows as <unknown> too:")
		}
		writeCause(p, r.At, c, advised[c.Reason])
		advised[c.Reason] = true
	}
	if more := example(all); more != "" {
		p.Gap()
		p.paragraph("In full: ", p.program+" explain "+more)
	}
}

// example returns the arguments of explain for the first name of the causes, or "" if they have no
// names.
func example(all []explain.MissingCause) string {
	for _, c := range all {
		for _, name := range c.Names {
			if kind, name := noun(name); kind != "" && humanize.IsShellWord(name) {
				return kind + " " + name
			}
			if cgroup, node, ok := strings.Cut(strings.TrimPrefix(name, "cgroup "), " on "); ok && humanize.IsShellWord(cgroup) && humanize.IsShellWord(node) {
				return "cgroup " + cgroup + " --node " + node
			}
		}
	}
	return ""
}

// noun returns the kind of a name in a report, and the name without its prefix.
func noun(name string) (kind, plain string) {
	if node, ok := strings.CutPrefix(name, "node/"); ok && !strings.Contains(node, "/") {
		return "node", node
	}
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "cgroup ") {
		return "", name // only the UID of the pod is known
	}
	switch strings.Count(name, "/") {
	case 1:
		return "pod", name
	case 2:
		return "container", name
	}
	return "", name
}

// writeCause writes one cause. again reports that an earlier cause has the same advice.
func writeCause(p *page, at time.Time, c *explain.MissingCause, again bool) {
	head := c.Reason + prefixed(", ", c.Why) + prefixed(" on ", string(c.Node)) + ": " + c.CountText()
	tint := humanize.Plain
	switch c.Severity {
	case metric.Broken.String():
		tint, head = humanize.Red, head+", broken"
	case metric.Temporary.String():
		tint, head = humanize.Amber, head+", temporary"
	}
	p.line(0, "", tint, head)
	p.item(2, "why", c.Message)
	p.item(2, "who", some(c.Names, c.Concerned()))
	p.item(2, "scaled", some(c.Autoscalers, len(c.Autoscalers)))
	p.item(2, "since", beginning(c.Since, c.BeforeStart, at))
	p.item(2, "next", c.Next)
	if again && c.Advice != "" {
		p.item(2, "do", "as of "+c.Reason+" above")
		return
	}
	p.advise(2, c.Advice)
}

// mostNames is the maximum number of names in a line.
const mostNames = 10

// some writes the first names and how many more there are. all is the number of all names.
func some(names []string, all int) string {
	names = names[:min(len(names), mostNames)]
	s := strings.Join(names, ", ")
	if more := all - len(names); more > 0 && s != "" {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}
