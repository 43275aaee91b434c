package explain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

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
	idle      bool   // nothing is to be measured
	said      string // only if idle
}

// cause is a MissingCause that is still being counted.
type cause struct {
	MissingCause
	outcome  Outcome // of the first entity
	severity metric.Severity
	names    []named
	scaled   map[string]bool
	due      time.Time // when the last entity may change
}

// named is a name in a cause.
type named struct {
	ref       metric.PodRef
	container string
	node      metric.NodeName
}

// cause returns the cause that counts an entity on node with this outcome. It returns nil if the
// entity has no cause.
func (r *reporter) cause(is *Outcome, node metric.NodeName) *cause {
	if is.Served && is.Reason != metric.Ambiguous || is.Reason == metric.PodFinished {
		return nil
	}
	key := causeKey{reason: is.Reason, late: is.Late, shown: is.shown, restarted: is.restarted, served: is.Served}
	if !is.Expected() {
		key.idle, key.said = true, is.Said
	} else if layer := is.Reason.Layer(); (layer == metric.LayerNode || layer == metric.LayerScrape) && !is.Late {
		key.node = node
	}
	c := r.causes[key]
	if c == nil {
		c = &cause{outcome: *is, scaled: map[string]bool{}}
		r.causes[key] = c
	}
	t := r.messageWriter(node, metric.Pod)
	c.severity = max(c.severity, t.severity(is))
	c.due = later(c.due, t.due(is))
	if c.Since.IsZero() || !is.Since.IsZero() && is.Since.Before(c.Since) {
		c.Since = is.Since
	}
	return c
}

func compareNamed(a, b named) int {
	return cmp.Or(
		cmp.Compare(truth(a.node == ""), truth(b.node == "")), // nodes first
		strings.Compare(string(a.node), string(b.node)),
		strings.Compare(string(a.ref.Namespace), string(b.ref.Namespace)),
		strings.Compare(string(a.ref.Name), string(b.ref.Name)),
	)
}

func (n named) String() string {
	switch {
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
	is := c.outcome
	is.Container, is.Said = "", key.said
	if c.Pods+c.Nodes > 1 && key.node == "" {
		is.Since = time.Time{} // each entity has its own
	}
	t := r.messageWriter(key.node, metric.Pod)
	is.evidence = metric.Evidence{Cause: is.evidence.Cause, Limit: is.evidence.Limit}
	if !c.due.IsZero() {
		is.evidence.Due = c.due.UnixNano()
	}
	out.Reason, out.Why, out.Node, out.Severity = key.reason.String(), key.said, key.node, c.severity.String()
	out.Message = t.message(&is, false)
	out.Next, out.Advice = t.next(&is, false), t.advice(&is)
	out.Since = utc(c.Since)
	slices.SortFunc(c.names, compareNamed)
	for _, n := range c.names[:min(len(c.names), maxNames)] {
		out.Names = append(out.Names, n.String())
	}
	out.Autoscalers = slices.Sorted(maps.Keys(c.scaled))
	return out
}

// joinNodes joins causes that many nodes have in common into one cause. It does so for temporary
// reasons of more than two nodes, and for other reasons of more than maxNames nodes. Nobody reads
// one line for each node.
func (r *reporter) joinNodes() {
	nodes := map[causeKey]int{}
	alike := func(key causeKey) causeKey { key.node = ""; return key }
	for key := range r.causes {
		if key.node != "" {
			nodes[alike(key)]++
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.causes), compareKeys) {
		c, most := r.causes[key], maxNames
		if key.reason.Severity() == metric.Temporary {
			most = 2
		}
		if key.node == "" || nodes[alike(key)] <= most {
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
		cmp.Compare(truth(x.late), truth(y.late)),
		cmp.Compare(truth(x.shown), truth(y.shown)),
		cmp.Compare(truth(x.restarted), truth(y.restarted)),
		cmp.Compare(truth(x.served), truth(y.served)),
		cmp.Compare(truth(x.idle), truth(y.idle)),
		strings.Compare(x.said, y.said),
	)
}

// add adds the counts of o to c.
func (c *cause) add(o *cause) {
	c.Pods, c.Nodes = c.Pods+o.Pods, c.Nodes+o.Nodes
	c.severity, c.due = max(c.severity, o.severity), later(c.due, o.due)
	if compareSince(o.Since, c.Since) < 0 {
		c.Since = o.Since
	}
	c.names = append(c.names, o.names...)
	maps.Copy(c.scaled, o.scaled)
}

// harm returns how harmful a cause is; a report lists the highest first.
func (k causeKey) harm(c *cause) int {
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
