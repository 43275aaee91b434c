package explain

import (
	"fmt"
	"slices"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Node explains a node. It returns false if nothing is known of it. Until nodes have been listed,
// the answer for an unknown name is that nodes are not listed yet.
func (ex *Explainer) Node(name metric.NodeName) (Explanation, bool) {
	c := ex.openNode(name)
	if !c.known() {
		return ex.notListedYet(Explanation{Kind: "node", Node: name})
	}
	e := Explanation{Kind: "node", Node: name, At: ex.Now, Known: ex.knownNode(name), Reads: ex.reads(name, true)}
	for _, g := range explainedGroups(c.sample, func(g metric.Group) bool {
		return slices.ContainsFunc(c.verdicts, func(s activeVerdict) bool { return s.group == g })
	}) {
		e.Findings = append(e.Findings, c.finding(g))
	}
	e.Summary = summary("node "+string(name), e.Findings) + c.droppedText() + c.podsText() + c.clockText()
	return e, true
}

// nodeFile is everything that is known of one node.
type nodeFile struct {
	explainer   *Explainer
	name        metric.NodeName
	sample      *metric.Sample
	verdicts    []activeVerdict // on the node itself
	hasVerdicts bool            // on the node or on anything on it
	read        *reading
}

func (ex *Explainer) openNode(name metric.NodeName) *nodeFile {
	c := &nodeFile{explainer: ex, name: name, sample: ex.lookup(metric.Entity{Kind: metric.Node, Node: name}), read: ex.readingOf(name)}
	for v, since := range ex.verdictsOn(name) {
		c.hasVerdicts = true
		if v.Entity.Kind == metric.Node && v.Entity.Part == "" {
			c.verdicts = append(c.verdicts, withEvidence(v, since))
		}
	}
	return c
}

func (f *nodeFile) known() bool {
	if f.explainer.Facts.Node(f.name) != nil || f.sample != nil || f.hasVerdicts || len(f.explainer.Facts.PodsOn(f.name)) > 0 {
		return true
	}
	return slices.ContainsFunc(f.explainer.Sources, func(s SourceState) bool { return s.Node == f.name })
}

// finding explains one group of the node's metrics.
func (f *nodeFile) finding(g metric.Group) Finding {
	best := bestOf(f.verdicts, g)
	r := f.explainer.judgeNode(f.name, g, measure(f.sample, g), best, f.read)
	r.group = g
	if best != nil && !r.Served && (r.Reason == best.reason || best.reason == metric.Incomplete) {
		r.evidence, r.Since = best.verdict.Evidence, best.since
	}
	t := &messageWriter{now: f.explainer.Now, kind: metric.Node, node: f.name, asked: g, facts: f.explainer.Facts.Node(f.name), read: f.read}
	return t.finding(&r, g, f.sample)
}

// judgeNode returns the outcome of group asked of a node. st is the best verdict on it, or nil.
func (ex *Explainer) judgeNode(name metric.NodeName, asked metric.Group, l measurement, st *activeVerdict, read *reading) Outcome {
	switch {
	case l.metricMissing:
		return l.withoutMetric(asked)
	case l.complete:
		r := l.outcome(asked)
		if st != nil && st.reason == metric.OverLimit {
			r.over = st
		}
		return r
	}
	if ex.Facts != nil && ex.Facts.Synced && ex.Facts.Node(name) == nil {
		return Outcome{Reason: metric.NodeUnknown, Node: name}
	}
	if st != nil {
		r := st.outcome(name)
		r.Node = name
		return r
	}
	return ex.unjudgedNode(name, l, read)
}

// unjudgedNode returns the outcome of a node without a verdict that lacks numbers.
func (ex *Explainer) unjudgedNode(name metric.NodeName, l measurement, read *reading) Outcome {
	r := Outcome{Reason: metric.NodeNotScrapedYet, Node: name, Since: read.success}
	switch {
	case read.unread != nil:
		r.Reason = reasonOf(read.unread, metric.NodeExcluded)
	case read.err != nil:
		r.Reason, r.evidence.Err = reasonOf(read.err, metric.NodeUnreachable), read.err
		if n := ex.Facts.Node(name); n != nil && !n.Ready {
			r.evidence.Cause, r.Reason = r.Reason, metric.NodeNotReady
		}
	case l.reported:
		r.Reason = l.missingReason()
	case ex.View != nil && !read.last.IsZero():
		r.Reason = metric.NotReported
	}
	return r
}

// droppedText returns in a sentence how much of the node was dropped because of a limit.
func (f *nodeFile) droppedText() string {
	for i := range f.verdicts {
		if e := &f.verdicts[i].verdict.Evidence; f.verdicts[i].reason == metric.OverLimit && e.Got.Value > 0 {
			if e.Rule == metric.RuleNames {
				return fmt.Sprintf(" %s names on it were refused: they are longer than Kubernetes allows, which is %s bytes for a pod.", humanize.Decimal(e.Got.Value, 0), humanize.Decimal(e.Limit, 0))
			}
			return fmt.Sprintf(" %s entities on it were dropped at the configured limit of %s.", humanize.Decimal(e.Got.Value, 0), humanize.Decimal(e.Limit, 0))
		}
	}
	return ""
}

// clockText returns in a sentence, to append to the summary, that the node's clock differs from weir's,
// and what to do.
func (f *nodeFile) clockText() string {
	for _, s := range f.read.sources {
		read := NewRead(&s)
		if text := read.ClockText(); text != "" {
			return " " + sentence(text+": see on the machine that it keeps time by NTP (`timedatectl`, `chronyc tracking`)")
		}
	}
	return ""
}

// podsText describes how many of the pods on the node are served, as a sentence to append to the
// summary. It is empty if the API server lists no pods there.
func (f *nodeFile) podsText() string {
	pods := f.explainer.Facts.PodsOn(f.name)
	var expected, got, shared int
	survey := f.explainer.SurveyOf()
	for _, p := range pods {
		switch r := survey.Pod(p); {
		case r.Served:
			expected, got = expected+1, got+1
		case r.Expected():
			expected++
			if r.Node == f.name && !r.Late {
				shared++
			}
		}
	}
	switch {
	case expected == 0:
		return ""
	case got == expected:
		return fmt.Sprintf(" All %s on it that should have metrics have them.", humanize.Count(expected, "pod"))
	case shared > 0:
		return fmt.Sprintf(" %s on it %s no metrics because of that.", humanize.Count(shared, "pod"), humanize.HasHave(shared))
	}
	return fmt.Sprintf(" Of %s on it that should have metrics, %s %s none.", humanize.Count(expected, "pod"), humanize.Number(expected-got), humanize.HasHave(expected-got))
}

// knownNode returns what the API server reports about a node, or nil if it reports nothing.
func (ex *Explainer) knownNode(name metric.NodeName) *Known {
	n := ex.Facts.Node(name)
	if n == nil {
		return nil
	}
	k := &Known{State: "ready", AsOf: utc(ex.Facts.At)}
	if !n.Ready {
		k.State = "not ready"
	}
	return k
}
