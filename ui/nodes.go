package ui

import (
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// nodeTable lists nodes, the worst first.
func (p *page) nodeTable(most int) table {
	t := table{Title: "Nodes", What: "Node", Counted: true, Trends: true, Sorts: p.sorts(), None: "no node is known"}
	items := arrange(p.nodes(), &p.query)
	t.Cut = fit(len(items), most, p.from(allNodes), query{view: allNodes})
	for _, it := range items[t.Cut.From:t.Cut.To] {
		n := it.of
		r := row{Name: clean(it.name), Href: p.to(query{view: oneNode, node: n.name}), Pods: p.countOn(n.name).text()}
		r.CPU, r.Memory = p.both(metric.Entity{Kind: metric.Node, Node: n.name}, n.sample, p.spec(n.name))
		r.State, r.Why = p.nodeState(&it)
		if f := p.Facts.Node(n.name); f != nil && !f.Ready {
			r.Note = "not ready"
		}
		t.add(r)
	}
	return t
}

// knownNode is a node and what is known of it at little cost.
type knownNode struct {
	name   metric.NodeName
	sample *metric.Sample
}

// nodes returns all nodes there are: those the API server knows, those that are
// read and those with numbers.
func (p *page) nodes() []item[knownNode] {
	if p.known != nil {
		return slices.Clone(p.known) // which is ordered in place
	}
	all := map[metric.NodeName]*item[knownNode]{}
	get := func(name metric.NodeName) *item[knownNode] {
		it := all[name]
		if it == nil {
			it = &item[knownNode]{of: knownNode{name: name}, name: string(name)}
			all[name] = it
		}
		return it
	}
	p.Facts.EachNode(func(f *cluster.Node) bool { get(f.Name); return true })
	for s := range p.samples(metric.Node) {
		mine := &metric.Sample{}
		mine.CopyFrom(s)
		get(s.Entity.Node).of.sample = mine
	}
	failing := map[metric.NodeName]bool{}
	for i := range p.Sources {
		s := &p.Sources[i]
		if s.Node == "" {
			continue
		}
		get(s.Node)
		failing[s.Node] = failing[s.Node] || s.Err != nil
	}
	items := make([]item[knownNode], 0, len(all))
	for name, it := range all {
		it.measure(it.of.sample)
		it.share = max(resources.cpu.share(it.of.sample, p.spec(name)), resources.memory.share(it.of.sample, p.spec(name)))
		switch {
		case p.leavesOut(name) && it.rank == missing:
			it.rank = idle
		case failing[name] && it.rank == measured:
			it.rank = doubtful // it goes on with numbers of before
		}
		items = append(items, *it)
	}
	p.known = items
	return slices.Clone(items)
}

// spec returns what the API server says a node has; nil if it says nothing.
func (p *page) spec(node metric.NodeName) *metric.Values {
	if f := p.Facts.Node(node); f != nil {
		return &f.Spec
	}
	return nil
}
