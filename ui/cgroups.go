package ui

import (
	"slices"
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// cgroupTable lists the cgroups of a node that belong to no pod: as a tree, or flat if the
// list is filtered or sorted by name. Each cgroup is below its nearest ancestor that is in the
// list.
func (p *page) cgroupTable(node metric.NodeName, most int) table {
	t := table{Title: "Cgroups of no pod", What: "Cgroup", Trends: true, Sorts: p.sorts(), None: "no cgroup outside pods is reported"}
	if !p.byPath(node) {
		t.Title, t.What = "System containers", "System container"
	}
	items := sortAndFilter(p.cgroups(node), &p.query)
	t.Cut = paginate(len(items), most, p.listQuery(oneNode), query{view: oneNode, node: node, list: "cgroups"})
	items = items[t.Cut.From:t.Cut.To]
	whole := map[metric.NodeName]*metric.Sample{}
	machine := func(node metric.NodeName) *metric.Sample {
		if _, ok := whole[node]; !ok {
			whole[node], _ = p.View.Lookup(metric.Entity{Kind: metric.Node, Node: node})
		}
		return whole[node]
	}
	depth := make([]int, len(items))
	if p.query.filter == "" && p.query.sort != byName {
		items, depth = sortTree(items)
	}
	for i, it := range items {
		r := row{Name: printable(it.name), Full: printable(it.name), Depth: min(depth[i], 8)}
		if depth[i] > 0 {
			r.Name = printable(relativeName(items[:i], depth[:i], &it, depth[i]))
		}
		s := it.of
		if s.sample != nil {
			r.CPU, r.Memory = p.usageAndTrends(s.entity, s.sample, nil)
			of := machine(s.entity.Node)
			resources.cpu.shareOfNode(&r.CPU, s.sample, of)
			resources.memory.shareOfNode(&r.Memory, s.sample, of)
		}
		r.State, r.Why = s.state()
		t.add(r)
	}
	return t
}

// knownCgroup is a cgroup with its sample and verdicts.
type knownCgroup struct {
	entity  metric.Entity
	sample  *metric.Sample
	reasons [2]metric.Verdict // of CPU and memory; the zero Verdict if measured
}

// state returns the state of a cgroup, and the reason in one line if it is not ok. Package
// explain does not explain cgroups, so the reason comes from the verdict.
func (k *knownCgroup) state() (state, string) {
	for _, v := range k.reasons {
		if v.Reason == metric.Unjudged {
			continue
		}
		s := state{"none", quiet}
		switch v.Reason.Severity() {
		case metric.Broken:
			s = state{"missing", bad}
		case metric.Temporary:
			s = state{"not yet", warn}
		}
		v.Evidence.Err = nil // the node's own page has it once
		return s, v.Group.String() + " " + v.Reason.String() + ": " + explain.Message(v.Reason, v.Group, v.Evidence)
	}
	if value(k.sample, metric.CPUUsageRate) < 0 || value(k.sample, metric.MemoryWorkingSet) < 0 {
		return state{"none", quiet}, ""
	}
	return state{"ok", good}, ""
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

// cgroups returns the cgroups of a node that belong to no pod; those of all nodes if node is
// empty.
func (p *page) cgroups(node metric.NodeName) []listItem[knownCgroup] {
	all := map[metric.Entity]*knownCgroup{}
	get := func(e metric.Entity) *knownCgroup {
		k := all[e]
		if k == nil {
			k = &knownCgroup{entity: e}
			all[e] = k
		}
		return k
	}
	for _, s := range p.copiesOf(metric.System, node) {
		get(s.Entity).sample = s
	}
	verdicts := p.View.Verdicts()
	if node != "" {
		verdicts = p.View.VerdictsOn(node)
	}
	for v := range verdicts {
		if v.Entity.Kind != metric.System || v.Entity.Part != "" || v.Group > metric.Memory || v.Reason.Layer() == metric.LayerIdentity {
			continue
		}
		get(v.Entity).reasons[v.Group] = v
	}
	items := make([]listItem[knownCgroup], 0, len(all))
	for e, k := range all {
		if e.Name == "/" {
			continue // the node itself
		}
		it := listItem[knownCgroup]{of: *k, name: e.Name}
		it.measure(k.sample)
		// A cgroup without a number is no fault: many kernels do not count CPU for some
		// cgroups. Cgroups are therefore sorted by use alone.
		it.rank = measured
		items = append(items, it)
	}
	return items
}

// sortTree puts each item below its nearest ancestor by path. Siblings keep their order.
func sortTree(items []listItem[knownCgroup]) (ordered []listItem[knownCgroup], depth []int) {
	byName := make(map[string]int, len(items))
	for i, it := range items {
		byName[it.name] = i
	}
	const root = -1
	children := map[int][]int{}
	for i, it := range items {
		parent := root
		for name := it.name; parent == root; {
			cut := strings.LastIndexByte(name, '/')
			if cut <= 0 {
				break
			}
			name = name[:cut]
			if j, ok := byName[name]; ok {
				parent = j
			}
		}
		children[parent] = append(children[parent], i)
	}
	var walk func(parent, d int)
	walk = func(parent, d int) {
		for _, i := range children[parent] {
			ordered, depth = append(ordered, items[i]), append(depth, d)
			walk(i, d+1)
		}
	}
	walk(root, 0)
	return ordered, depth
}

// relativeName returns the name of it without the name of its parent in the list.
func relativeName(before []listItem[knownCgroup], depth []int, it *listItem[knownCgroup], d int) string {
	for i := range slices.Backward(before) {
		if depth[i] == d-1 {
			return strings.TrimPrefix(it.name, before[i].name+"/")
		}
	}
	return it.name
}
