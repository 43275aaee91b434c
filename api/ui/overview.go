package ui

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// reportBody is the body of a page that begins with what is missing.
type reportBody struct {
	Report missingReport
	Cards  []card
	AtRisk nodesAtRisk
	Charts *charts
	Tables []table
	Alone  bool // the page has only this report
	// Full is the page of the whole report, to which a narrow window leaves what to do.
	Full string
	// Deaths are those of the workload's pods.
	Deaths *deathsBody
	// Autoscalers scale the workload, if the page is of one.
	Autoscalers []anchor
}

// overview fills the page of the cluster; without a cluster, the page of this machine.
func (p *page) overview() error {
	p.Path = nil
	if nodes := p.nodes(); p.Facts == nil && len(nodes) == 1 {
		if machine, ok := p.nodeBody(nodes[0].entity.Node); ok {
			p.show(printable(nodes[0].name), "entity", machine)
			p.Kind = "this machine"
			return nil
		}
	}
	var walk sync.WaitGroup
	walk.Go(func() { p.served() }) // one of the two walks over all pods; namespaces need it
	missing := p.Missing()
	walk.Wait()
	var excluded []string
	if n := missing.Nodes.Expected - missing.Nodes.Served; n > 0 {
		excluded = []string{"without " + humanize.Count(n, "node")}
	}
	p.show("Overview", "report", &reportBody{
		Report: p.missingReport(&missing, 5), Full: p.linkTo(query{view: allMissing}), AtRisk: p.atRisk(&missing, 3),
		Cards: []card{
			tallyCard("Nodes", missing.Nodes, p.linkTo(query{view: allNodes})), tallyCard("Pods", missing.Pods, p.linkTo(query{view: allPods})), p.sourceCard(),
			{Name: "CPU of nodes", resourceUse: p.clusterUse(&resources.cpu), Notes: excluded},
			{Name: "Memory of nodes", resourceUse: p.clusterUse(&resources.memory), Notes: excluded},
		},
		Charts: p.charts(metric.Entity{Kind: metric.Cluster}, nil, nil),
		Tables: []table{p.nodeTable(page25), p.namespaceTable(page25)},
	})
	return nil
}

// clusterUse returns the use of r by all nodes that have a number, as a share of the limits of
// these nodes.
func (p *page) clusterUse(r *resource) resourceUse {
	used, limits, description := -1.0, 0.0, ""
	for _, it := range p.nodes() {
		v := value(it.sample, r.used)
		if v < 0 {
			continue
		}
		limit, text := r.limitOf(it.sample, p.spec(it.entity.Node))
		used, limits, description = addUsage(used, v), limits+limit, text
	}
	return r.sumOf(used, limits, description)
}

// tallyCard returns the card of a tally. href is the list of what it counts, or empty.
func tallyCard(name string, t explain.Tally, href string) card {
	c := card{Name: name, Href: href, State: state{"", good}}
	c.Text, c.Of = humanize.Number(t.Served), "have numbers"
	if t.Doubtful > 0 {
		c.Notes, c.State.Tone = append(c.Notes, humanize.Number(t.Doubtful)+" in doubt"), warn
	}
	if t.Partial > 0 {
		c.Notes, c.State.Tone = append(c.Notes, humanize.Number(t.Partial)+" without one of their containers"), warn
	}
	if t.Served < t.Expected {
		c.Text += " of " + humanize.Number(t.Expected)
		c.State.Tone = bad
	}
	if t.Idle > 0 {
		c.Notes = append(c.Notes, humanize.Number(t.Idle)+" more with nothing to measure")
	}
	return c
}

func (p *page) missing() error {
	r := p.Missing()
	cards := []card{tallyCard("Nodes", r.Nodes, p.linkTo(query{view: allNodes})), tallyCard("Pods", r.Pods, p.linkTo(query{view: allPods}))}
	p.show("What is missing, and why", "report", &reportBody{Report: p.missingReport(&r, page100), Cards: cards, Alone: true, AtRisk: p.atRisk(&r, len(r.AtRisk))})
	return nil
}

func (p *page) namespace() error {
	name := p.query.pod.Namespace
	r, ok := p.Namespace(name)
	if !ok {
		return p.notFound(fmt.Sprintf("pods in namespace %q", name))
	}
	sum, _ := p.View.Lookup(metric.Entity{Kind: metric.Namespaced, Namespace: name})
	pods := p.pods("", name)
	for i := range pods {
		pods[i].name = string(pods[i].entity.Pod) // the heading has the namespace
	}
	p.Kind, p.Path = "namespace", p.breadcrumbs(anchor{Text: "Namespaces", Href: p.linkTo(query{view: allNamespaces})})
	whole := query{view: oneNamespace, pod: metric.PodRef{Namespace: name}}
	workloads := whole
	workloads.list = "workloads"
	if p.query.list == workloads.list {
		p.Path = append(p.Path, p.namespaceAnchor(name)...)
		p.Kind = ""
		p.show(printable(string(name)), "lists", []table{p.workloadTable(pods, page100, workloads)})
		return nil
	}
	tables := []table{p.podTable(pods, page100, whole, true)}
	if q := &p.query; q.filter == "" && q.labels == "" && q.reason == "" && q.from == 0 {
		if t := p.workloadTable(pods, page100, workloads); len(t.Rows) > 0 {
			tables = append([]table{t}, tables...)
		}
	}
	p.show(printable(string(name)), "report", &reportBody{
		Report: p.missingReport(&r, page25),
		Cards: []card{
			tallyCard("Pods", r.Pods, ""),
			// Without a share: only some pods have limits, and a reader of one namespace must not see the use of all.
			{Name: "CPU of all pods", resourceUse: resources.cpu.sumOf(value(sum, metric.CPUUsageRate), 0, "")},
			{Name: "Memory of all pods", resourceUse: resources.memory.sumOf(value(sum, metric.MemoryWorkingSet), 0, "")},
		},
		Charts: p.charts(metric.Entity{Kind: metric.Namespaced, Namespace: name}, sum, nil),
		Tables: tables,
	})
	return nil
}

// workload fills the page of the pods of one workload.
func (p *page) workload() error {
	namespace, w := p.query.pod.Namespace, p.query.workload
	r, ok := p.Workload(namespace, w.Kind, w.Name)
	if !ok {
		return p.notFound(fmt.Sprintf("pods of %s %s in namespace %s", printable(w.Kind), strconv.Quote(w.Name), strconv.Quote(string(namespace))))
	}
	w.Kind = r.Workload.Kind // the query may have it in lower case
	pods := slices.DeleteFunc(p.pods("", namespace), func(it listItem) bool { return it.pod == nil || it.pod.Workload() != w })
	for i := range pods {
		pods[i].name = string(pods[i].entity.Pod)
	}
	cpu, memory := card{Name: "CPU of all pods"}, card{Name: "Memory of all pods"}
	if r.Pods.Served > 0 {
		cpu.resourceUse, memory.resourceUse = resources.cpu.sumOf(r.Workload.CPUCores*1e9, 0, ""), resources.memory.sumOf(r.Workload.MemoryBytes, 0, "")
	}
	p.Kind, p.Path = printable(w.Kind), append(p.Path, p.namespaceAnchor(namespace)...)
	p.show(printable(w.Name), "report", &reportBody{
		Report: p.missingReport(&r, page25), Autoscalers: p.autoscalerAnchors(r.Workload.Autoscalers), Deaths: p.deaths(death.Query{Namespace: namespace, Workload: w}),
		Cards:  []card{tallyCard("Pods", r.Pods, ""), cpu, memory},
		Tables: []table{p.podTable(pods, page100, query{view: oneWorkload, pod: metric.PodRef{Namespace: namespace}, workload: w}, true)},
	})
	return nil
}

// search fills the page of search results.
func (p *page) search() error {
	pods := p.pods("", "")
	tables := slices.DeleteFunc([]table{
		p.nodeTable(page25), p.namespaceTable(page25), p.workloadTable(pods, page25, query{view: allWorkloads}),
		p.podTable(pods, page100, query{view: found}, true), p.cgroupTable("", page25),
	}, func(t table) bool { return t.Cut.Of == 0 })
	if len(tables) == 0 {
		return &pageError{404, fmt.Sprintf("No node, namespace, workload, pod or cgroup has %q in its name.", printable(p.query.filter)),
			"Search for a shorter part of it. Upper and lower case are the same."}
	}
	p.show("Search results for "+printable(p.query.filter), "lists", tables)
	return nil
}
