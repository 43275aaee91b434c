package ui

import (
	"path"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// cgroupTable lists the cgroups of a node that belong to no pod: as a tree, or flat if the
// list is filtered or sorted by name. Each cgroup is below its nearest ancestor that is in the
// list.
func (p *page) cgroupTable(node metric.NodeName, most int) table {
	t := table{Title: "Cgroups of no pod", What: "Cgroup", ShareOf: "capacity", Trends: true, Sorts: p.sorts(), None: "no cgroup outside pods is reported"}
	if !p.byPath(node) {
		t.Title, t.What = "System containers", "System container"
	}
	items := sortAndFilter(p.cgroups(node), &p.query)
	t.Cut = p.paginate(len(items), most, query{view: oneNode, node: node, list: "cgroups"})
	order := flat
	if p.query.filter == "" && p.query.sort != byName {
		order = tree
	}
	for _, it := range order(items[t.Cut.From:t.Cut.To]) {
		r := row{Name: printable(it.label), Full: printable(it.name), Depth: min(it.depth, 8)}
		r.CPU, r.Memory = p.usageAndTrends(it.entity, it.sample, nil)
		whole, _ := p.View.Lookup(metric.Entity{Kind: metric.Node, Node: it.entity.Node})
		resources.cpu.compareWith(&r.CPU, value(whole, metric.CPUNodeCapacity), "of %s capacity")
		resources.memory.compareWith(&r.Memory, value(whole, metric.MemoryNodeCapacity), "of %s capacity")
		r.State, r.Why = p.cgroupState(it.entity)
		t.add(r)
	}
	t.writeColumns()
	return t
}

// cgroupState returns the state of a cgroup, and the reason in one line if it is not fine.
func (p *page) cgroupState(e metric.Entity) (state, string) {
	x, ok := p.Cgroup(e.Node, e.Name)
	if !ok {
		return state{"none", quiet}, ""
	}
	if f := worst(&x); f != nil {
		return stateOf(f), f.Group + " " + findingText(f)
	}
	return fine, ""
}

// byPath reports whether the cgroups of a node are named by path. Kubelets report system
// containers by name instead.
func (p *page) byPath(node metric.NodeName) bool {
	for s := range p.samples(metric.System) {
		if s.Entity.Node == node && strings.HasPrefix(s.Entity.Name, "/") {
			return true
		}
	}
	return false
}

// cgroups returns the cgroups of a node that belong to no pod. If node is empty, it returns those of
// all nodes.
func (p *page) cgroups(node metric.NodeName) (items []listItem) {
	samples := map[metric.Entity]*metric.Sample{}
	for _, s := range p.copiesOf(metric.System, node) {
		samples[s.Entity] = s
	}
	for v := range p.verdictsOn(node) {
		relevant := v.Entity.Kind == metric.System && v.Entity.Part == "" && v.Group <= metric.Memory && v.Reason.Layer() != metric.LayerIdentity
		if relevant && samples[v.Entity] == nil {
			samples[v.Entity] = nil // so that it has a row
		}
	}
	for e, s := range samples {
		if e.Name == "/" {
			continue // the node itself
		}
		it := listItem{entity: e, name: e.Name, sample: s}
		it.measure(s)
		// A cgroup without a number is not a problem: many kernels do not count CPU for some
		// cgroups. Therefore cgroups are sorted only by use.
		it.rank = measured
		it.cpuShare, it.memoryShare = it.cpu, it.memory // of the same node
		items = append(items, it)
	}
	return items
}

// treeItem is an item of a tree. Its label is its name without the name of its parent.
type treeItem struct {
	listItem
	depth int
	label string
}

// flat returns items as a tree without branches.
func flat(items []listItem) (all []treeItem) {
	for _, it := range items {
		all = append(all, treeItem{it, 0, it.name})
	}
	return all
}

// tree puts each item below its nearest ancestor by path. Siblings keep their order.
func tree(items []listItem) (all []treeItem) {
	known := map[string]bool{}
	for _, it := range items {
		known[it.name] = true
	}
	children := map[string][]listItem{} // by the name of the parent; "" for items without a parent
	for _, it := range items {
		parent := path.Dir(it.name)
		for !known[parent] && len(parent) > 1 {
			parent = path.Dir(parent)
		}
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], it)
	}
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, it := range children[parent] {
			label := it.name
			if parent != "" {
				label = strings.TrimPrefix(label, parent+"/")
			}
			all = append(all, treeItem{it, depth, label})
			walk(it.name, depth+1)
		}
	}
	walk("", 0)
	return all
}
