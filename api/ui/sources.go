package ui

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// sourcesBody is the body of the page of sources and sinks.
type sourcesBody struct {
	Reads []sourceRead
	Cut   listRange
	Sinks []sink
}

// sink is the state of a sink as the page shows it.
type sink struct {
	Name        string
	State       state
	LastSuccess shownTime
	Took        string
	Error       string
	Queued      string
	Dropped     string
}

func (p *page) sources() error {
	reads := p.sourceReads(p.query.filter)
	for i := range reads {
		if reads[i].State.Tone == bad {
			p.Problems++
		}
	}
	c := p.paginate(len(reads), page100, query{view: allSources})
	body := &sourcesBody{Reads: reads[c.From:c.To], Cut: c}
	if p.opts.Sinks != nil {
		for _, s := range p.opts.Sinks() {
			d := sink{
				Name: printable(s.Name), State: fine, LastSuccess: relativeTime(s.LastSuccess, p.Now),
				Queued: humanize.Number(s.Queued), Dropped: humanize.Number(int(s.Dropped)),
			}
			if s.Took > 0 {
				d.Took = humanize.Duration(s.Took)
			}
			switch {
			case s.Err != nil:
				d.State, d.Error = state{"failing", bad}, printable(s.Err.Error())
				p.Problems++
			case s.LastSuccess.IsZero():
				d.State = state{"not written yet", warn}
			}
			body.Sinks = append(body.Sinks, d)
		}
		slices.SortStableFunc(body.Sinks, func(a, b sink) int { return cmp.Compare(a.Name, b.Name) })
	}
	p.show("Sources and sinks", "sources", body)
	return nil
}

// sourceCard returns the card that counts failing sources.
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
	c := card{Name: "Sources", Href: p.linkTo(query{view: allSources}), State: state{"", good}}
	c.Text, c.Of = humanize.Number(all), "are read"
	if failing > 0 {
		c.Text, c.Of, c.State.Tone = humanize.Number(failing)+" of "+humanize.Number(all), "fail", bad
	}
	return c
}

// sourceRead is the state of one source as the page shows it.
type sourceRead struct {
	Source                 string
	Node                   anchor // empty for a source of many nodes, and on the page of the node
	State                  state
	Last, LastSuccess, Due shownTime
	Took, Bytes            string
	Why                    string
}

// drawRead returns the state of a source as the page shows it.
func (p *page) drawRead(r *explain.Read) sourceRead {
	d := sourceRead{
		Source: printable(r.Source), State: fine,
		Last: relativeTime(r.LastRead, p.Now), LastSuccess: relativeTime(r.LastSuccess, p.Now), Due: dueTime(r.Due, p.Now),
	}
	// An error includes its reason.
	if d.Why = printable(r.Error); d.Why == "" && r.Reason != metric.Measured.String() {
		d.Why = r.Reason
	}
	if r.Seconds > 0 {
		d.Took = humanize.Seconds(r.Seconds)
	}
	if r.Bytes > 0 {
		d.Bytes = humanize.Bytes(float64(r.Bytes))
	}
	clock := r.ClockText()
	switch {
	case r.Reason == metric.NodeExcluded.String():
		d.State = state{"excluded", quiet}
	case d.Why != "":
		d.State = state{"failing", bad}
	case r.LastRead.IsZero():
		d.State = state{"not read yet", warn}
	case clock != "":
		d.State, d.Why = clockDiffers, clock
	}
	return d
}

// sourceReads returns the sources with text in their name or node, failing ones first.
func (p *page) sourceReads(text string) []sourceRead {
	var all []sourceRead
	for i := range p.Sources {
		s := &p.Sources[i]
		if !containsFold(s.Name, text) && !containsFold(string(s.Node), text) {
			continue
		}
		read := explain.NewRead(s)
		switch {
		case s.Unread != nil:
			read.Reason, read.Error, read.Due = metric.NodeExcluded.String(), s.Unread.Error(), time.Time{}
		case s.Err != nil:
			read.Error = s.Err.Error()
		}
		r := p.drawRead(&read)
		if s.Node != "" {
			r.Node = p.nodeAnchor(s.Node)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b sourceRead) int { return cmp.Compare(urgency[a.State.Tone], urgency[b.State.Tone]) })
	return all
}
