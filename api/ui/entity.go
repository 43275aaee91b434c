package ui

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// entityBody is the body of the page of one node, pod or container.
type entityBody struct {
	Summary  string
	Links    []anchor
	Cards    []card
	Others   facts // other groups that are measured
	Findings []finding
	Deaths   *deathsBody
	Slow     *slowBody
	// Tables are the containers of a pod, or the pods and cgroups of a node.
	Tables      []table
	Charts      *charts
	Instances   []instance
	Reads       []sourceRead
	Facts       facts
	Autoscalers []anchor
}

// card is one large number: the use of a resource, or how many objects have numbers.
type card struct {
	Name, Href string
	resourceUse
	State state
	Notes []string
	Why   string // the reason if there is no number
}

// finding is the result for one group of metrics as the page shows it.
type finding struct {
	Group, Reason, Value, Message, Rule string
	Evidence                            []string
	State                               state
	Read, Since, ServedUntil            shownTime
	Next, Advice                        string
	Plain                               bool // the finding has only a value
	BeforeStart                         bool // Since is when weir first saw it
}

// fact is a named value. Full is its long form for a tooltip.
type fact struct{ Name, Value, Full string }

// facts are named values. None of them is empty.
type facts []fact

func (f *facts) add(name, value string) {
	if value != "" {
		*f = append(*f, fact{Name: name, Value: printable(value)})
	}
}

func (f *facts) addTime(name string, t shownTime) {
	if t.Text != "" {
		*f = append(*f, fact{name, t.Text, t.Full})
	}
}

func (p *page) node() error {
	name := p.query.node
	body, ok := p.nodeBody(name)
	if !ok {
		return p.notFound("node " + strconv.Quote(string(name)))
	}
	heading := printable(string(name))
	p.Path = append(p.Path, p.nodesAnchor())
	if p.query.list != "" {
		p.Path = append(p.Path, p.nodeAnchor(name))
		p.Kind = ""
		body = &entityBody{Tables: []table{p.listOf(name, p.query.list, page100)}}
	}
	p.show(heading, "entity", body)
	return nil
}

// nodeBody returns the body of the page of a node. It returns false if the node is unknown.
func (p *page) nodeBody(name metric.NodeName) (*entityBody, bool) {
	e, ok := p.Node(name)
	if !ok {
		return nil, false
	}
	entity := metric.Entity{Kind: metric.Node, Node: name}
	sample, _ := p.View.Lookup(entity)
	t := p.explained(&e, entity, sample, p.spec(name))
	t.Links = append(p.evictionLink(name), p.eventsLink(onNode(string(name)))...)
	t.Deaths = p.deaths(death.Query{Node: name})
	if pods := p.listOf(name, "pods", page25); pods.Cut.Of > 0 || p.Facts != nil {
		t.Tables = append(t.Tables, pods)
	}
	most := page25
	if len(t.Tables) == 0 {
		most = page100
	}
	if cgroups := p.listOf(name, "cgroups", most); cgroups.Cut.Of > 0 || p.query.filter != "" {
		t.Tables = append(t.Tables, cgroups)
	}
	return t, true
}

// listOf returns one of the lists of a node.
func (p *page) listOf(node metric.NodeName, list string, most int) table {
	if list == "cgroups" {
		return p.cgroupTable(node, most)
	}
	return p.podTable(p.pods(node, ""), most, query{view: oneNode, node: node, list: "pods"}, false)
}

func (p *page) pod() error {
	ref := p.query.pod
	e, ok := p.Pod(ref)
	if !ok {
		return p.notFound("pod " + strconv.Quote(ref.String()))
	}
	p.Path = append(p.Path, p.above(ref)...)
	sample, containers := p.View.Pod(ref)
	entity := metric.Entity{Kind: metric.Pod, Node: e.Node, Namespace: ref.Namespace, Pod: ref.Name}
	t := p.explained(&e, entity, sample, nil)
	t.Links = p.eventsLink(eventlog.Object{Kind: "Pod", Namespace: string(ref.Namespace), Name: string(ref.Name)})
	t.Deaths = p.deaths(death.Query{Namespace: ref.Namespace, Pod: ref.Name})
	t.Slow = p.slow(ref)
	if known := p.Facts.Pod(ref); known != nil && known.Resize != nil {
		t.Facts.add("Resize", known.Resize.Describe(true))
		t.Facts.add("The node on the resize", known.Resize.Message)
	}
	t.Tables = append(t.Tables, p.containerTable(&e, containers))
	if sample != nil && (sample.Instance.Path != "" || sample.Instance.ID != "") {
		t.addInstance("pod", sample)
	}
	for _, s := range containers {
		t.addInstance(s.Entity.Name, s)
	}
	p.addDuplicates(t, "pod", e.Duplicates)
	for i := range e.Containers {
		p.addDuplicates(t, e.Containers[i].Container, e.Containers[i].Duplicates)
	}
	p.show(printable(string(ref.Name)), "entity", t)
	return nil
}

func (p *page) container() error {
	ref, name := p.query.pod, p.query.container
	e, ok := p.Container(ref, name)
	if !ok {
		return p.notFound("container " + strconv.Quote(ref.String()+"/"+name))
	}
	p.Path = append(p.Path, p.above(ref)...)
	p.Path = append(p.Path, anchor{Text: printable(string(ref.Name)), Href: p.linkTo(query{view: onePod, pod: ref})})
	entity := metric.Entity{Kind: metric.Container, Node: e.Node, Namespace: ref.Namespace, Pod: ref.Name, Name: name}
	sample, _ := p.View.Lookup(entity)
	t := p.explained(&e, entity, sample, p.containerRequests(ref, name))
	if sample != nil {
		t.addInstance(name, sample)
	}
	p.addDuplicates(t, name, e.Duplicates)
	p.show(printable(name), "entity", t)
	return nil
}

// containerRequests returns the requests and limits of a container, or nil if the API server has
// none.
func (p *page) containerRequests(ref metric.PodRef, name string) *metric.Values {
	if c := p.Facts.Pod(ref).Container(name); c != nil {
		return c.Spec.Values()
	}
	return nil
}

func (p *page) nodesAnchor() anchor {
	return anchor{Text: "Nodes", Href: p.linkTo(query{view: allNodes})}
}

func (p *page) nodeAnchor(node metric.NodeName) anchor {
	return anchor{Text: printable(string(node)), Href: p.linkTo(query{view: oneNode, node: node})}
}

func (p *page) namespaceAnchor(namespace metric.Namespace) []anchor {
	if namespace == "" {
		return nil
	}
	return []anchor{{Text: printable(string(namespace)), Href: p.linkTo(query{view: oneNamespace, pod: metric.PodRef{Namespace: namespace}})}}
}

// above returns the links from a pod to its namespace and, if it has one, its workload.
func (p *page) above(ref metric.PodRef) []anchor {
	all := p.namespaceAnchor(ref.Namespace)
	if pod := p.Facts.Pod(ref); pod != nil {
		if w := pod.Workload(); w.Name != "" {
			all = append(all, anchor{Text: printable(w.Kind + " " + w.Name), Href: p.workloadLink(ref.Namespace, w)})
		}
	}
	return all
}

// explained returns the part of a page that all explanations have.
func (p *page) explained(e *explain.Explanation, entity metric.Entity, s *metric.Sample, spec *metric.Values) *entityBody {
	p.Kind = e.Kind
	if e.Kind != "node" && e.Node != "" {
		p.Where = p.nodeAnchor(e.Node)
	}
	t := &entityBody{Summary: e.Summary, Autoscalers: p.autoscalerAnchors(e.Autoscalers)}
	for i := range e.Reads {
		t.Reads = append(t.Reads, p.drawRead(&e.Reads[i]))
	}
	t.Cards = []card{{Name: "CPU", resourceUse: resources.cpu.usageOf(s, spec)}, {Name: "Memory", resourceUse: resources.memory.usageOf(s, spec)}}
	t.Charts = p.charts(entity, s, spec)
	for i := range e.Findings {
		f := &e.Findings[i]
		j := slices.Index([]string{metric.CPU.String(), metric.Memory.String()}, f.Group)
		drawn := p.finding(f)
		if j >= 0 {
			// The card shows the value.
			t.Cards[j].setFinding(f, p)
			if drawn.Value = ""; f.Message == "" && f.Reason == metric.Measured.String() {
				continue
			}
		}
		if j < 0 && drawn.Plain && f.Served && !f.LastKnown {
			t.Others = append(t.Others, fact{Name: f.Group, Value: f.Value, Full: drawn.Read.Full})
			continue
		}
		t.addFinding(drawn)
	}
	for i := range t.Findings {
		if t.Findings[i].State.Tone == bad {
			p.Problems++
		}
	}
	t.Facts = p.facts(e)
	return t
}

// addFinding adds a finding. A finding that equals the one before, except for its group, is
// merged into it.
func (b *entityBody) addFinding(f finding) {
	if n := len(b.Findings); n > 0 {
		last := &b.Findings[n-1]
		group := f.Group
		if f.Group = last.Group; reflect.DeepEqual(f, *last) {
			last.Group += " and " + group
			return
		}
		f.Group = group
	}
	b.Findings = append(b.Findings, f)
}

// setFinding adds the state, the reason and the time of a finding to a card.
func (c *card) setFinding(f *explain.Finding, p *page) {
	c.State = stateOf(f)
	if !f.Served {
		c.Why = f.Reason
		return
	}
	if _, over, ok := strings.Cut(f.Value, " over "); ok {
		c.Notes = append(c.Notes, "over "+over)
	}
	if read := relativeTime(f.Time, p.Now); read.Text != "" {
		c.Notes = append(c.Notes, "read "+read.Text)
	}
}

func (p *page) finding(f *explain.Finding) finding {
	return finding{
		Group: f.Group, Reason: f.Reason, Value: f.Value, Message: f.Message, Rule: f.Rule, Evidence: f.Evidence, State: stateOf(f),
		Read: relativeTime(f.Time, p.Now), Since: relativeTime(f.Since, p.Now), ServedUntil: relativeTime(f.ServedUntil, p.Now), Next: f.Next, Advice: f.Advice,
		Plain: f.Reason == metric.Measured.String(), BeforeStart: f.BeforeStart,
	}
}

// facts returns what the API server reports about an object.
func (p *page) facts(e *explain.Explanation) (all facts) {
	k := e.Known
	if k == nil {
		return nil
	}
	state := k.State
	if k.Why != "" {
		state += " (" + k.Why + ")"
	}
	all.add("State", state)
	all.add("Phase", string(k.Phase))
	all.add("QoS class", k.QoS)
	if e.Kind != "node" {
		all.add("Restarts", strconv.Itoa(int(k.Restarts)))
	}
	all.addTime("Started", relativeTime(k.Started, p.Now))
	all.addTime("Deleted", relativeTime(k.Deleted, p.Now))
	all.add("UID", string(k.UID))
	all.add("Container ID", string(k.ID))
	all.addTime("Last update from the API server", relativeTime(k.AsOf, p.Now))
	return all
}

// containerTable lists the containers of a pod in the order of its spec.
func (p *page) containerTable(e *explain.Explanation, served []*metric.Sample) table {
	t := table{Title: "Containers", What: "Container", ShareOf: "limit or request", Trends: true, Asked: true, None: "no container is known"}
	t.Cut = listRange{To: len(e.Containers), Of: len(e.Containers)}
	if f := worst(e); f != nil {
		t.lastReason = findingText(f) // the page shows it above the table
	}
	for i := range e.Containers {
		c := &e.Containers[i]
		ref := metric.PodRef{Namespace: e.Namespace, Name: e.Pod}
		r := row{Name: printable(c.Container), Href: p.linkTo(query{view: oneContainer, pod: ref, container: c.Container}), State: fine}
		entity := metric.Entity{Kind: metric.Container, Node: e.Node, Namespace: e.Namespace, Pod: e.Pod, Name: c.Container}
		var sample *metric.Sample
		if i := slices.IndexFunc(served, func(s *metric.Sample) bool { return s.Entity.Name == c.Container }); i >= 0 {
			sample = served[i]
		}
		r.CPU, r.Memory = p.usageAndTrends(entity, sample, p.containerRequests(ref, c.Container))
		if k := c.Known; k != nil {
			r.Note = cmp.Or(k.Why, k.State)
			if k.Restarts > 0 {
				r.Note += ", " + humanize.Count(int(k.Restarts), "restart")
			}
			r.Note = printable(r.Note)
		}
		if known := p.Facts.Pod(ref); known != nil {
			if resize := known.Resize.Of(c.Container); resize != nil {
				r.Note += ", resize " + printable(resize.Describe(false))
			}
		}
		if f := worst(c); f != nil {
			r.State, r.Why = stateOf(f), findingText(f)
		}
		t.add(r)
	}
	t.writeColumns()
	return t
}

// instance is one run of a pod or container: the living one, or one that was rejected.
type instance struct {
	explain.Duplicate        // if it was rejected
	Of                string // the name of the container; "pod" for the cgroup or sandbox of the pod
	State             state
	Facts             facts
	Since             shownTime // replaces the field of Duplicate
}

// addInstance adds the instance of the served numbers.
func (b *entityBody) addInstance(name string, s *metric.Sample) {
	in := instance{Of: printable(name), State: state{"counted", good}}
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		if s.Reasons[g] == metric.Ambiguous {
			in.State, in.Reason = state{"chosen", warn}, metric.Ambiguous.String()
		}
	}
	i := &s.Instance
	in.Facts = instanceFacts(i.StartTime(), "", i.UID, i.ID, i.Path)
	if i.Processes >= 0 {
		in.Facts.add("processes", fmt.Sprint(i.Processes))
	}
	b.Instances = append(b.Instances, in)
}

// addDuplicates adds the instances that were rejected.
func (p *page) addDuplicates(t *entityBody, name string, duplicates []explain.Duplicate) {
	for i := range duplicates {
		r := &duplicates[i]
		t.Instances = append(t.Instances, instance{
			Duplicate: *r, Of: printable(name), State: state{"rejected", quiet},
			Since: relativeTime(r.Since, p.Now), Facts: instanceFacts(r.Started, r.Node, r.UID, r.ID, r.Path),
		})
	}
}

// instanceFacts returns what identifies an instance.
func instanceFacts(started time.Time, node metric.NodeName, uid metric.PodUID, id metric.ContainerID, path metric.CgroupPath) (all facts) {
	if !started.IsZero() {
		all.add("started", started.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	all.add("node", string(node))
	all.add("UID", string(uid))
	all.add("ID", string(id))
	all.add("cgroup", string(path))
	return all
}
