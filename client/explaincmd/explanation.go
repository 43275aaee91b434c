package explaincmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
)

// writeExplanation writes all there is to say of one node, pod or container: the
// answer in a sentence, then what it rests on.
func writeExplanation(p *page, e *explain.Explanation) {
	p.line(0, "", humanize.Bold, e.Summary)
	p.Gap()
	body(p, 0, e)
	for i := range e.Containers {
		if i == 0 || !oneLine(e, i) || !oneLine(e, i-1) {
			p.Gap()
		}
		writeContainer(p, e, &e.Containers[i])
	}
	if len(e.Reads) > 0 {
		p.Gap()
		for i := range e.Reads {
			writeRead(p, e, &e.Reads[i])
		}
	}
	known := known(e)
	if known != "" || len(e.Autoscalers) > 0 {
		p.Gap()
	}
	if known != "" {
		p.line(0, "The API server: ", humanize.Plain, known)
	}
	if len(e.Autoscalers) > 0 {
		p.line(0, "Scaled by: ", humanize.Plain, strings.Join(e.Autoscalers, ", "))
	}
}

// well reports whether there is nothing to explain.
func well(e *explain.Explanation) bool {
	for i := range e.Findings {
		if f := &e.Findings[i]; !f.Served || f.LastKnown || f.Message != "" {
			return false
		}
	}
	return len(e.Duplicates) == 0
}

// shared reports whether a container lacks its numbers for the very reason that its
// pod does, as where the node does not answer.
func shared(pod, container *explain.Explanation) bool {
	for i := range container.Findings {
		f := &container.Findings[i]
		if !slices.ContainsFunc(pod.Findings, func(of explain.Finding) bool {
			// Of the pod it is said by name which container waits.
			said := strings.Replace(of.Message, "container "+container.Container+" ", "the container ", 1)
			return of.Group == f.Group && !of.Served && !f.Served && of.Reason == f.Reason && of.Advice == f.Advice && (of.Message == f.Message || said == f.Message)
		}) {
			return false
		}
	}
	return len(container.Findings) > 0 && len(container.Duplicates) == 0
}

// oneLine reports whether a container of a pod takes one line.
func oneLine(pod *explain.Explanation, i int) bool {
	return well(&pod.Containers[i]) || shared(pod, &pod.Containers[i])
}

// writeContainer writes one container of a pod; in one line if it is well, or if
// the pod's reason is its own.
func writeContainer(p *page, pod, e *explain.Explanation) {
	lead := "container " + e.Container
	switch {
	case shared(pod, e):
		p.line(0, lead+": ", humanize.Plain, "for the same reason")
	case well(e):
		var values []string
		for i := range e.Findings {
			values = append(values, e.Findings[i].Group+" "+e.Findings[i].Value)
		}
		p.line(0, lead+": ", humanize.Plain, strings.Join(values, ", "))
	default:
		p.line(0, "", humanize.Plain, lead)
		body(p, 2, e)
	}
}

// body writes what became of each group, and who was turned away. Groups of which
// the same is to be said share it.
func body(p *page, column int, e *explain.Explanation) {
	written := make([]bool, len(e.Findings))
	for i := range e.Findings {
		if written[i] {
			continue
		}
		var groups []string
		for j := i; j < len(e.Findings); j++ {
			if j == i || same(&e.Findings[i], &e.Findings[j]) {
				groups, written[j] = append(groups, e.Findings[j].Group), true
			}
		}
		writeFinding(p, column, e.At, strings.Join(groups, ", "), &e.Findings[i])
	}
	for i := range e.Duplicates {
		writeDuplicate(p, column, e.At, &e.Duplicates[i])
	}
}

// same reports whether two groups lack a number for the same reason. The evidence
// of the first, which is CPU's if it is among them, stands for all.
func same(a, b *explain.Finding) bool {
	return !a.Served && !b.Served && a.Reason == b.Reason && a.Severity == b.Severity && a.Message == b.Message &&
		a.Since.Equal(b.Since) && a.Next == b.Next && a.Advice == b.Advice
}

func writeFinding(p *page, column int, at time.Time, groups string, f *explain.Finding) {
	p.line(column, "", weight(f), groups+": "+headline(at, f))
	column += 2
	if f.Served && f.Message == "" && !f.LastKnown {
		return // what it rests on is for those who ask for JSON
	}
	p.item(column, "why", f.Message)
	for i, fact := range f.Evidence {
		label := "facts"
		if i > 0 {
			label = ""
		}
		p.item(column, label, fact)
	}
	p.item(column, "rule", f.Rule)
	p.item(column, "since", moment(f.Since, at))
	p.item(column, "next", f.Next)
	p.advise(column, f.Advice)
}

// headline says whether there is a number.
func headline(at time.Time, f *explain.Finding) string {
	if !f.Served {
		s := f.Reason
		if f.Severity != "" && f.Severity != metric.None.String() {
			s += ", " + f.Severity
		}
		return fmt.Sprintf("no number (%s)", s)
	}
	s := cmp.Or(f.Value, "served")
	if !f.Time.IsZero() {
		s += ", read " + moment(f.Time, at)
	}
	switch {
	case f.LastKnown:
		s += "; the last read brought none"
		if f.Reason != metric.Measured.String() {
			s += ": " + f.Reason
		}
	case f.Reason != metric.Measured.String():
		s += "; in doubt: " + f.Reason
	}
	return s
}

// weight is how a finding is set off: the worse, the more.
func weight(f *explain.Finding) humanize.Tint {
	switch {
	case !f.Served && f.Severity == metric.Broken.String():
		return humanize.Red
	case !f.Served && f.Severity == metric.Temporary.String(), f.Served && (f.LastKnown || f.Reason != metric.Measured.String()):
		return humanize.Amber
	}
	return humanize.Plain
}

func writeDuplicate(p *page, column int, at time.Time, r *explain.Duplicate) {
	var is []string
	add := func(format string, value string) {
		if value != "" {
			is = append(is, fmt.Sprintf(format, value))
		}
	}
	add("on %s", string(r.Node))
	add("pod UID %s", string(r.UID))
	add("container %s", short(string(r.ID)))
	add("cgroup %s", string(r.Path))
	add("started %s", moment(r.Started, at))
	p.line(column, "", humanize.Plain, strings.TrimSpace(fmt.Sprintf("turned away (%s): %s", r.Reason, strings.Join(is, ", "))))
	column += 2
	p.item(column, "why", r.Message)
	p.item(column, "rule", r.Rule)
	p.item(column, "since", moment(r.Since, at))
	p.advise(column, r.Advice)
}

// writeRead says how one source of the node is being read.
func writeRead(p *page, e *explain.Explanation, r *explain.Read) {
	said := []string{"not read yet"}
	c := humanize.Plain
	switch {
	case r.Reason != "":
		c = humanize.Amber
		said = []string{r.Reason}
		if !r.LastRead.IsZero() {
			said = append(said, "last read "+moment(r.LastRead, e.At))
		}
		if r.LastSuccess.IsZero() {
			said = append(said, "never with success")
		} else {
			said = append(said, "last success "+moment(r.LastSuccess, e.At))
		}
	case !r.LastRead.IsZero():
		said = []string{"last read " + moment(r.LastRead, e.At)}
	}
	if in := r.Due.Sub(e.At); !r.Due.IsZero() && in > 0 {
		said = append(said, "next in "+humanize.Duration(in))
	}
	of := ""
	if e.Kind != "node" && e.Node != "" {
		of = " of " + string(e.Node)
	}
	p.line(0, r.Source+of+": ", c, strings.Join(said, ", "))
	p.item(2, "error", r.Error)
}

// known says what the API server says; empty if it says nothing.
func known(e *explain.Explanation) string {
	k := e.Known
	if k == nil {
		return ""
	}
	var said []string
	add := func(format string, value string) {
		if value != "" {
			said = append(said, fmt.Sprintf(format, value))
		}
	}
	add("%s", string(k.Phase))
	state := k.State
	if k.Why != "" {
		state = strings.TrimSpace(state + " (" + k.Why + ")")
	}
	add("%s", state)
	add("%s", k.QoS)
	if e.Kind != "node" {
		add("on %s", string(e.Node))
	}
	add("UID %s", string(k.UID))
	add("container %s", short(string(k.ID)))
	add("started %s", moment(k.Started, e.At))
	add("deletion due %s", moment(k.Deleted, e.At))
	if k.Restarts > 0 {
		add("restarts: %s", fmt.Sprint(k.Restarts))
	}
	add("heard %s", moment(k.AsOf, e.At))
	return strings.Join(said, ", ")
}

// short cuts a container's ID as the runtimes' own tools do.
func short(id string) string {
	if i := strings.LastIndex(id, "/"); i >= 0 {
		id = id[i+1:]
	}
	return id[:min(len(id), 13)]
}

// moment says when something was or will be: how long ago, and by the clock, with
// the date where it is another day; empty for an unknown time.
func moment(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	t, now = t.UTC(), now.UTC()
	layout := "15:04:05"
	if t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		layout = time.DateTime
	}
	clock := "(" + t.Format(layout) + " UTC)"
	switch d := now.Sub(t); {
	case d <= -time.Second:
		return "in " + humanize.Duration(d) + " " + clock
	case d < time.Second:
		return "just now " + clock
	default:
		return humanize.Duration(d) + " ago " + clock
	}
}
