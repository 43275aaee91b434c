package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// maxNames is how many names a cause has. Its counts include all.
const maxNames = 10

// Namespace reports everything that is missing in a namespace. It returns false if nothing is known
// of it. Until pods have been listed, the answer for an unknown name is a report.
func (ex *Explainer) Namespace(name metric.Namespace) (MissingReport, bool) {
	pods := ex.Facts.PodsIn(name)
	r := newReporter(ex.surveyOfPods(pods))
	for _, p := range pods {
		r.pod(p, r.s.Pod(p))
	}
	switch {
	case ex.Facts == nil && !r.reported(func(n metric.Namespace) bool { return n == name }),
		ex.Facts != nil && ex.Facts.Synced && len(pods) == 0:
		return MissingReport{}, false
	}
	report := r.report("namespace " + string(name))
	report.Namespace = name
	return report, true
}

// Missing reports everything that is missing in the cluster. It goes node by node, because a Survey
// reads the verdicts of a node once for all its pods.
func (ex *Explainer) Missing() MissingReport {
	r := newReporter(ex.Survey())
	nodes := ex.nodes()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		r.node(name, r.s.Node(name))
		for _, p := range ex.Facts.PodsOn(name) {
			r.pod(p, r.s.Pod(p))
		}
		r.countCgroups(name)
	}
	ex.Facts.EachPod(func(p *cluster.Pod) bool {
		if !nodes[p.Node] { // bound to no node, or to one that is gone
			r.pod(p, r.s.Pod(p))
		}
		return true
	})
	if ex.Facts == nil {
		r.reported(func(metric.Namespace) bool { return true })
	}
	r.leftOut(ex.Facts.LeftOutNodes())
	report := r.report("the cluster")
	report.Receivers, report.Adapters = ex.Receivers, ex.Adapters
	return report
}

// tooManyNodes is why nodes are left out.
const tooManyNodes = "the cluster has more nodes than weir reads (--max-nodes); it reads first those that are ready, then those that it knew before"

// leftOut counts n nodes that are left out because the cluster has too many. Their names are not known.
func (r *reporter) leftOut(n int) {
	if n == 0 {
		return
	}
	o := Outcome{Reason: metric.OverLimit, Said: tooManyNodes}
	r.nodes.Expected += n
	r.causeOf(causeKey{reason: o.Reason, detail: o.Said}, &o, "").Nodes += n
}

// nodes returns every node that is known or read.
func (ex *Explainer) nodes() map[metric.NodeName]bool {
	names := map[metric.NodeName]bool{}
	ex.Facts.EachNode(func(n *cluster.Node) bool {
		names[n.Name] = true
		return true
	})
	for i := range ex.Sources {
		if n := ex.Sources[i].Node; n != "" {
			names[n] = true
		}
	}
	if ex.Facts == nil && ex.View != nil {
		for s := range ex.View.Samples(metric.Node) {
			names[s.Entity.Node] = true
		}
	}
	return names
}

// reporter groups missing numbers by cause.
type reporter struct {
	s       *Survey
	nodes   Tally
	pods    Tally
	cgroups Tally
	causes  map[causeKey]*cause
	risks   []Risk
}

func newReporter(s *Survey) *reporter {
	return &reporter{s: s, causes: map[causeKey]*cause{}}
}

// node counts a node.
func (r *reporter) node(name metric.NodeName, outcome Outcome) {
	r.nodes.count(&outcome)
	if c := r.cause(&outcome, name, metric.Node); c != nil {
		c.Nodes++
		c.names = append(c.names, named{node: name})
	}
	if risk, ok := r.s.explainer.risk(name, r.s.reading(name)); ok && outcome.Served {
		r.risks = append(r.risks, risk)
	}
}

// pod counts a pod that the API server knows.
func (r *reporter) pod(p *cluster.Pod, outcome Outcome) {
	r.pods.count(&outcome)
	if c := r.cause(&outcome, p.Node, metric.Pod); c != nil {
		r.addPod(c, p, outcome.Container)
	}
	if partial, ok := p.Partial(); ok && outcome.Served {
		r.pods.Partial++
		stopped := notRunning(p, partial.Stopped, nil)
		key := causeKey{reason: stopped.Reason, partial: true, detail: stopped.Said}
		r.addPod(r.causeOf(key, &stopped, p.Node), p, stopped.Container)
	}
}

// addPod counts a pod in a cause, because of one of its containers or, if that is empty, as a whole.
func (r *reporter) addPod(c *cause, p *cluster.Pod, container string) {
	c.Pods++
	c.names = append(c.names, named{ref: p.PodRef, container: container})
	if r.s.explainer.Autoscalers != nil {
		for _, a := range r.s.explainer.Autoscalers(p) {
			c.scaled[a] = true
		}
	}
}

func (t *Tally) count(r *Outcome) {
	switch {
	case r.Served:
		t.Expected, t.Served = t.Expected+1, t.Served+1
		if r.Reason == metric.Ambiguous {
			t.Doubtful++
		}
	case r.Expected():
		t.Expected++
	default:
		t.Idle++
	}
}

func (r *reporter) messageWriter(node metric.NodeName, kind metric.Kind) *messageWriter {
	return &messageWriter{now: r.s.explainer.Now, kind: kind, node: node, read: r.s.reading(node), facts: r.s.explainer.Facts.Node(node)}
}

// report returns the counts with the most harmful cause first: first broken reasons, then doubtful
// numbers, then temporary reasons; among those, first what concerns autoscalers, then what concerns
// most entities, then what has lasted longest.
func (r *reporter) report(subject string) MissingReport {
	r.joinNodes()
	keys := slices.SortedFunc(maps.Keys(r.causes), func(x, y causeKey) int {
		a, b := r.causes[x], r.causes[y]
		return cmp.Or(
			cmp.Compare(y.rank(b), x.rank(a)),
			compareBool(len(b.scaled) > 0, len(a.scaled) > 0),
			cmp.Compare(b.Pods, a.Pods),
			cmp.Compare(b.Nodes, a.Nodes),
			compareSince(a.Since, b.Since),
			compareKeys(x, y),
		)
	})
	report := MissingReport{At: r.s.explainer.Now, Nodes: r.nodes, Pods: r.pods, Cgroups: r.cgroups, Causes: []MissingCause{}}
	for _, key := range keys {
		c := r.finish(key, r.causes[key])
		switch {
		case key.idle:
			report.Idle = append(report.Idle, c)
		case key.partial:
			report.Partial = append(report.Partial, c)
		default:
			report.Causes = append(report.Causes, c)
		}
	}
	report.Summary = r.summary(subject)
	slices.SortStableFunc(r.risks, func(a, b Risk) int { return compareSince(a.Until, b.Until) }) // first what is withdrawn first
	report.AtRisk, report.NodesAtRisk = r.risks[:min(len(r.risks), maxNames)], len(r.risks)
	return report
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareSince puts the earlier time first, and unknown times last.
func compareSince(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return compareBool(a.IsZero(), b.IsZero())
	}
	return a.Compare(b)
}

// summary describes the tallies in words.
func (r *reporter) summary(subject string) string {
	w := r.s.explainer
	var all []string
	switch {
	case w.Facts != nil && !w.Facts.Synced:
		all = append(all, notListedMessage)
	case w.View == nil:
		all = append(all, "weir has just started and has not read any node yet")
	}
	if r.nodes.Expected > 0 {
		all = append(all, fmt.Sprintf("%s of %s %s CPU and memory", humanize.Number(r.nodes.Served), humanize.Count(r.nodes.Expected, "node"), humanize.HasHave(r.nodes.Expected)))
	}
	switch {
	case r.pods.Expected > 0:
		all = append(all, fmt.Sprintf("%s of %s %s CPU and memory", humanize.Number(r.pods.Served), humanize.Count(r.pods.Expected, "pod"), humanize.HasHave(r.pods.Expected)))
	case r.pods.Idle > 0:
		all = append(all, fmt.Sprintf("no pod of %s should have CPU and memory now", subject))
	default:
		all = append(all, fmt.Sprintf("no pod of %s is known", subject))
	}
	if r.pods.Doubtful > 0 {
		all[len(all)-1] += fmt.Sprintf(", %s of them in doubt", humanize.Number(r.pods.Doubtful))
	}
	switch n := r.pods.Partial; n {
	case 0:
	case 1:
		all = append(all, "1 pod runs without one of its containers")
	default:
		all = append(all, humanize.Count(n, "pod")+" run without one of their containers")
	}
	if r.pods.Idle > 0 {
		all = append(all, fmt.Sprintf("%s %s waiting or finished and %s no metrics", humanize.Count(r.pods.Idle, "pod"), humanize.IsAre(r.pods.Idle), humanize.HasHave(r.pods.Idle)))
	}
	if r.cgroups.Served < r.cgroups.Expected {
		all = append(all, fmt.Sprintf("%s of %s %s CPU and memory", humanize.Number(r.cgroups.Served), humanize.Count(r.cgroups.Expected, "cgroup"), humanize.HasHave(r.cgroups.Expected)))
	}
	for i := range all {
		all[i] = sentence(all[i])
	}
	return strings.Join(all, " ")
}
