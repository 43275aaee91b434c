package ui

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/cluster/eventlog"
)

// eventsBody is the body of the page of the Events on one object.
type eventsBody struct {
	Rows []eventRow
	Cut  listRange
	// Unread explains why Events cannot be read. It is empty if they can.
	Unread string
}

// eventRow is an Event as the page shows it. Some fields replace those of the Event.
type eventRow struct {
	*eventlog.Event
	From        string
	State       state
	First, Last shownTime
}

// events fills the page of the Events on one object, the newest first.
func (p *page) events() error {
	o := p.query.events
	if p.opts.Events == nil {
		return &pageError{http.StatusNotFound, "This weir keeps no Events.", "Run it with `--events` (docs/events.md)."}
	}
	all := p.opts.Events(o)
	body := &eventsBody{Cut: p.paginate(len(all), page100, query{view: oneEvents, events: o})}
	if p.opts.EventsUnread != nil {
		body.Unread = p.opts.EventsUnread()
	}
	for i := range all[body.Cut.From:body.Cut.To] {
		e := &all[body.Cut.From+i]
		r := eventRow{
			Event: e, From: printable(strings.Trim(e.Source+", "+e.Part, ", ")),
			State: state{strings.ToLower(printable(e.Type)), quiet}, First: relativeTime(e.First, p.Now), Last: relativeTime(e.Last, p.Now),
		}
		if e.Type == "Warning" {
			r.State.Tone = warn
		}
		body.Rows = append(body.Rows, r)
	}
	p.show(printable(o.Name), "events", body)
	p.Kind = "Events on a " + printable(o.Kind)
	return nil
}

// eventsLink returns the link from an object to its Events. It is empty without Options.Events.
func (p *page) eventsLink(o eventlog.Object) []anchor {
	if p.opts.Events == nil {
		return nil
	}
	return []anchor{{Text: "Events", Href: p.linkTo(query{view: oneEvents, events: o})}}
}

// onNode returns the object of Events on a node.
func onNode(name string) eventlog.Object {
	return eventlog.Object{Kind: "Node", Namespace: metav1.NamespaceDefault, Name: name}
}

// parseObject parses KIND/NAMESPACE/NAME.
func parseObject(text string) (o eventlog.Object, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return o, false
	}
	return eventlog.Object{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, true
}
