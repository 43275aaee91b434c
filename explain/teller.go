package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// teller puts rulings into words.
type teller struct {
	now       time.Time
	kind      metric.Kind
	node      metric.NodeName
	container string // of the subject, if it is one
	asked     metric.Group
	pod       *cluster.Pod
	facts     *cluster.Node
	read      *reading
	lacks     []metric.Group // what the container at fault has not
}

func (f *file) teller(kind metric.Kind) *teller {
	return &teller{now: f.w.Now, kind: kind, node: f.node, pod: f.facts, facts: f.w.Facts.Node(f.node), read: f.read}
}

// finding says r in full. sample holds the numbers, if there are any.
func (t *teller) finding(r *Ruling, g metric.Group, sample *metric.Sample) Finding {
	if t.kind != metric.Node {
		r.evidence.Err = nil // errors name addresses
	}
	f := Finding{
		Group: g.String(), Reason: r.Reason.String(), Served: r.Served, Container: r.Container,
		Since: utc(r.Since), Rule: r.evidence.Rule, Severity: t.severity(r).String(),
	}
	if t.kind == metric.Container {
		f.Container = ""
	}
	if r.Served {
		f.Value, f.Number = value(sample, g)
		f.Time = utc(sample.Time(g))
		f.Held = sample.LastKnown&(1<<g) != 0
	}
	f.Message = t.message(r, f.Held)
	f.Evidence = t.evidence(r, sample)
	if due := t.due(r); !due.IsZero() && (!r.Served || f.Held) {
		f.Due = utc(due)
		r.evidence.Due = due.UnixNano()
	} else {
		r.evidence.Due = 0
	}
	f.Next = t.next(r, f.Held)
	f.Advice = t.advice(r)
	return f
}

// severity returns how bad r is. What should have passed and did not is broken.
func (t *teller) severity(r *Ruling) metric.Severity {
	g := r.Reason.Severity()
	switch {
	case r.Served && r.Reason != metric.Ambiguous:
		return metric.None
	case r.Served:
		return g
	case g == metric.None && rejection(r.Reason):
		g = metric.Temporary // it is all there was
	}
	if g == metric.Temporary && !r.Since.IsZero() && t.now.Sub(r.Since) > t.read.lasting() {
		g = metric.Broken
	}
	return g
}

// due returns when the reason may next change; zero if nobody knows. The next
// read of the node is the best word, for rounds are put in for newcomers; but a
// verdict may know that it is too early.
func (t *teller) due(r *Ruling) time.Time {
	switch r.Reason.Layer() {
	case metric.LayerLife:
		return time.Time{}
	case metric.LayerNone:
	case metric.LayerReport:
		if r.Reason == metric.Unsupported || r.Reason == metric.NotApplicable {
			return time.Time{}
		}
	}
	switch r.Reason {
	case metric.NodeUnknown, metric.NodeExcluded, metric.NodeNoAddress, metric.Ambiguous:
		return time.Time{}
	}
	said := time.Time{}
	if r.evidence.Due != 0 {
		said = time.Unix(0, r.evidence.Due)
	}
	due := t.read.due
	if due.IsZero() {
		return said
	}
	if r.Reason == metric.TooYoung {
		if every := t.read.every(); every > 0 && due.Before(said) {
			due = due.Add(every * ((said.Sub(due) + every - 1) / every))
		}
	}
	return due
}

// next says what happens by itself.
func (t *teller) next(r *Ruling, held bool) string {
	switch {
	case r.Served && r.Reason == metric.Measured && !held:
		return ""
	case held && r.Reason == metric.Measured:
		return metric.NotReported.Next(r.evidence, t.now)
	case r.Late:
		return metric.NotReported.Next(r.evidence, t.now)
	}
	return r.Reason.Next(r.evidence, t.now)
}

// advice says what to do.
func (t *teller) advice(r *Ruling) string {
	if r.Served && r.Reason == metric.Measured || r.Late {
		return ""
	}
	advice := r.Reason.Advice()
	if t.kind != metric.Node && t.node != "" && (r.Reason.Layer() == metric.LayerScrape || r.Reason == metric.NodeNotReady) {
		advice = strings.TrimSpace(advice + fmt.Sprintf(" `weir explain node %s` tells more.", t.node))
	}
	return advice
}

// message says r in a sentence, without a full stop; nothing of what is plainly
// measured.
func (t *teller) message(r *Ruling, held bool) string {
	switch {
	case held:
		return t.missed(r)
	case r.Reason == metric.Measured:
		return ""
	}
	text := t.told(r)
	if r.Container == "" || t.kind == metric.Container || r.Reason.Layer() == metric.LayerLife {
		return text
	}
	if len(t.lacks) == 0 {
		return fmt.Sprintf("container %s: %s", r.Container, text)
	}
	names := make([]string, len(t.lacks))
	for i, g := range t.lacks {
		names[i] = noun(g)
	}
	text = fmt.Sprintf("container %s has no %s: %s", r.Container, strings.Join(names, " or "), text)
	if !slices.Contains(t.lacks, t.asked) {
		text = wholes + text
	}
	return text
}

// missed says why an earlier number stands in for one that is missing.
func (t *teller) missed(r *Ruling) string {
	text := "the last read did not bring it, and the number before stands in"
	if t.read.err != nil {
		text += ": " + t.naming(reasonOf(t.read.err, metric.NodeUnreachable).Sentence(t.asked, metric.Evidence{}))
	}
	if r.Reason == metric.Ambiguous {
		text += "; " + t.told(r)
	}
	return text
}
