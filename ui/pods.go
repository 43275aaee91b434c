package ui

import (
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// knownPod is a pod and what is known of it at little cost.
type knownPod struct {
	ref   metric.PodRef
	node  metric.NodeName
	facts *cluster.Pod
}

func (k *knownPod) entity() metric.Entity {
	return metric.Entity{Kind: metric.Pod, Node: k.node, Namespace: k.ref.Namespace, Pod: k.ref.Name}
}

// podTable lists pods that pass, the worst first. Whole is the page that shows
// the list at length.
func (p *page) podTable(pods []item[knownPod], most int, whole query, node bool) table {
	t := table{Title: "Pods", What: "Pod", Trends: true, Sorts: p.sorts(), None: "no pods"}
	items := arrange(pods, &p.query)
	t.Cut = fit(len(items), most, p.query, whole)
	for _, it := range items[t.Cut.From:t.Cut.To] {
		k := it.of
		r := row{Name: clean(it.name), Href: p.to(query{view: onePod, pod: k.ref})}
		sample, _ := p.View.Lookup(k.entity())
		r.CPU, r.Memory = p.both(k.entity(), sample, nil)
		if node && k.node != "" {
			r.Note = "on " + clean(string(k.node))
		}
		r.State, r.Why = p.podState(&it)
		t.add(r)
	}
	return t
}

// pods returns the pods of a node, of a namespace, or all, if both are empty: those
// the API server knows, and without it those that nodes speak of.
func (p *page) pods(node metric.NodeName, namespace metric.Namespace) []item[knownPod] {
	l := podList{page: p, node: node, namespace: namespace, at: map[metric.PodRef]int{}}
	switch {
	case node != "":
		for _, f := range p.Facts.PodsOn(node) {
			l.know(f)
		}
	case namespace != "":
		for _, f := range p.Facts.PodsIn(namespace) {
			l.know(f)
		}
	default:
		p.Facts.EachPod(l.know)
	}
	closed := p.Facts != nil && p.Facts.Synced // what the API server does not know is not served
	if closed && node != "" {
		for i := range l.items {
			if s, ok := p.View.Lookup(l.items[i].of.entity()); ok {
				l.items[i].take(s)
			}
		}
		return l.items
	}
	for s := range p.samples(metric.Pod) {
		if it := l.get(s.Entity, !closed); it != nil {
			it.take(s)
		}
	}
	if closed {
		return l.items
	}
	// Only the reason for its absence speaks of a pod without a number. One that
	// an earlier pod left behind is none.
	verdicts := p.View.Verdicts()
	if node != "" {
		verdicts = p.View.VerdictsOn(node)
	}
	for v := range verdicts {
		if v.Entity.Kind == metric.Pod && v.Reason.Layer() != metric.LayerIdentity {
			l.get(v.Entity, true)
		}
	}
	return l.items
}

// podList is a list of pods in the making.
type podList struct {
	page      *page
	node      metric.NodeName
	namespace metric.Namespace
	items     []item[knownPod]
	at        map[metric.PodRef]int
}

// know adds a pod of the API server's.
func (l *podList) know(f *cluster.Pod) bool {
	it := l.add(knownPod{f.PodRef, f.Node, f})
	switch {
	case l.page.expects(f):
	case f.Phase == cluster.Running && !l.page.leavesOut(f.Node):
		it.rank = doubtful // its containers come and go
	default:
		it.rank = idle
	}
	return true
}

// get returns the item of a pod, and nil if it is none of the list's, or a new one
// and none is to be added.
func (l *podList) get(e metric.Entity, add bool) *item[knownPod] {
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

func (l *podList) add(k knownPod) *item[knownPod] {
	l.at[k.ref] = len(l.items)
	it := item[knownPod]{of: k, name: strings.TrimPrefix(k.ref.String(), "/")} // one may go by its UID
	it.measure(nil)
	l.items = append(l.items, it)
	return &l.items[len(l.items)-1]
}
