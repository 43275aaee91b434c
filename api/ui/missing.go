package ui

import (
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// missingReport is the report of missing numbers as the page shows it.
type missingReport struct {
	Summary string
	Causes  []cause
	Cut     listRange
	Partial *missingReport // pods that run without a container; nil if there are none
	Idle    *missingReport // pods with nothing to measure; nil if there are none
}

// cause is a cause of missing numbers as the page shows it. Some fields replace those of
// MissingCause.
type cause struct {
	*explain.MissingCause
	State            state
	Reason           string
	Where            anchor
	Count            string
	Since            shownTime
	Names            []anchor
	Others           int
	Autoscalers      []anchor
	OtherAutoscalers int
}

// maxNames is how many names of a cause are shown.
const maxNames = 12

// missingReport returns a report with at most most causes. On its own page it begins at the
// position in the query.
func (p *page) missingReport(r *explain.MissingReport, most int) missingReport {
	drawn := missingReport{Summary: r.Summary}
	for i := range r.Causes {
		if causeState(r.Causes[i].Reason, r.Causes[i].Severity).Tone == bad {
			p.Problems++
		}
	}
	drawn.Cut = p.paginate(len(r.Causes), most, query{view: allMissing})
	for i := range r.Causes[drawn.Cut.From:drawn.Cut.To] {
		drawn.Causes = append(drawn.Causes, p.cause(&r.Causes[drawn.Cut.From+i]))
	}
	drawn.Partial, drawn.Idle = p.causes(r.Partial), p.causes(r.Idle)
	return drawn
}

// nodesAtRisk are nodes whose numbers may soon be missing or wrong. More counts those that have no line.
type nodesAtRisk struct {
	Nodes []nodeAtRisk
	More  int
}

// nodeAtRisk is a node with why it is at risk.
type nodeAtRisk struct {
	Node    anchor
	Message string
}

// atRisk returns the nodes at risk, at most most of them.
func (p *page) atRisk(r *explain.MissingReport, most int) (all nodesAtRisk) {
	for i := range r.AtRisk[:min(len(r.AtRisk), most)] {
		all.Nodes = append(all.Nodes, nodeAtRisk{p.nodeAnchor(r.AtRisk[i].Node), r.AtRisk[i].Message})
	}
	all.More = r.NodesAtRisk - len(all.Nodes)
	return all
}

// causes returns the first causes of a list; nil if there are none.
func (p *page) causes(all []explain.MissingCause) *missingReport {
	if len(all) == 0 {
		return nil
	}
	drawn := &missingReport{}
	for i := range all[:min(len(all), maxNames)] {
		drawn.Causes = append(drawn.Causes, p.cause(&all[i]))
	}
	return drawn
}

func (p *page) cause(c *explain.MissingCause) cause {
	reason := c.Reason
	if c.Why != "" {
		reason += ", " + c.Why
	}
	d := cause{MissingCause: c, State: causeState(c.Reason, c.Severity), Reason: reason, Count: c.CountText(), Since: relativeTime(c.Since, p.Now)}
	if c.Node != "" {
		d.Where = p.nodeAnchor(c.Node)
	}
	names := c.Names[:min(len(c.Names), maxNames)]
	for _, name := range names {
		d.Names = append(d.Names, p.named(name))
	}
	d.Others = max(0, c.Concerned()-len(names))
	d.Autoscalers = p.autoscalerAnchors(c.Autoscalers)
	d.OtherAutoscalers = len(c.Autoscalers) - len(d.Autoscalers)
	return d
}

// named returns the link to an entity. name is its name in a report.
func (p *page) named(name string) anchor {
	a := anchor{Text: printable(name)}
	parts := strings.Split(name, "/")
	switch {
	case strings.HasPrefix(name, "cgroup "):
		if _, node, ok := strings.Cut(name, " on "); ok {
			a.Href = p.linkTo(query{view: oneNode, node: metric.NodeName(node), list: "cgroups"})
		}
	case len(parts) == 2 && parts[0] == "node" && p.Facts.Pod(metric.PodRef{Namespace: "node", Name: metric.PodName(parts[1])}) == nil:
		a.Href = p.linkTo(query{view: oneNode, node: metric.NodeName(parts[1])})
	case len(parts) == 2:
		a.Href = p.linkTo(query{view: onePod, pod: metric.PodRef{Namespace: metric.Namespace(parts[0]), Name: metric.PodName(parts[1])}})
	case len(parts) == 3:
		a.Href = p.linkTo(query{view: oneContainer, pod: metric.PodRef{Namespace: metric.Namespace(parts[0]), Name: metric.PodName(parts[1])}, container: parts[2]})
	}
	return a
}
