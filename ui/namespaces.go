package ui

import (
	"maps"
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// namespaceTable lists namespaces: those that lack numbers first, then by use.
func (p *page) namespaceTable(most int) table {
	t := table{Title: "Namespaces", What: "Namespace", Counted: true, Sorts: p.sorts(), None: "no pod has been met"}
	counts := p.count()
	sums := map[metric.Namespace]*metric.Sample{}
	for s := range p.samples(metric.Namespaced) {
		mine := &metric.Sample{}
		mine.CopyFrom(s)
		sums[s.Entity.Namespace] = mine
	}
	names := slices.Collect(maps.Keys(counts))
	for name := range sums {
		if counts[name] == nil {
			names = append(names, name)
		}
	}
	var items []item[metric.Namespace]
	for _, name := range names {
		if name == "" {
			continue // pods whose names nobody tells
		}
		it := item[metric.Namespace]{of: name, name: string(name)}
		it.measure(sums[name])
		c := counts[name]
		it.rank = measured
		switch {
		case c != nil && c.expected > c.served:
			it.rank = missing
		case c != nil && c.expected == 0 && c.served == 0:
			it.rank = idle
		}
		items = append(items, it)
	}
	items = arrange(items, &p.query)
	t.Cut = fit(len(items), most, p.from(allNamespaces), query{view: allNamespaces})
	for _, it := range items[t.Cut.From:t.Cut.To] {
		r := row{Name: clean(it.name), Href: p.to(query{view: oneNamespace, pod: metric.PodRef{Namespace: it.of}})}
		r.CPU, r.Memory = p.part(&resources.cpu, sums[it.of]), p.part(&resources.memory, sums[it.of])
		c := counts[it.of]
		r.Pods = c.text()
		switch it.rank {
		case missing:
			r.State = state{"missing", bad}
			r.Why = plural(c.expected-c.served, "pod") + " without numbers"
		case idle:
			r.State = state{"idle", quiet}
		default:
			r.State = state{"ok", good}
		}
		t.add(r)
	}
	return t
}

// part returns what a namespace uses, as a share of what all of them use.
func (p *page) part(r *resource, sum *metric.Sample) use {
	u := r.use(sum, nil)
	u.Share, u.Of, u.Level = "", "", ""
	all, _ := p.View.Lookup(metric.Entity{Kind: metric.Cluster})
	if used, of := value(sum, r.used), value(all, r.used); used >= 0 && of > 0 {
		u.Of = "of " + r.format(of) + " that all pods use"
		u.share(used / of)
	}
	return u
}
