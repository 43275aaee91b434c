package ui

import (
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// nodeTable lists nodes, those with problems first.
func (p *page) nodeTable(most int) table {
	t := table{Title: "Nodes", What: "Node", Counted: true, Trends: true, Sorts: p.sorts(), None: "no node is known"}
	items := sortAndFilter(p.nodes(), &p.query)
	t.Cut = paginate(len(items), most, p.listQuery(allNodes), query{view: allNodes})
	for _, it := range items[t.Cut.From:t.Cut.To] {
		n := it.of
		r := row{Name: printable(it.name), Href: p.linkTo(query{view: oneNode, node: n.name}), Pods: p.podCountOn(n.name).text()}
		r.CPU, r.Memory = p.usageAndTrends(metric.Entity{Kind: metric.Node, Node: n.name}, n.sample, p.spec(n.name))
		r.State, r.Why = p.nodeState(&it)
		if f := p.Facts.Node(n.name); f != nil && !f.Ready {
			r.Note = "not ready"
		}
		t.add(r)
	}
	return t
}

// knownNode is a node with its sample.
type knownNode struct {
	name   metric.NodeName
	sample *metric.Sample
}

// nodes returns all nodes: those known to the API server, those that are read, and those with
// numbers.
func (p *page) nodes() []listItem[knownNode] {
	if p.allNodes != nil {
		return slices.Clone(p.allNodes) // callers sort it in place
	}
	all := map[metric.NodeName]*listItem[knownNode]{}
	get := func(name metric.NodeName) *listItem[knownNode] {
		it := all[name]
		if it == nil {
			it = &listItem[knownNode]{of: knownNode{name: name}, name: string(name)}
			all[name] = it
		}
		return it
	}
	p.Facts.EachNode(func(f *cluster.Node) bool { get(f.Name); return true })
	for _, s := range p.copiesOf(metric.Node, "") {
		get(s.Entity.Node).of.sample = s
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
	items := make([]listItem[knownNode], 0, len(all))
	for name, it := range all {
		it.measure(it.of.sample)
		it.share = max(resources.cpu.shareOf(it.of.sample, p.spec(name)), resources.memory.shareOf(it.of.sample, p.spec(name)))
		switch {
		case p.isExcluded(name) && it.rank == missing:
			it.rank = idle
		case failing[name] && it.rank == measured:
			it.rank = doubtful // its numbers are the last known values
		}
		items = append(items, *it)
	}
	p.allNodes = items
	return slices.Clone(items)
}

// spec returns the capacity of a node according to the API server; nil if unknown.
func (p *page) spec(node metric.NodeName) *metric.Values {
	if f := p.Facts.Node(node); f != nil {
		return &f.Spec
	}
	return nil
}

// namespaceTable lists namespaces: those with missing numbers first, then by use.
func (p *page) namespaceTable(most int) table {
	t := table{Title: "Namespaces", What: "Namespace", Counted: true, Sorts: p.sorts(), None: "no pod is known"}
	counts := p.podCounts()
	sums := map[metric.Namespace]*metric.Sample{}
	for _, s := range p.copiesOf(metric.Namespaced, "") {
		sums[s.Entity.Namespace] = s
		if counts[s.Entity.Namespace] == nil {
			counts[s.Entity.Namespace] = &podCount{unknown: true}
		}
	}
	delete(counts, "") // pods whose names are unknown
	var items []listItem[metric.Namespace]
	for name, c := range counts {
		it := listItem[metric.Namespace]{of: name, name: string(name)}
		it.measure(sums[name])
		it.rank = measured
		switch {
		case c.expected > c.served:
			it.rank = missing
		case c.expected == 0 && c.served == 0 && !c.unknown:
			it.rank = idle
		}
		items = append(items, it)
	}
	items = sortAndFilter(items, &p.query)
	t.Cut = paginate(len(items), most, p.listQuery(allNamespaces), query{view: allNamespaces})
	for _, it := range items[t.Cut.From:t.Cut.To] {
		r := row{Name: printable(it.name), Href: p.linkTo(query{view: oneNamespace, pod: metric.PodRef{Namespace: it.of}})}
		r.CPU, r.Memory = p.namespaceShare(&resources.cpu, sums[it.of]), p.namespaceShare(&resources.memory, sums[it.of])
		c := counts[it.of]
		r.Pods = c.text()
		switch it.rank {
		case missing:
			r.State = state{"missing", bad}
			r.Why = humanize.Count(c.expected-c.served, "pod") + " without numbers"
		case idle:
			r.State = state{"idle", quiet}
		default:
			r.State = state{"ok", good}
		}
		t.add(r)
	}
	return t
}

// namespaceShare returns the use of a namespace as a share of the use of all namespaces.
func (p *page) namespaceShare(r *resource, sum *metric.Sample) resourceUse {
	u := r.usageOf(sum, nil)
	u.Share, u.Of, u.Level = "", "", ""
	all, _ := p.View.Lookup(metric.Entity{Kind: metric.Cluster})
	if used, of := value(sum, r.used), value(all, r.used); used >= 0 && of > 0 {
		u.Of = "of " + r.format(of) + " that all pods use"
		u.setShare(used / of)
	}
	return u
}

// knownPod is a pod with its facts; facts is nil if the API server does not know it.
type knownPod struct {
	ref   metric.PodRef
	node  metric.NodeName
	facts *cluster.Pod
}

func (k *knownPod) entity() metric.Entity {
	return metric.Entity{Kind: metric.Pod, Node: k.node, Namespace: k.ref.Namespace, Pod: k.ref.Name}
}

// podTable lists pods, those with problems first. whole is the query of the page with the
// complete list.
func (p *page) podTable(pods []listItem[knownPod], most int, whole query, node bool) table {
	t := table{Title: "Pods", What: "Pod", Trends: true, Sorts: p.sorts(), None: "no pods"}
	items := sortAndFilter(pods, &p.query)
	t.Cut = paginate(len(items), most, p.query, whole)
	for _, it := range items[t.Cut.From:t.Cut.To] {
		k := it.of
		r := row{Name: printable(it.name), Href: p.linkTo(query{view: onePod, pod: k.ref})}
		sample, _ := p.View.Lookup(k.entity())
		r.CPU, r.Memory = p.usageAndTrends(k.entity(), sample, nil)
		if node && k.node != "" {
			r.Note = "on " + printable(string(k.node))
		}
		r.State, r.Why = p.podState(&it)
		t.add(r)
	}
	return t
}

// pods returns the pods of a node or a namespace, or all pods if both are empty: the pods
// known to the API server or, without it, the pods that nodes report.
func (p *page) pods(node metric.NodeName, namespace metric.Namespace) []listItem[knownPod] {
	l := podList{page: p, node: node, namespace: namespace, at: map[metric.PodRef]int{}}
	switch {
	case node != "":
		for _, f := range p.Facts.PodsOn(node) {
			l.addKnown(f)
		}
	case namespace != "":
		for _, f := range p.Facts.PodsIn(namespace) {
			l.addKnown(f)
		}
	default:
		p.Facts.EachPod(l.addKnown)
	}
	closed := p.Facts != nil && p.Facts.Synced // pods unknown to the API server are not served
	if closed && node != "" {
		for i := range l.items {
			if s, ok := p.View.Lookup(l.items[i].of.entity()); ok {
				l.items[i].measureKnown(s)
			}
		}
		return l.items
	}
	for s := range p.samples(metric.Pod) {
		if it := l.find(s.Entity, !closed); it != nil {
			it.measureKnown(s)
		}
	}
	if closed {
		return l.items
	}
	// A pod without a number appears only in its verdict. A verdict about an earlier pod of
	// the same name does not count.
	verdicts := p.View.Verdicts()
	if node != "" {
		verdicts = p.View.VerdictsOn(node)
	}
	for v := range verdicts {
		if v.Entity.Kind == metric.Pod && v.Reason.Layer() != metric.LayerIdentity {
			l.find(v.Entity, true)
		}
	}
	return l.items
}

// podList collects a list of pods.
type podList struct {
	page      *page
	node      metric.NodeName
	namespace metric.Namespace
	items     []listItem[knownPod]
	at        map[metric.PodRef]int
}

// addKnown adds a pod known to the API server.
func (l *podList) addKnown(f *cluster.Pod) bool {
	it := l.add(knownPod{f.PodRef, f.Node, f})
	switch {
	case l.page.shouldHaveNumbers(f):
	case f.Phase == cluster.Running && !l.page.isExcluded(f.Node):
		it.rank = doubtful // no container that must run is running
	default:
		it.rank = idle
	}
	return true
}

// find returns the item of a pod, or nil if the pod is not of this list. If add is set, it
// adds a missing item.
func (l *podList) find(e metric.Entity, add bool) *listItem[knownPod] {
	if l.node != "" && e.Node != l.node || l.namespace != "" && e.Namespace != l.namespace {
		return nil
	}
	if i, ok := l.at[e.PodRef()]; ok {
		return &l.items[i]
	}
	if !add {
		return nil
	}
	return l.add(knownPod{ref: e.PodRef(), node: e.Node})
}

func (l *podList) add(k knownPod) *listItem[knownPod] {
	l.at[k.ref] = len(l.items)
	it := listItem[knownPod]{of: k, name: strings.TrimPrefix(k.ref.String(), "/")} // a pod without a name is listed by its UID
	it.measure(nil)
	l.items = append(l.items, it)
	return &l.items[len(l.items)-1]
}
