package explain

import (
	"fmt"
	"slices"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Node explains a node. It returns false if nothing is known of it. Until nodes have been listed,
// the answer for an unknown name is that nodes are not listed yet.
func (w *Explainer) Node(name metric.NodeName) (Explanation, bool) {
	c := w.openNode(name)
	if !c.known() {
		return w.notListedYet(Explanation{Kind: "node", Node: name})
	}
	e := Explanation{Kind: "node", Node: name, At: w.Now, Known: w.knownNode(name), Reads: w.reads(name, true)}
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
	w           *Explainer
	name        metric.NodeName
	sample      *metric.Sample
	verdicts    []activeVerdict // on the node itself
	hasVerdicts bool            // on the node or on anything on it
	read        *reading
}

func (w *Explainer) openNode(name metric.NodeName) *nodeFile {
	c := &nodeFile{w: w, name: name, sample: w.lookup(metric.Entity{Kind: metric.Node, Node: name}), read: w.readingOf(name)}
	for v, since := range w.verdictsOn(name) {
		c.hasVerdicts = true
		if v.Entity.Kind == metric.Node && v.Entity.Part == "" {
			c.verdicts = append(c.verdicts, withEvidence(v, since))
		}
	}
	return c
}

func (c *nodeFile) known() bool {
	if c.w.Facts.Node(c.name) != nil || c.sample != nil || c.hasVerdicts || len(c.w.Facts.PodsOn(c.name)) > 0 {
		return true
	}
	return slices.ContainsFunc(c.w.Sources, func(s SourceState) bool { return s.Node == c.name })
}

// finding explains one group of the node's metrics.
func (c *nodeFile) finding(g metric.Group) Finding {
	best := bestOf(c.verdicts, g)
	r := c.w.judgeNode(c.name, g, measure(c.sample, g), best, c.read)
	r.group = g
	if best != nil && !r.Served && (r.Reason == best.reason || best.reason == metric.Incomplete) {
		r.evidence, r.Since = best.verdict.Evidence, best.since
	}
	t := &messageWriter{now: c.w.Now, kind: metric.Node, node: c.name, asked: g, facts: c.w.Facts.Node(c.name), read: c.read}
	return t.finding(&r, g, c.sample)
}

// judgeNode returns the outcome of group asked of a node. st is the best verdict on it, or nil.
func (w *Explainer) judgeNode(name metric.NodeName, asked metric.Group, l measurement, st *activeVerdict, read *reading) Outcome {
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
	if w.Facts != nil && w.Facts.Synced && w.Facts.Node(name) == nil {
		return Outcome{Reason: metric.NodeUnknown, Node: name}
	}
	if st != nil {
		r := st.outcome(name)
		r.Node = name
		return r
	}
	return w.unjudgedNode(name, l, read)
}

// unjudgedNode returns the outcome of a node without a verdict that lacks numbers.
func (w *Explainer) unjudgedNode(name metric.NodeName, l measurement, read *reading) Outcome {
	r := Outcome{Reason: metric.NodeNotScrapedYet, Node: name, Since: read.success}
	switch {
	case read.unread != nil:
		r.Reason = reasonOf(read.unread, metric.NodeExcluded)
	case read.err != nil:
		r.Reason, r.evidence.Err = reasonOf(read.err, metric.NodeUnreachable), read.err
		if n := w.Facts.Node(name); n != nil && !n.Ready {
			r.evidence.Cause, r.Reason = r.Reason, metric.NodeNotReady
		}
	case l.reported:
		r.Reason = l.missingReason()
	case w.View != nil && !read.last.IsZero():
		r.Reason = metric.NotReported
	}
	return r
}

// droppedText says in a sentence how much of the node was dropped because of a limit.
func (c *nodeFile) droppedText() string {
	for i := range c.verdicts {
		if e := &c.verdicts[i].verdict.Evidence; c.verdicts[i].reason == metric.OverLimit && e.Got.Value > 0 {
			if e.Rule == metric.RuleNames {
				return fmt.Sprintf(" %s names on it were refused: they are longer than Kubernetes allows, which is %s bytes for a pod.", humanize.Decimal(e.Got.Value, 0), humanize.Decimal(e.Limit, 0))
			}
			return fmt.Sprintf(" %s entities on it were dropped at the configured limit of %s.", humanize.Decimal(e.Got.Value, 0), humanize.Decimal(e.Limit, 0))
		}
	}
	return ""
}

// clockText says in a sentence, to append to the summary, that the node's clock differs from weir's,
// and what to do.
func (c *nodeFile) clockText() string {
	for _, s := range c.read.sources {
		read := NewRead(&s)
		if text := read.ClockText(); text != "" {
			return " " + sentence(text+": see on the machine that it keeps time by NTP (`timedatectl`, `chronyc tracking`)")
		}
	}
	return ""
}

// podsText says how many of the pods on the node are served, as a sentence to append to the
// summary. It is empty if the API server lists no pods there.
func (c *nodeFile) podsText() string {
	pods := c.w.Facts.PodsOn(c.name)
	var expected, got, shared int
	survey := c.w.SurveyOf()
	for _, p := range pods {
		switch r := survey.Pod(p); {
		case r.Served:
			expected, got = expected+1, got+1
		case r.Expected():
			expected++
			if r.Node == c.name && !r.Late {
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

// knownNode returns what the API server says about a node, or nil if it says nothing.
func (w *Explainer) knownNode(name metric.NodeName) *Known {
	n := w.Facts.Node(name)
	if n == nil {
		return nil
	}
	k := &Known{State: "ready", AsOf: utc(w.Facts.At)}
	if !n.Ready {
		k.State = "not ready"
	}
	return k
}
