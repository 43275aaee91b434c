package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// best returns the verdict that best explains why group g of the pod (kind Pod) or of one of its
// containers is not served, or nil.
func (f *file) best(kind metric.Kind, name string, g metric.Group) (best *activeVerdict) {
	for i := range f.verdicts {
		if s := &f.verdicts[i]; f.explains(s, kind, name, g) && s.betterThan(best, g) {
			best = s
		}
	}
	return best
}

// explains reports whether s can be the reason why group g of the pod (kind Pod) or of one of its
// containers is not served.
func (f *file) explains(s *activeVerdict, kind metric.Kind, name string, g metric.Group) bool {
	e := &s.verdict.Entity
	if (f.node != "" || f.facts != nil) && e.Node != f.node || !concernsGroup(s.verdict, g) || f.facts != nil && s.replaced(f.facts) {
		return false
	}
	if kind == metric.Pod {
		return !isIrrelevant(s.verdict, g) && (f.facts == nil || !s.concernsRest(f.facts))
	}
	return e.Kind == kind && e.Name == name && s.reason != metric.OtherNode
}

// judge returns the outcome of group g of the pod (kind Pod) or of one of its containers, and the
// best verdict. l is its measurement.
func (f *file) judge(kind metric.Kind, name string, g metric.Group, l measurement) (r Outcome, best *activeVerdict) {
	best = f.best(kind, name, g)
	switch {
	case f.gone():
		r = f.judgeUnknown()
		if best != nil && kind == metric.Pod {
			r.Since = best.since
		}
	case f.facts == nil:
		r = f.judgeUnlisted(g, l, best)
	default:
		q := question{explainer: f.explainer, pod: f.facts, kind: kind, asked: g, best: best, measurement: l, read: func() *reading { return f.read }, node: f.ofNode}
		if kind == metric.Container {
			q.name, q.container = name, f.facts.Container(name)
			if best != nil && best.outdated(f.facts, f.read) {
				q.best = nil
			}
		}
		r = q.outcome()
	}
	r.group = g
	if kind == metric.Container {
		r.kind = kind
	}
	return r, best
}

// finding explains one group of the metrics of the pod (kind Pod) or of one of its containers.
func (f *file) finding(kind metric.Kind, name string, g metric.Group) Finding {
	sample := f.sample(kind, name)
	r, best := f.judge(kind, name, g, measure(sample, g))
	switch {
	case best == nil || r.Served || kind == metric.Pod && r.Reason.Layer() == metric.LayerLife: // for reasons of layer life the API server has reported everything
	case r.Reason == best.reason:
		r.evidence = best.verdict.Evidence
		if r.Since.IsZero() {
			r.Since = best.since
		}
	case kind == metric.Pod && r.Container != "":
		if c := f.at(r.Container, r.Reason, g); c != nil {
			r.evidence, r.group, r.Since = c.verdict.Evidence, c.group, c.since
			r.evidence.Served = f.servedWhole(c)
		}
	}
	if s := f.chosen(kind, name, g); r.Reason == metric.Ambiguous && s != nil {
		r.evidence, r.Since = s.verdict.Evidence, s.since
	}
	t := f.messageWriter(kind)
	t.nodes = f.candidateNodes()
	t.container, t.asked = name, g
	if kind == metric.Pod {
		t.missing = f.lacks(r.Container)
	}
	return t.finding(&r, g, sample)
}

// chosen returns the verdict on the instance that was chosen among equals for the pod (kind Pod) or
// container, or nil.
func (f *file) chosen(kind metric.Kind, name string, g metric.Group) *activeVerdict {
	for i := range f.verdicts {
		s := &f.verdicts[i]
		e := &s.verdict.Entity
		if s.reason == metric.Ambiguous && s.group == g && e.Kind == kind && (kind == metric.Pod || e.Name == name) && e.Node == f.node && !isRejected(s.verdict) {
			return s
		}
	}
	return nil
}

// candidateNodes returns the nodes that report the pod, if nothing shows which is right.
func (f *file) candidateNodes() (nodes []string) {
	for i := range f.verdicts {
		v := f.verdicts[i].verdict
		if v.Evidence.Rule == placeRule && (v.Reason == metric.Ambiguous || v.Evidence.Cause == metric.Ambiguous) {
			nodes = append(nodes, string(v.Entity.Node))
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// lacks returns which of CPU and memory a container does not have.
func (f *file) lacks(container string) (groups []metric.Group) {
	if container == "" {
		return nil
	}
	for _, g := range served {
		if !measure(f.sample(metric.Container, container), g).complete {
			groups = append(groups, g)
		}
	}
	return groups
}

// judgeUnknown returns the outcome of a pod that the API server does not list. If its newest
// container began lately, the API server may not have named the pod yet.
func (f *file) judgeUnknown() Outcome {
	if f.explainer.Facts.At.Sub(f.read.byOurClock(instant(f.newestStart()))) < run.RecordLag(f.read.every()) {
		return Outcome{Reason: metric.WarmingUp, Said: fmt.Sprintf("the API server lists no pod of this name: what node %s reports began lately, and is new or gone already", f.node)}
	}
	return Outcome{Reason: metric.OldPod, Said: fmt.Sprintf("the API server knows no pod of this name: what node %s reports is of one that is gone", f.node)}
}

// newestStart returns when the newest reported container of the pod began; 0 if unknown.
func (f *file) newestStart() (start int64) {
	for _, s := range f.containers {
		if s.Instance.Origin != metric.StartCgroup {
			start = max(start, s.Instance.Start)
		}
	}
	for i := range f.verdicts {
		if v := f.verdicts[i].verdict; v.Instance.Origin != metric.StartCgroup {
			start = max(start, v.Instance.Start)
		}
	}
	return start
}

// at returns the verdict on a container that gave its pod the reason, preferably one of group g, or
// nil.
func (f *file) at(container string, reason metric.Reason, g metric.Group) (found *activeVerdict) {
	for i := range f.verdicts {
		s := &f.verdicts[i]
		if s.kind == metric.Container && s.name == container && s.reason == reason && s.verdict.Entity.Node == f.node &&
			(found == nil || s.group == g) {
			found = s
		}
	}
	return found
}

// servedWhole reports whether numbers were served of every group that c's container lacks for the reason
// of c. A pod is served whole, so it was not served without one of them.
func (f *file) servedWhole(c *activeVerdict) bool {
	return !slices.ContainsFunc(f.verdicts, func(s activeVerdict) bool {
		return s.kind == c.kind && s.name == c.name && s.reason == c.reason && s.verdict.Entity.Node == f.node && !s.verdict.Evidence.Served
	})
}

// judgeUnlisted returns the outcome of a pod that only nodes report.
func (f *file) judgeUnlisted(g metric.Group, l measurement, st *activeVerdict) Outcome {
	switch {
	case l.complete:
		return l.outcome(g)
	case l.metricMissing:
		return l.withoutMetric(g)
	case st != nil:
		return st.outcome(f.node)
	}
	if n := f.ofNode(); !n.Served && n.Reason.Layer() <= metric.LayerScrape {
		return n
	}
	return Outcome{Reason: l.missingReason()}
}

// finding describes r in full. sample has the numbers, if there are any.
func (w *messageWriter) finding(r *Outcome, g metric.Group, sample *metric.Sample) Finding {
	if w.kind != metric.Node {
		r.evidence.Err = nil // errors name addresses
	}
	f := Finding{
		Group: g.String(), Reason: r.Reason.String(), Served: r.Served, Container: r.Container,
		Rule: r.evidence.Rule, Severity: w.severity(r).String(),
	}
	since, until := w.began(r)
	f.Since, f.ServedUntil, f.BeforeStart = utc(since), utc(until), w.beforeStart(r, since)
	if w.kind == metric.Container {
		f.Container = ""
	}
	if r.Served {
		f.Value, f.Number = value(sample, g)
		f.Time = utc(w.read.byOurClock(sample.Time(g)))
		f.LastKnown = sample.LastKnown&(1<<g) != 0
	}
	f.Message = w.message(r, f.LastKnown)
	f.OtherGroup = w.whole(r)
	f.Evidence = w.evidence(r, sample)
	if due := w.due(r); !due.IsZero() && (!r.Served || f.LastKnown) {
		f.Due = utc(due)
		r.evidence.Due = due.UnixNano()
	} else {
		r.evidence.Due = 0
	}
	f.Next = w.next(r, f.LastKnown)
	f.Advice = w.advice(r)
	return f
}

// began returns since when r is true, and until when numbers were served all the same, which is zero
// if they were not or if that is unknown. Verdicts begin when numbers are withdrawn. The trouble began
// before: with the first read that failed, or after the last reading that had the number.
func (w *messageWriter) began(r *Outcome) (since, until time.Time) {
	var began time.Time
	switch {
	case r.Served || r.Late:
	case isOfReads(r.Reason):
		began = w.readsBehind(r).failing
	case r.Reason == metric.NotReported || r.Reason == metric.NoData:
		began = w.read.byOurClock(instant(r.evidence.Other.Time))
	case r.Reason == metric.Stale:
		began = w.read.byOurClock(instant(max(r.evidence.Other.Time, r.evidence.Got.Time)))
	}
	switch {
	case began.IsZero() || !began.Before(r.Since):
		return r.Since, time.Time{}
	case !isOfReads(r.Reason) && !r.evidence.Served:
		return began, time.Time{}
	}
	return began, r.Since
}

// beforeStart reports whether the trouble of r began before weir did, which first saw it at a time. A read
// that fails has then failed from the first one on. A number that is stale so early was measured before.
func (w *messageWriter) beforeStart(r *Outcome, seen time.Time) bool {
	after, hold := seen.Sub(w.read.started), metric.LastKnownFor(w.read.every())
	switch {
	case w.read.started.IsZero() || after < 0 || r.Served || r.Late:
		return false
	case isOfReads(r.Reason):
		return 2*after < hold && w.readsBehind(r).success.IsZero()
	}
	return r.Reason == metric.Stale && after < hold
}

// severity returns the severity of r. A temporary reason that lasts too long is broken.
func (w *messageWriter) severity(r *Outcome) metric.Severity {
	g := r.Reason.Severity()
	switch {
	case r.Served && r.Reason != metric.Ambiguous:
		return metric.None
	case r.Served:
		return g
	case g == metric.None && r.Reason.IsRejection():
		g = metric.Temporary // nothing else was reported
	}
	if g == metric.Temporary && !r.Since.IsZero() && w.now.Sub(r.Since) > w.read.lasting() {
		g = metric.Broken
	}
	return g
}

// due returns when the reason may next change, or zero if that is unknown. It is the next read of
// the node, because new pods lead to extra rounds. A verdict can report that this read is too early.
func (w *messageWriter) due(r *Outcome) time.Time {
	if r.Reason.Layer() == metric.LayerLife || r.Reason == metric.WarmingUp && r.Said != "" { // it waits for the API server
		return time.Time{}
	}
	switch r.Reason {
	case metric.NodeUnknown, metric.NodeExcluded, metric.NodeNoAddress, metric.Unsupported, metric.NotApplicable, metric.Ambiguous:
		return time.Time{}
	}
	announced := time.Time{}
	if r.evidence.Due != 0 {
		announced = time.Unix(0, r.evidence.Due)
	}
	due := w.read.due
	if due.IsZero() {
		return announced
	}
	slack := time.Duration(0)
	switch r.Reason {
	case metric.FirstSample, metric.WarmingUp:
		slack = w.read.every() / 4 // it is an interval away at least, and reads are not exactly one apart
		fallthrough
	case metric.TooYoung:
		if every := w.read.every(); every > 0 && announced.Sub(due) > slack {
			due = due.Add(every * ((announced.Sub(due) + every - 1) / every))
		}
	}
	return due
}

// next describes what happens by itself.
func (w *messageWriter) next(r *Outcome, lastKnown bool) string {
	switch {
	case r.Served && r.Reason == metric.Measured && !lastKnown:
		return ""
	case lastKnown && r.Reason == metric.Measured, r.Late:
		return nextStep(metric.NotReported, r.evidence, w.now)
	case r.Reason == metric.WarmingUp && r.Said != "":
		return "it is known once the API server has listed it"
	}
	if (r.Reason == metric.FirstSample || r.Reason == metric.WarmingUp) && r.evidence.Due > nanos(w.read.due) {
		return dueText(lateEnough, r.evidence, w.now) // the second reading comes too early
	}
	return nextStep(r.Reason, r.evidence, w.now)
}

// Advice describes what to do about an outcome of a pod.
func (ex *Explainer) Advice(p *cluster.Pod, outcome *Outcome) string {
	t := &messageWriter{now: ex.Now, kind: metric.Pod, node: p.Node, ref: p.PodRef, pod: p, facts: ex.Facts.Node(p.Node), read: ex.readingOf(p.Node)}
	return t.advice(outcome)
}

// advice describes what to do.
func (w *messageWriter) advice(r *Outcome) string {
	if r.Served && r.Reason == metric.Measured || r.Late {
		return ""
	}
	advice := w.reasonAdvice(r)
	ofNode := isOfReads(r.Reason)
	if ofNode && w.facts != nil && len(w.facts.Lifecycle) > 0 {
		advice = strings.TrimSpace(lifecycleText(w.facts) + " " + advice)
	}
	if ofNode && w.kind != metric.Node && w.node != "" {
		advice = strings.TrimSpace(advice + fmt.Sprintf(" `weir explain node %s` shows more.", w.node))
	}
	return advice
}

// lifecycleText names the conditions of KEP-5683 that a node has.
func lifecycleText(n *cluster.Node) string {
	names := make([]string, len(n.Lifecycle))
	for i, c := range n.Lifecycle {
		names[i] = string(c)
	}
	return fmt.Sprintf("An administrator set the condition %[2]s on node %[1]s, which may be the cause.", n.Name, strings.Join(names, " and "))
}
