package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/metric"
)

// maxDeaths is how many deaths a page shows.
const maxDeaths = 5

// deathsBody is the section of what ended in the last hour.
type deathsBody struct {
	Rows  []deathRow
	Count int
	// All is the command that shows all of them, in full.
	All string
}

// deathRow is a death as the page shows it.
type deathRow struct {
	What  anchor
	Cause string
	State state
	At    shownTime
	Line  trend // of the memory that rose fastest before
	Why   string
}

// deaths returns the section of the deaths that q selects; nil if there are none.
func (p *page) deaths(q death.Query) *deathsBody {
	if p.opts.Deaths == nil {
		return nil
	}
	r := p.opts.Deaths(q)
	body := &deathsBody{Count: r.LeftOut, All: "weir explain death " + strings.TrimSuffix(string(q.Namespace)+"/"+string(q.Pod), "/")}
	if q.Pod == "" {
		body.All = "weir explain death -n " + string(q.Namespace)
	}
	if q.Namespace == "" {
		body.All = "weir explain death -A"
	}
	for i := range r.Deaths {
		d := &r.Deaths[i]
		if d.Cause == death.Completed {
			continue
		}
		if body.Count++; len(body.Rows) == maxDeaths {
			continue
		}
		body.Rows = append(body.Rows, p.deathRow(d, q))
	}
	if body.Count == 0 {
		return nil
	}
	return body
}

func (p *page) deathRow(d *death.Death, q death.Query) deathRow {
	row := deathRow{Cause: string(d.Cause), State: state{string(d.Confidence), quiet}, At: relativeTime(d.At, p.Now), Why: printable(d.Message)}
	if d.Confidence == death.Certain {
		row.State.Tone = warn
	}
	if d.Before != nil && d.Before.Message != "" {
		row.Why += "; before, " + printable(d.Before.Message)
		row.Line = roseBefore(d.Before)
	}
	name := d.Container
	if q.Pod == "" {
		name = strings.TrimSuffix(d.Pod+"/"+d.Container, "/")
		if q.Namespace == "" {
			name = d.Namespace + "/" + name
		}
		if !d.Gone {
			row.What.Href = p.linkTo(query{view: onePod, pod: metric.PodRef{Namespace: metric.Namespace(d.Namespace), Name: metric.PodName(d.Pod)}})
		}
	}
	if row.What.Text = printable(name); name == "" {
		row.What.Text = "the pod"
	}
	return row
}

// roseBefore returns the line of the memory that rose fastest before an end: its first, its highest and its last
// reading, which are what is kept of it.
func roseBefore(b *death.Before) trend {
	i := slices.IndexFunc(b.Memory, func(t endlog.Trend) bool { return t.Kind+" "+t.Name == b.Fastest })
	if i < 0 {
		return trend{}
	}
	t := &b.Memory[i]
	span := t.Last.At.Sub(t.First.At)
	line := newTimeline(func(yield func(time.Time, float64) bool) {
		for _, r := range []endlog.Reading{t.First, t.Highest, t.Last} {
			if !yield(r.At, r.Value) {
				return
			}
		}
	}, t.Last.At, span, 60, span)
	return trend{Title: printable(b.Message), Path: line.path(t.Highest.Value, 2, 2, 78)} // a line on the edge would be cut in half
}
