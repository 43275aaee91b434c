package ui

import (
	"cmp"
	"slices"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// health is the body of the page of sources and sinks.
type health struct {
	Reads []read
	Cut   cut
	Sinks []sink
}

// sink is how a sink fares, as it is drawn.
type sink struct {
	Name        string
	State       state
	LastSuccess moment
	Error       string
	Queued      string
	Dropped     string
}

func (p *page) sources() {
	p.Heading, p.Path = "Sources and sinks", p.above()
	reads := p.reads(p.query.filter)
	c := fit(len(reads), page100, p.query, query{view: allSources})
	body := &health{Reads: reads[c.From:c.To], Cut: c}
	if p.opts.Sinks != nil {
		for _, s := range p.opts.Sinks() {
			d := sink{
				Name: clean(s.Name), State: state{"ok", good}, LastSuccess: when(s.LastSuccess, p.Now),
				Queued: grouped(s.Queued), Dropped: grouped(int(s.Dropped)),
			}
			switch {
			case s.Err != nil:
				d.State, d.Error = state{"failing", bad}, clean(s.Err.Error())
			case s.LastSuccess.IsZero():
				d.State = state{"not written yet", warn}
			}
			body.Sinks = append(body.Sinks, d)
		}
		slices.SortStableFunc(body.Sinks, func(a, b sink) int { return cmp.Compare(a.Name, b.Name) })
	}
	p.Body = body
}

// sourceCard sums up how sources fare.
func (p *page) sourceCard() card {
	var failing, all int
	for i := range p.Sources {
		if s := &p.Sources[i]; s.Unread == nil {
			all++
			if s.Err != nil {
				failing++
			}
		}
	}
	c := card{Name: "Sources", Href: p.to(query{view: allSources}), State: state{"", good}}
	c.Text, c.Of = grouped(all), "are read"
	if failing > 0 {
		c.Text, c.Of, c.State.Tone = grouped(failing)+" of "+grouped(all), "fail", bad
	}
	return c
}

// read is how a source of a node is read.
type read struct {
	Source                 string
	Node                   anchor // empty for a source of many, and on the node's own page
	State                  state
	Last, LastSuccess, Due moment
	Why                    string
}

// reading returns reads as they are drawn.
func (p *page) reading(reads []explain.Read) (drawn []read) {
	for i := range reads {
		r := &reads[i]
		d := read{
			Source: clean(r.Source), State: state{"ok", good},
			Last: when(r.LastRead, p.Now), LastSuccess: when(r.LastSuccess, p.Now), Due: due(r.Due, p.Now),
		}
		// An error says its reason itself.
		if d.Why = clean(r.Error); d.Why == "" && r.Reason != metric.Measured.String() {
			d.Why = r.Reason
		}
		switch {
		case d.Why != "":
			d.State = state{"failing", bad}
			if reason, ok := metric.ParseReason(r.Reason); ok && reason == metric.NodeExcluded {
				d.State = state{"left out", quiet}
			}
		case r.LastRead.IsZero():
			d.State = state{"not read yet", warn}
		}
		drawn = append(drawn, d)
	}
	return drawn
}

// reads returns how all sources, or those whose name or node holds the text, are read:
// failing ones first.
func (p *page) reads(text string) []read {
	var all []read
	for i := range p.Sources {
		s := &p.Sources[i]
		if !holds(s.Name, text) && !holds(string(s.Node), text) {
			continue
		}
		r := read{
			Source: clean(s.Name), State: state{"ok", good},
			Last: when(s.LastRead, p.Now), LastSuccess: when(s.LastSuccess, p.Now), Due: due(s.Due, p.Now),
		}
		if s.Node != "" {
			r.Node = anchor{Text: clean(string(s.Node)), Href: p.to(query{view: oneNode, node: s.Node})}
		}
		switch {
		case s.Unread != nil:
			r.State, r.Why, r.Due = state{"left out", quiet}, clean(s.Unread.Error()), moment{}
		case s.Err != nil:
			r.State, r.Why = state{"failing", bad}, clean(s.Err.Error())
		case s.LastRead.IsZero():
			r.State = state{"not read yet", warn}
		}
		all = append(all, r)
	}
	order := map[tone]int{bad: 0, warn: 1, good: 2, quiet: 3}
	slices.SortStableFunc(all, func(a, b read) int { return cmp.Compare(order[a.State.Tone], order[b.State.Tone]) })
	return all
}
