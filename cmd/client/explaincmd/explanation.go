package explaincmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// writeExplanation writes the explanation of one node, pod or container: first the answer in a
// sentence, then its evidence.
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
	if known != "" || len(e.Autoscalers) > 0 || e.Deaths != "" {
		p.Gap()
	}
	p.paragraph("Ended: ", e.Deaths)
	p.paragraph("The API server: ", known)
	p.paragraph("Scaled by: ", strings.Join(e.Autoscalers, ", "))
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

// shared reports whether a container has no numbers for the same reason as its pod, for example
// because the node does not answer.
func shared(pod, container *explain.Explanation) bool {
	for i := range container.Findings {
		f := &container.Findings[i]
		if !slices.ContainsFunc(pod.Findings, func(finding explain.Finding) bool {
			// The pod's message contains the name of the container.
			message := strings.Replace(finding.Message, "container "+container.Container+" ", "the container ", 1)
			return finding.Group == f.Group && !finding.Served && !f.Served && finding.Reason == f.Reason && finding.Advice == f.Advice && (finding.Message == f.Message || message == f.Message)
		}) {
			return false
		}
	}
	return len(container.Findings) > 0 && len(container.Duplicates) == 0
}

// oneLine reports whether a container of a pod needs only one line.
func oneLine(pod *explain.Explanation, i int) bool {
	return well(&pod.Containers[i]) || shared(pod, &pod.Containers[i])
}

// writeContainer writes one container of a pod. It writes one line if the container has no problem
// or has the same reason as the pod.
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

// body writes the finding of each group, and the instances that were rejected. Groups with equal
// findings share the text.
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

// same reports whether two groups have no number for the same reason. Then only the evidence of the
// first is shown.
func same(a, b *explain.Finding) bool {
	return !a.Served && !b.Served && a.Reason == b.Reason && a.Severity == b.Severity && a.Message == b.Message &&
		a.Since.Equal(b.Since) && a.Next == b.Next && a.Advice == b.Advice
}

func writeFinding(p *page, column int, at time.Time, groups string, f *explain.Finding) {
	p.line(column, "", weight(f), groups+": "+headline(at, f))
	column += 2
	if f.Served && f.Message == "" && !f.LastKnown {
		return // the evidence is in the JSON
	}
	p.item(column, "why", f.Message)
	p.items(column, "facts", f.Evidence)
	p.item(column, "rule", f.Rule)
	p.item(column, "since", beginning(f.Since, f.BeforeStart, at))
	p.item(column, "served", prefixed("until ", moment(f.ServedUntil, at)))
	p.item(column, "next", f.Next)
	p.advise(column, f.Advice)
}

// headline reports whether there is a number.
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

// weight returns the colour of a finding: the worse the finding, the stronger.
func weight(f *explain.Finding) humanize.Tint {
	switch {
	case !f.Served && f.Severity == metric.Broken.String():
		return humanize.Red
	case !f.Served && f.Severity == metric.Temporary.String(), f.Served && (f.LastKnown || f.Reason != metric.Measured.String()):
		return humanize.Amber
	}
	return humanize.Plain
}

// details are parts of a line. Empty ones are left out.
type details []string

func (d *details) add(format, value string) {
	if value != "" {
		*d = append(*d, fmt.Sprintf(format, value))
	}
}

func (d details) String() string { return strings.Join(d, ", ") }

func writeDuplicate(p *page, column int, at time.Time, r *explain.Duplicate) {
	var d details
	d.add("on %s", string(r.Node))
	d.add("pod UID %s", string(r.UID))
	d.add("container %s", r.ID.Short())
	d.add("cgroup %s", string(r.Path))
	d.add("started %s", moment(r.Started, at))
	p.line(column, "", humanize.Plain, strings.TrimSpace(fmt.Sprintf("rejected (%s): %s", r.Reason, d)))
	column += 2
	p.item(column, "why", r.Message)
	p.item(column, "rule", r.Rule)
	p.item(column, "since", moment(r.Since, at))
	p.advise(column, r.Advice)
}

// writeRead writes the state of one source that reads the node.
func writeRead(p *page, e *explain.Explanation, r *explain.Read) {
	tint := humanize.Plain
	var d details
	switch {
	case r.Reason != "":
		tint = humanize.Amber
		d.add("%s", r.Reason)
		d.add("last tried %s", moment(r.LastRead, e.At))
		d.add("%s", cmp.Or(prefixed("last success ", moment(r.LastSuccess, e.At)), "never with success"))
	default:
		d.add("%s", cmp.Or(prefixed("last read ", moment(r.LastRead, e.At)), "not read yet"))
	}
	if r.Seconds > 0 {
		d.add("took %s", humanize.Duration(time.Duration(r.Seconds*float64(time.Second))))
	}
	if left := r.Due.Sub(e.At); !r.Due.IsZero() && left > 0 {
		d.add("next in %s", humanize.Duration(left))
	}
	suffix := ""
	if e.Kind != "node" {
		suffix = prefixed(" of ", string(e.Node))
	}
	clock := r.ClockText()
	if clock != "" {
		tint = humanize.Amber
	}
	p.line(0, r.Source+suffix+": ", tint, d.String())
	p.item(2, "clock", clock)
	p.item(2, "error", r.Error)
}

// prefixed returns text after prefix, or "" if text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// known returns what the API server reports, or "" if it does not know the object.
func known(e *explain.Explanation) string {
	k := e.Known
	if k == nil {
		return ""
	}
	state := k.State
	if k.Why != "" {
		state = strings.TrimSpace(state + " (" + k.Why + ")")
	}
	var d details
	d.add("%s", string(k.Phase))
	d.add("%s", state)
	d.add("%s", k.QoS)
	if e.Kind != "node" {
		d.add("on %s", string(e.Node))
	}
	d.add("UID %s", string(k.UID))
	d.add("container %s", k.ID.Short())
	d.add("started %s", moment(k.Started, e.At))
	d.add("deletion due %s", moment(k.Deleted, e.At))
	if k.Restarts > 0 {
		d.add("restarts: %s", humanize.Number(k.Restarts))
	}
	d.add("last run: %s", k.Ending)
	d.add("updated %s", moment(k.AsOf, e.At))
	return d.String()
}

// beginning writes when a trouble began, or that it began before weir did, which then first saw it at t.
func beginning(t time.Time, beforeStart bool, now time.Time) string {
	if beforeStart {
		return "before weir's start; first seen " + moment(t, now)
	}
	return moment(t, now)
}

// moment writes a time relative to now and as a clock time, or "" for an unknown time.
func moment(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return humanize.Ago(t, now) + " (" + humanize.Clock(t, now) + ")"
}
