package ui

import (
	"fmt"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// whole is the body of the overview: of a cluster, or of one machine.
type whole struct {
	Report  report
	Cards   []card
	Machine *thing // of a machine without a cluster; then there are no tables
	Tables  []table
}

func (p *page) overview() {
	p.Heading = "Overview"
	body := &whole{}
	p.Body = body
	missing := p.Missing()
	body.Report = p.report(&missing, 5)
	if nodes := p.nodes(); p.Facts == nil && len(nodes) == 1 {
		if machine, ok := p.nodeThing(nodes[0].of.name); ok {
			p.Heading, p.Kind, body.Machine = clean(nodes[0].name), "this machine", machine
			return
		}
	}
	body.Cards = []card{
		tallied("Nodes", missing.Nodes), tallied("Pods", missing.Pods), p.sourceCard(),
		{Name: "CPU of nodes", use: p.together(&resources.cpu)}, {Name: "Memory of nodes", use: p.together(&resources.memory)},
	}
	nodes := p.nodeTable(page25)
	namespaces := p.namespaceTable(page25)
	body.Tables = []table{nodes, namespaces}
}

// together returns what the nodes that have a number use of r, as a share of what
// these have.
func (p *page) together(r *resource) (u use) {
	var used, has float64
	var of string
	for _, it := range p.nodes() {
		v := value(it.of.sample, r.used)
		if v < 0 {
			continue
		}
		used += v
		u.Text = r.format(used)
		whole, by := r.whole(it.of.sample, p.spec(it.of.name))
		has, of = has+whole, by
	}
	if u.Text != "" && has > 0 {
		u.Of = fmt.Sprintf(of, r.format(has))
		u.share(used / has)
	}
	return u
}

// tallied returns a tally as a card.
func tallied(name string, t explain.Tally) card {
	c := card{Name: name, State: state{"", good}}
	c.Text, c.Of = grouped(t.Served), "have numbers"
	if t.Doubtful > 0 {
		c.Notes, c.State.Tone = append(c.Notes, grouped(t.Doubtful)+" in doubt"), warn
	}
	if t.Served < t.Expected {
		c.Text += " of " + grouped(t.Expected)
		c.State.Tone = bad
	}
	if t.Idle > 0 {
		c.Notes = append(c.Notes, "apart from "+grouped(t.Idle)+" that should have none")
	}
	return c
}

// lacking is the body of the page of everything that is missing.
type lacking struct {
	Report report
	Cards  []card
}

func (p *page) missing() {
	r := p.Missing()
	p.Heading, p.Path = "What is missing, and why", p.above()
	p.Body = &lacking{p.report(&r, page100), []card{tallied("Nodes", r.Nodes), tallied("Pods", r.Pods)}}
}

// part is the body of the page of a namespace.
type part struct {
	Report report
	Cards  []card
	Tables []table
}

func (p *page) namespace() error {
	name := p.query.pod.Namespace
	r, ok := p.Namespace(name)
	if !ok {
		return p.unknown(fmt.Sprintf("pod in namespace %q", name))
	}
	p.Heading, p.Kind, p.Path = clean(string(name)), "namespace", p.above(anchor{Text: "Namespaces", Href: p.to(query{view: allNamespaces})})
	body := &part{Report: p.report(&r, page25)}
	sum, _ := p.View.Lookup(metric.Entity{Kind: metric.Namespaced, Namespace: name})
	body.Cards = []card{
		tallied("Pods", r.Pods), {Name: "CPU of all pods", use: plain(&resources.cpu, sum)}, {Name: "Memory of all pods", use: plain(&resources.memory, sum)},
	}
	pods := p.pods("", name)
	for i := range pods {
		pods[i].name = string(pods[i].of.ref.Name) // all are of this namespace
	}
	body.Tables = []table{p.podTable(pods, page100, query{view: oneNamespace, pod: metric.PodRef{Namespace: name}}, true)}
	p.Body = body
	return nil
}

// plain returns what a namespace uses. It is no share of anything: only some of
// its pods have limits, and which part it is of what all namespaces use is no business
// of who may read one namespace.
func plain(r *resource, sum *metric.Sample) use {
	u := r.use(sum, nil)
	u.Share, u.Of = "", ""
	return u
}

// search finds by name.
func (p *page) search() error {
	p.Heading, p.Path = "Found for "+clean(p.query.filter), p.above()
	var tables []table
	all := []table{
		p.nodeTable(page25), p.namespaceTable(page25),
		p.podTable(p.pods("", ""), page100, query{view: overview}, true), p.cgroupTable("", page25),
	}
	for _, t := range all {
		if t.Cut.Of > 0 {
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 {
		return &problem{404, fmt.Sprintf("No node, namespace, pod or cgroup has %q in its name.", clean(p.query.filter)),
			"Look for a shorter part of it: small letters and capitals are the same."}
	}
	p.Body = tables
	return nil
}
