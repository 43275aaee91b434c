package ui

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// nodeTable lists nodes, those with problems first.
func (p *page) nodeTable(most int) table {
	t := table{Title: "Nodes", What: "Node", ShareOf: "allocatable", Counted: true, Trends: true, None: "no node is known"}
	p.addRows(&t, p.nodes(), most, query{view: allNodes}, func(it *listItem) row {
		name := it.entity.Node
		r := row{Href: p.linkTo(query{view: oneNode, node: name}), Pods: p.podCountOn(name).text()}
		r.CPU, r.Memory = p.usageAndTrends(it.entity, it.sample, p.spec(name))
		r.State, r.Why = p.nodeState(it)
		if f := p.Facts.Node(name); f != nil && !f.Ready {
			r.Note = "not ready"
		}
		return r
	})
	return t
}

// nodes returns all nodes: those known to the API server, those that are read, and those with
// numbers.
func (p *page) nodes() []listItem {
	if p.allNodes != nil {
		return slices.Clone(p.allNodes) // callers sort it in place
	}
	all := map[metric.NodeName]*listItem{}
	get := func(name metric.NodeName) *listItem {
		if all[name] == nil {
			all[name] = &listItem{entity: metric.Entity{Kind: metric.Node, Node: name}, name: string(name)}
		}
		return all[name]
	}
	p.Facts.EachNode(func(f *cluster.Node) bool { get(f.Name); return true })
	for _, s := range p.copiesOf(metric.Node, "") {
		get(s.Entity.Node).sample = s
	}
	failing := map[metric.NodeName]bool{}
	clocks, slow := map[metric.NodeName]string{}, map[metric.NodeName]string{}
	for i := range p.Sources {
		if s := &p.Sources[i]; s.Node != "" {
			get(s.Node)
			failing[s.Node] = failing[s.Node] || s.Err != nil
			read := explain.NewRead(s)
			clocks[s.Node], slow[s.Node] = cmp.Or(clocks[s.Node], read.ClockText()), cmp.Or(slow[s.Node], s.SlowText())
		}
	}
	for name, it := range all {
		it.measure(it.sample)
		it.cpuShare, it.memoryShare = resources.cpu.shareOf(it.sample, p.spec(name)), resources.memory.shareOf(it.sample, p.spec(name))
		it.share = max(it.cpuShare, it.memoryShare)
		if p.query.sort == byPods {
			it.pods = p.podCountOn(name).expected
		}
		switch {
		case p.isExcluded(name) && it.rank == missing:
			it.rank = idle
		case failing[name] && it.rank == measured:
			it.rank = doubtful // its numbers are the last known values
		case clocks[name] != "" && it.rank == measured:
			it.rank, it.risk, it.atRisk = doubtful, clockDiffers, clocks[name]
		case slow[name] != "" && it.rank == measured:
			it.rank, it.risk, it.atRisk = doubtful, slowNode, slow[name]
		}
		p.allNodes = append(p.allNodes, *it)
	}
	return slices.Clone(p.allNodes)
}

// spec returns the capacity of a node according to the API server, or nil if it is unknown.
func (p *page) spec(node metric.NodeName) *metric.Values {
	if f := p.Facts.Node(node); f != nil {
		return &f.Spec
	}
	return nil
}

// namespaceTable lists namespaces: those with missing numbers first, then by use.
func (p *page) namespaceTable(most int) table {
	t := table{Title: "Namespaces", What: "Namespace", ShareOf: "all pods", Counted: true, None: "no pod is known"}
	counts := p.podCounts()
	sums := map[metric.Namespace]*metric.Sample{}
	for _, s := range p.copiesOf(metric.Namespaced, "") {
		sums[s.Entity.Namespace] = s
		if counts[s.Entity.Namespace] == nil {
			counts[s.Entity.Namespace] = &podCount{unknown: true}
		}
	}
	delete(counts, "") // pods without a known name
	var items []listItem
	for name, c := range counts {
		it := listItem{entity: metric.Entity{Kind: metric.Namespaced, Namespace: name}, name: string(name), sample: sums[name]}
		it.measure(it.sample)
		it.rank, it.pods = measured, max(c.expected, c.served)
		it.cpuShare, it.memoryShare = it.cpu, it.memory // of the same sum
		switch {
		case c.expected > c.served:
			it.rank = missing
		case c.expected == 0 && c.served == 0 && !c.unknown:
			it.rank = idle
		}
		items = append(items, it)
	}
	p.addRows(&t, items, most, query{view: allNamespaces}, func(it *listItem) row {
		name := it.entity.Namespace
		c := counts[name]
		r := row{
			Href: p.linkTo(query{view: oneNamespace, pod: metric.PodRef{Namespace: name}}), Pods: c.text(), State: rankStates[it.rank],
			CPU: p.namespaceShare(&resources.cpu, it.sample), Memory: p.namespaceShare(&resources.memory, it.sample),
		}
		if it.rank == missing {
			r.Why = humanize.Count(c.expected-c.served, "pod") + " without numbers"
		}
		return r
	})
	return t
}

// namespaceShare returns the use of a namespace as a share of the use of all namespaces.
func (p *page) namespaceShare(r *resource, sum *metric.Sample) resourceUse {
	u := r.usageOf(sum, nil)
	all, _ := p.View.Lookup(metric.Entity{Kind: metric.Cluster})
	r.compareWith(&u, value(all, r.used), "of %s that all pods use")
	return u
}

// podTable lists pods, those with problems first. whole is the query of the page with the
// complete list.
func (p *page) podTable(pods []listItem, most int, whole query, node bool) table {
	t := table{Title: "Pods", What: "Pod", ShareOf: "limit or request", Trends: true, None: "no pods", Filter: p.podFilter()}
	pods = p.filterPods(pods)
	for i := range pods {
		if it := &pods[i]; it.rank == missing && it.pod != nil && p.query.sort == byWorst {
			f := p.Why(it.pod)
			it.tone = stateOf(&f).Tone
		}
	}
	p.addRows(&t, pods, most, whole, func(it *listItem) row {
		r := row{Href: p.linkTo(query{view: onePod, pod: it.entity.PodRef()})}
		sample, _ := p.View.Lookup(it.entity)
		r.CPU, r.Memory = p.usageAndTrends(it.entity, sample, nil)
		if node && it.entity.Node != "" {
			r.Note = "on\u00a0" + printable(string(it.entity.Node))
		}
		if it.pod != nil && it.pod.Resize != nil {
			r.Note = strings.TrimPrefix(r.Note+", resize "+printable(it.pod.Resize.Describe(true)), ", ")
		}
		r.State, r.Why = p.podState(it)
		return r
	})
	return t
}

// workloadTable lists the workloads of pods, with the sums of their pods. Pods without a workload have
// no row. whole is the query of the page with the complete list.
func (p *page) workloadTable(pods []listItem, most int, whole query) table {
	t := table{Title: "Workloads", What: "Workload", Counted: true, None: "no workload is known"}
	if p.Facts == nil {
		t.None = "no workload is known, because this weir asks no API server"
	}
	type key struct {
		namespace metric.Namespace
		workload  cluster.Owner
	}
	all := map[key]*listItem{}
	counts := map[key]*podCount{}
	for i := range pods {
		pod := &pods[i]
		if pod.pod == nil || pod.pod.Workload().Name == "" {
			continue
		}
		w := key{pod.entity.Namespace, pod.pod.Workload()}
		if all[w] == nil {
			all[w] = &listItem{entity: metric.Entity{Namespace: w.namespace}, workload: w.workload, name: w.workload.Name, rank: idle, cpu: -1, memory: -1}
			if whole.view != oneNamespace {
				all[w].name = string(w.namespace) + "/" + w.workload.Name
			}
			counts[w] = &podCount{}
		}
		it, c := all[w], counts[w]
		it.rank, it.pods = min(it.rank, pod.rank), it.pods+1
		it.cpu, it.memory = addUsage(it.cpu, pod.cpu), addUsage(it.memory, pod.memory)
		if pod.rank == missing || pod.cpu >= 0 && pod.memory >= 0 {
			c.expected++
		}
		if pod.cpu >= 0 && pod.memory >= 0 {
			c.served++
		}
	}
	var items []listItem
	for _, it := range all {
		items = append(items, *it)
	}
	p.addRows(&t, items, most, whole, func(it *listItem) row {
		w := key{it.entity.Namespace, it.workload}
		r := row{Href: p.workloadLink(w.namespace, w.workload), Note: printable(w.workload.Kind), Pods: counts[w].text(), State: rankStates[it.rank]}
		r.CPU, r.Memory = resources.cpu.sumOf(it.cpu, 0, ""), resources.memory.sumOf(it.memory, 0, "")
		return r
	})
	return t
}

// workloadLink returns the address of the page of a workload.
func (p *page) workloadLink(namespace metric.Namespace, w cluster.Owner) string {
	return p.linkTo(query{view: oneWorkload, pod: metric.PodRef{Namespace: namespace}, workload: w})
}

// addUsage adds to a sum that is negative while it has no part. A negative part adds nothing.
func addUsage(sum, part float64) float64 {
	if part < 0 {
		return sum
	}
	return max(sum, 0) + part
}

// podFilter is the form that filters a list of pods by label and reason.
type podFilter struct {
	Keep          []keptParameter
	Label, Reason string
	Reasons       []string
}

// podFilter returns the form for a page whose main content is a list of pods, or nil for others.
func (p *page) podFilter() *podFilter {
	if !slices.Contains([]view{allPods, oneNamespace, oneWorkload}, p.query.view) {
		return nil
	}
	f := &podFilter{Keep: append(p.keptParameters(), p.query.viewParameter()), Label: p.query.labels, Reason: p.query.reason}
	if p.query.filter != "" {
		f.Keep = append(f.Keep, keptParameter{"q", p.query.filter})
	}
	for r := range metric.Reason(metric.NumReasons) {
		if r > metric.Measured && !r.IsRejection() {
			f.Reasons = append(f.Reasons, r.String())
		}
	}
	slices.Sort(f.Reasons)
	return f
}

// filterPods returns the pods that have the labels and the reason of the query. A pod that the API
// server does not know has no labels.
func (p *page) filterPods(pods []listItem) []listItem {
	if p.query.labels != "" {
		selector, _ := labels.Parse(p.query.labels) // parse has reported its error
		pods = slices.DeleteFunc(pods, func(it listItem) bool { return it.pod == nil || !selector.Matches(labels.Set(it.pod.Labels)) })
	}
	if p.query.reason != "" {
		pods = slices.DeleteFunc(pods, func(it listItem) bool {
			if it.rank == measured || it.rank == partial {
				return true
			}
			f := p.podFinding(&it)
			return f == nil || f.Reason != p.query.reason
		})
	}
	return pods
}

// pods returns the pods of a node or a namespace, or all pods if both are empty: the pods
// known to the API server or, without it, the pods that nodes report.
func (p *page) pods(node metric.NodeName, namespace metric.Namespace) []listItem {
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
			if s, ok := p.View.Lookup(l.items[i].entity); ok {
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
	if !closed {
		l.addFromVerdicts()
	}
	return l.items
}

// addFromVerdicts adds pods without a number: they appear only in verdicts. A verdict about an earlier
// pod of the same name does not count.
func (l *podList) addFromVerdicts() {
	for v := range l.page.verdictsOn(l.node) {
		if v.Entity.Kind == metric.Pod && v.Reason.Layer() != metric.LayerIdentity {
			l.find(v.Entity, true)
		}
	}
}

// verdictsOn yields the verdicts on a node, or all verdicts if node is empty.
func (p *page) verdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	if node != "" {
		return p.View.VerdictsOn(node)
	}
	return p.View.Verdicts()
}

// podList collects the pods of a list.
type podList struct {
	page      *page
	node      metric.NodeName
	namespace metric.Namespace
	items     []listItem
	at        map[metric.PodRef]int
}

// addKnown adds a pod known to the API server.
func (l *podList) addKnown(f *cluster.Pod) bool {
	it := l.add(metric.Entity{Kind: metric.Pod, Node: f.Node, Namespace: f.Namespace, Pod: f.Name})
	it.pod = f
	switch {
	case l.page.shouldHaveNumbers(f):
	case f.Phase == cluster.Running && !l.page.isExcluded(f.Node):
		it.rank = waiting // no container that must run is running
	default:
		it.rank = idle
	}
	return true
}

// find returns the item of a pod, or nil if the pod does not belong to this list. If add is set, it
// adds a missing item.
func (l *podList) find(e metric.Entity, add bool) *listItem {
	if l.node != "" && e.Node != l.node || l.namespace != "" && e.Namespace != l.namespace {
		return nil
	}
	if i, ok := l.at[e.PodRef()]; ok {
		return &l.items[i]
	}
	if !add {
		return nil
	}
	return l.add(metric.Entity{Kind: metric.Pod, Node: e.Node, Namespace: e.Namespace, Pod: e.Pod})
}

func (l *podList) add(e metric.Entity) *listItem {
	l.at[e.PodRef()] = len(l.items)
	it := listItem{entity: e, name: strings.TrimPrefix(e.PodRef().String(), "/")} // the UID is the name of a pod without a name
	it.measure(nil)
	l.items = append(l.items, it)
	return &l.items[len(l.items)-1]
}
