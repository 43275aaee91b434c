package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

type causeKey struct {
	reason metric.Reason
	node   metric.NodeName
	late   bool
	shown  bool // Outcome.shown
	// restarted is Outcome.restarted.
	restarted bool
	served    bool
	several   bool   // several nodes report it, and nothing shows which is right
	idle      bool   // nothing is to be measured
	partial   bool   // other containers of the pod are measured
	cgroup    bool   // detail is about a cgroup
	detail    string // only if idle or partial, or about a cgroup
}

// cause is a MissingCause that is still being counted.
type cause struct {
	MissingCause
	outcome  Outcome // of the first entity
	severity metric.Severity
	names    []named
	scaled   map[string]bool
	due      time.Time       // when the last entity may change
	on       metric.NodeName // of the first entity
}

// named is a name in a cause.
type named struct {
	ref       metric.PodRef
	container string
	node      metric.NodeName
	cgroup    string // on node
}

// cause returns the cause that counts an entity of a kind on node with this outcome. It returns nil
// if the entity has no cause.
func (r *reporter) cause(o *Outcome, node metric.NodeName, kind metric.Kind) *cause {
	if o.Served && o.Reason != metric.Ambiguous || o.Reason == metric.PodFinished {
		return nil
	}
	key := causeKey{reason: o.Reason, late: o.Late, shown: o.shown, restarted: o.restarted, served: o.Served, several: o.Reason == metric.Ambiguous && o.evidence.Rule == placeRule}
	if !o.Expected() {
		key.idle, key.detail = true, o.Said
	} else if layer := o.Reason.Layer(); (layer == metric.LayerNode || layer == metric.LayerScrape) && !o.Late {
		key.node = node
	} else if kind == metric.System && o.Said != "" {
		key.cgroup, key.detail = true, o.Said
	}
	return r.causeOf(key, o, node)
}

// causeOf returns the cause with a key. o is an outcome that it counts, of an entity on node.
func (r *reporter) causeOf(key causeKey, o *Outcome, node metric.NodeName) *cause {
	c := r.causes[key]
	if c == nil {
		c = &cause{outcome: *o, scaled: map[string]bool{}}
		r.causes[key] = c
	}
	c.on = cmp.Or(c.on, node)
	t := r.messageWriter(node, metric.Pod)
	c.severity = max(c.severity, t.severity(o))
	c.due = later(c.due, t.due(o))
	if since, _ := t.began(o); compareSince(since, c.Since) < 0 {
		c.Since, c.BeforeStart = since, t.beforeStart(o, since)
	}
	return c
}

func compareNamed(a, b named) int {
	return cmp.Or(
		compareBool(a.node == "", b.node == ""), // nodes and cgroups first
		compareBool(a.cgroup != "", b.cgroup != ""),
		strings.Compare(string(a.node), string(b.node)),
		strings.Compare(a.cgroup, b.cgroup),
		strings.Compare(string(a.ref.Namespace), string(b.ref.Namespace)),
		strings.Compare(string(a.ref.Name), string(b.ref.Name)),
	)
}

func (n named) String() string {
	switch {
	case n.cgroup != "":
		return "cgroup " + n.cgroup + " on " + string(n.node)
	case n.node != "":
		return "node/" + string(n.node)
	case n.container != "":
		return n.ref.String() + "/" + n.container
	}
	return n.ref.String()
}

// finish returns a cause with its sentences.
func (r *reporter) finish(key causeKey, c *cause) MissingCause {
	out := c.MissingCause
	outcome := c.outcome
	outcome.Container, outcome.Said = "", key.detail
	kind := metric.Pod
	if key.cgroup {
		kind = metric.System
	}
	if c.Pods+c.Nodes+c.Cgroups > 1 && key.node == "" {
		outcome.Since = time.Time{} // each entity has its own
	}
	t := r.messageWriter(key.node, kind)
	outcome.evidence = metric.Evidence{Rule: outcome.evidence.Rule, Cause: outcome.evidence.Cause, Limit: outcome.evidence.Limit}
	if !c.due.IsZero() {
		outcome.evidence.Due = c.due.UnixNano()
	}
	out.Reason, out.Node, out.Severity = key.reason.String(), key.node, c.severity.String()
	if key.idle || key.partial {
		out.Why = key.detail
	}
	out.Message = t.message(&outcome, false)
	if key.partial {
		out.Message = r.partialMessage(c)
	}
	out.Since = utc(c.Since)
	slices.SortFunc(c.names, compareNamed)
	for _, n := range c.names { // commands name the first that they fit
		if n.node != "" {
			t.node = cmp.Or(t.node, n.node)
		} else if t.ref.Name == "" {
			t.ref, t.container, t.pod = n.ref, n.container, r.s.explainer.Facts.Pod(n.ref)
		}
	}
	t.node = cmp.Or(t.node, c.on)
	out.Next, out.Advice = t.next(&outcome, false), t.advice(&outcome)
	if c.Nodes > 0 { // their pods add nothing
		c.names = slices.DeleteFunc(c.names, func(n named) bool { return n.node == "" || n.cgroup != "" })
	}
	for _, n := range c.names[:min(len(c.names), maxNames)] {
		out.Names = append(out.Names, n.String())
	}
	out.Autoscalers = slices.Sorted(maps.Keys(c.scaled))
	return out
}

// partialMessage describes pods of which a container does not run: one pod in full.
func (r *reporter) partialMessage(c *cause) string {
	if c.Pods > 1 {
		return "these pods run without one of their containers; their numbers are those of the others"
	}
	pod := r.s.explainer.Facts.Pod(c.names[0].ref)
	partial, _ := pod.Partial()
	w := r.messageWriter(pod.Node, metric.Pod)
	w.pod = pod
	a := arguments{}
	w.addState(a, &c.outcome)
	text := fmt.Sprintf("the pod runs without container %s; its numbers are those of %d of %s", c.names[0].container, partial.Running, humanize.Count(partial.Of, "container"))
	if ended := a["ended"]; ended != "" {
		text += "; the last run ended " + ended
	}
	if restarts := a["restarts"]; restarts != "" {
		text += "; restarted " + restarts
	}
	return text
}

// joinNodes joins causes that several nodes have in common into one cause.
func (r *reporter) joinNodes() {
	nodes := map[causeKey]int{}
	alike := func(key causeKey) causeKey { key.node = ""; return key }
	for key := range r.causes {
		if key.node != "" {
			nodes[alike(key)]++
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.causes), compareKeys) {
		c := r.causes[key]
		if key.node == "" || nodes[alike(key)] == 1 {
			continue
		}
		delete(r.causes, key)
		all := r.causes[alike(key)]
		if all == nil {
			r.causes[alike(key)] = c
			continue
		}
		all.add(c)
	}
}

func compareKeys(x, y causeKey) int {
	return cmp.Or(
		cmp.Compare(x.reason, y.reason),
		strings.Compare(string(x.node), string(y.node)),
		compareBool(x.late, y.late),
		compareBool(x.shown, y.shown),
		compareBool(x.restarted, y.restarted),
		compareBool(x.served, y.served),
		compareBool(x.several, y.several),
		compareBool(x.idle, y.idle),
		compareBool(x.partial, y.partial),
		compareBool(x.cgroup, y.cgroup),
		strings.Compare(x.detail, y.detail),
	)
}

// add adds the counts of o to c.
func (c *cause) add(o *cause) {
	c.Pods, c.Nodes, c.Cgroups = c.Pods+o.Pods, c.Nodes+o.Nodes, c.Cgroups+o.Cgroups
	c.severity, c.due = max(c.severity, o.severity), later(c.due, o.due)
	if compareSince(o.Since, c.Since) < 0 {
		c.Since, c.BeforeStart = o.Since, o.BeforeStart
	}
	c.names = append(c.names, o.names...)
	maps.Copy(c.scaled, o.scaled)
}

// rank returns the order of a cause in a report, which lists the highest first.
func (k causeKey) rank(c *cause) int {
	switch {
	case c.severity == metric.Broken && !k.served:
		return 3
	case k.served:
		return 2
	case c.severity == metric.Temporary:
		return 1
	}
	return 0
}
