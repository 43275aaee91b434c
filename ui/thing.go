package ui

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// thing is the body of the page of one node, pod or container.
type thing struct {
	Summary  string
	Links    []anchor
	Cards    []card
	Others   []fact // what else is measured, and well
	Findings []finding
	// Tables are its containers, or its pods and cgroups.
	Tables      []table
	Instances   []instance
	Reads       []read
	Facts       []fact
	Autoscalers []string
}

// card is one number, large: what is used of something, or how many have numbers.
type card struct {
	Name, Href string
	use
	State state
	Notes []string
	Why   string // there is no number
}

// finding is what became of a group of metrics, as it is drawn.
type finding struct {
	Group, Reason, Value, Message, Rule string
	Evidence                            []string
	State                               state
	Read, Since                         moment
	Next, Advice                        string
	Plain                               bool // there is nothing to say but the value
}

// fact is something the API server says.
type fact struct{ Name, Value, Full string }

func (p *page) node() error {
	name := p.query.node
	p.Heading, p.Path = clean(string(name)), p.above(anchor{Text: "Nodes", Href: p.to(query{view: allNodes})})
	if p.query.list != "" {
		if _, ok := p.Node(name); !ok {
			return p.unknown("node " + strconv.Quote(string(name)))
		}
		p.Path = append(p.Path, anchor{Text: p.Heading, Href: p.to(query{view: oneNode, node: name})})
		p.Body = &thing{Tables: []table{p.listOf(name, p.query.list, page100)}}
		return nil
	}
	body, ok := p.nodeThing(name)
	if !ok {
		return p.unknown("node " + strconv.Quote(string(name)))
	}
	p.Body = body
	return nil
}

// nodeThing returns what there is to show of a node; false if nothing is known.
func (p *page) nodeThing(name metric.NodeName) (*thing, bool) {
	e, ok := p.Node(name)
	if !ok {
		return nil, false
	}
	entity := metric.Entity{Kind: metric.Node, Node: name}
	sample, _ := p.View.Lookup(entity)
	t := p.explained(&e, entity, sample, p.spec(name))
	t.Links = p.evictionLink(name)
	if pods := p.listOf(name, "pods", page25); pods.Cut.Of > 0 || p.Facts != nil {
		t.Tables = append(t.Tables, pods)
	}
	if cgroups := p.listOf(name, "cgroups", p.room(len(t.Tables))); cgroups.Cut.Of > 0 || p.query.filter != "" {
		t.Tables = append(t.Tables, cgroups)
	}
	return t, true
}

// room is how many rows a list has beside others: alone it may be long.
func (p *page) room(others int) int {
	if others == 0 {
		return page100
	}
	return page25
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
		return p.unknown("pod " + strconv.Quote(ref.String()))
	}
	p.Heading, p.Path = clean(string(ref.Name)), p.above(p.namespaceAnchor(ref.Namespace)...)
	sample, containers := p.View.Pod(ref)
	entity := metric.Entity{Kind: metric.Pod, Node: e.Node, Namespace: ref.Namespace, Pod: ref.Name}
	t := p.explained(&e, entity, sample, nil)
	t.Tables = append(t.Tables, p.containerTable(&e, containers))
	if sample != nil && (sample.Instance.Path != "" || sample.Instance.ID != "") {
		t.counted("pod", sample)
	}
	for _, s := range containers {
		t.counted(s.Entity.Name, s)
	}
	p.rivals(t, "pod", e.Rivals)
	for i := range e.Containers {
		p.rivals(t, e.Containers[i].Container, e.Containers[i].Rivals)
	}
	p.Body = t
	return nil
}

func (p *page) container() error {
	ref, name := p.query.pod, p.query.container
	e, ok := p.Container(ref, name)
	if !ok {
		return p.unknown("container " + strconv.Quote(ref.String()+"/"+name))
	}
	p.Heading = clean(name)
	p.Path = p.above(append(p.namespaceAnchor(ref.Namespace), anchor{Text: clean(string(ref.Name)), Href: p.to(query{view: onePod, pod: ref})})...)
	entity := metric.Entity{Kind: metric.Container, Node: e.Node, Namespace: ref.Namespace, Pod: ref.Name, Name: name}
	sample, _ := p.View.Lookup(entity)
	t := p.explained(&e, entity, sample, p.asked(ref, name))
	if sample != nil {
		t.counted(name, sample)
	}
	p.rivals(t, name, e.Rivals)
	p.Body = t
	return nil
}

// asked returns what a container requested; nil if the API server does not say.
func (p *page) asked(ref metric.PodRef, name string) *metric.Values {
	if c := p.Facts.Pod(ref).Container(name); c != nil {
		return c.Spec.Values()
	}
	return nil
}

func (p *page) namespaceAnchor(namespace metric.Namespace) []anchor {
	if namespace == "" {
		return nil
	}
	return []anchor{{Text: clean(string(namespace)), Href: p.to(query{view: oneNamespace, pod: metric.PodRef{Namespace: namespace}})}}
}

// explained returns the part of a page that every explanation has.
func (p *page) explained(e *explain.Explanation, entity metric.Entity, s *metric.Sample, spec *metric.Values) *thing {
	p.Kind = e.Kind
	if e.Kind != "node" && e.Node != "" {
		p.Where = anchor{Text: clean(string(e.Node)), Href: p.to(query{view: oneNode, node: e.Node})}
	}
	t := &thing{Summary: e.Summary, Autoscalers: e.Autoscalers, Reads: p.reading(e.Reads)}
	cpu, memory := p.both(entity, s, spec)
	t.Cards = []card{{Name: "CPU", use: cpu}, {Name: "Memory", use: memory}}
	for i := range e.Findings {
		f := &e.Findings[i]
		j := slices.Index([]string{metric.CPU.String(), metric.Memory.String()}, f.Group)
		drawn := p.finding(f)
		if j >= 0 {
			// What a card says is not said again.
			t.Cards[j].judge(f, p)
			if drawn.Value = ""; f.Message == "" && f.Reason == metric.Measured.String() {
				continue
			}
		}
		if j < 0 && drawn.Plain && f.Served && !f.Held {
			t.Others = append(t.Others, fact{Name: f.Group, Value: f.Value, Full: drawn.Read.Full})
			continue
		}
		t.find(drawn)
	}
	t.Facts = p.facts(e)
	return t
}

// find adds a finding. What is said of CPU and again of memory is said once.
func (t *thing) find(f finding) {
	if n := len(t.Findings); n > 0 {
		last := &t.Findings[n-1]
		group := f.Group
		if f.Group = last.Group; reflect.DeepEqual(f, *last) {
			last.Group += " and " + group
			return
		}
		f.Group = group
	}
	t.Findings = append(t.Findings, f)
}

// judge adds to what is used of something what became of its numbers.
func (c *card) judge(f *explain.Finding, p *page) {
	c.State = stateOf(f)
	if !f.Served {
		c.Why = f.Reason
		return
	}
	if _, over, ok := strings.Cut(f.Value, " over "); ok {
		c.Notes = append(c.Notes, "over "+over)
	}
	if read := when(f.Time, p.Now); read.Text != "" {
		c.Notes = append(c.Notes, "read "+read.Text)
	}
}

func (p *page) finding(f *explain.Finding) finding {
	return finding{
		Group: f.Group, Reason: f.Reason, Value: f.Value, Message: f.Message, Rule: f.Rule, Evidence: f.Evidence, State: stateOf(f),
		Read: when(f.Time, p.Now), Since: when(f.Since, p.Now), Next: f.Next, Advice: f.Advice,
		Plain: f.Reason == metric.Measured.String(),
	}
}

// facts returns what the API server says.
func (p *page) facts(e *explain.Explanation) (facts []fact) {
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{Name: name, Value: clean(value)})
		}
	}
	at := func(name string, m moment) {
		if m.Text != "" {
			facts = append(facts, fact{name, m.Text, m.Full})
		}
	}
	k := e.Known
	if k == nil {
		return nil
	}
	state := k.State
	if k.Why != "" {
		state += " (" + k.Why + ")"
	}
	add("State", state)
	add("Phase", string(k.Phase))
	add("QoS class", k.QoS)
	if e.Kind != "node" {
		add("Restarts", strconv.Itoa(int(k.Restarts)))
	}
	at("Started", when(k.Started, p.Now))
	at("Deleted", when(k.Deleted, p.Now))
	add("UID", string(k.UID))
	add("Container ID", string(k.ID))
	at("Heard from the API server", when(k.AsOf, p.Now))
	return facts
}

// containerTable lists the containers of a pod in the order of its spec.
func (p *page) containerTable(e *explain.Explanation, served []*metric.Sample) table {
	t := table{Title: "Containers", What: "Container", Trends: true, Asked: true, None: "no container is known"}
	t.Cut = cut{To: len(e.Containers), Of: len(e.Containers)}
	if f := worst(e); f != nil {
		t.said = brief(f) // of the pod, above the table
	}
	for i := range e.Containers {
		c := &e.Containers[i]
		ref := metric.PodRef{Namespace: e.Namespace, Name: e.Pod}
		r := row{Name: clean(c.Container), Href: p.to(query{view: oneContainer, pod: ref, container: c.Container}), State: state{"ok", good}}
		entity := metric.Entity{Kind: metric.Container, Node: e.Node, Namespace: e.Namespace, Pod: e.Pod, Name: c.Container}
		var sample *metric.Sample
		for _, s := range served {
			if s.Entity.Name == c.Container {
				sample = s
			}
		}
		r.CPU, r.Memory = p.both(entity, sample, p.asked(ref, c.Container))
		if k := c.Known; k != nil {
			r.Note = cmp.Or(k.Why, k.State)
			if k.Restarts > 0 {
				r.Note += ", " + plural(int(k.Restarts), "restart")
			}
			r.Note = clean(r.Note)
		}
		if f := worst(c); f != nil {
			r.State, r.Why = stateOf(f), brief(f)
		}
		t.add(r)
	}
	return t
}
