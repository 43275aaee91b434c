package explaincmd

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
)

// maxEvents is how many Events on one object are written.
const maxEvents = 10

// objectEvents are the Events on one object, and why they, or newer ones, cannot be read.
type objectEvents struct {
	all    []event.Event
	unread string
}

// eventsOn reads the Events on an object. A weir that keeps none answers 404, which is not an error.
func eventsOn(ctx context.Context, w Asker, o event.Object) (e objectEvents) {
	list, err := w.Events(ctx, o)
	switch status, _, _ := cli.Answer(err); {
	case err == nil:
		e.all, e.unread = list.Items, list.Unread
	case status == http.StatusNotFound:
	case status == http.StatusForbidden:
		e.unread = "you have no right to list Events in namespace " + o.Namespace
	default:
		e.unread = "they cannot be read: " + err.Error()
	}
	return e
}

// write writes the Events, the newest first.
func (e *objectEvents) write(p *page, now time.Time) {
	if e.unread != "" {
		p.Gap()
		p.paragraph("Events: ", e.unread)
	}
	for i := range e.all {
		if i == 0 {
			p.Gap()
			p.line(0, "", humanize.Plain, "Events, the newest first")
		}
		if i == maxEvents {
			p.line(2, "", humanize.Plain, fmt.Sprintf("and %d older ones", len(e.all)-maxEvents))
			return
		}
		writeEvent(p, &e.all[i], now)
	}
}

func writeEvent(p *page, e *event.Event, now time.Time) {
	tint := humanize.Plain
	if e.Type == "Warning" {
		tint = humanize.Bold
	}
	when := humanize.Ago(e.Last, now)
	if e.Count > 1 {
		when += fmt.Sprintf(", %d times since %s", e.Count, humanize.Clock(e.First, now))
	}
	if from := strings.Trim(e.Source+", "+e.Part, ", "); from != "" {
		when += ", " + from
	}
	p.line(2, e.Reason+" ("+when+"): ", tint, e.Message)
}
