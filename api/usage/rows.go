package usage

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// SampleReader is one immutable snapshot of samples and verdicts. It yields them in any order.
type SampleReader interface {
	// Samples yields the latest samples of the entities of a kind. They must not be changed. An
	// entity may have several samples, of several sources or instances. Samples of parts are
	// ignored here.
	Samples(kind metric.Kind) iter.Seq[*metric.Sample]
	// Verdicts yields the verdicts on missing or doubtful numbers, each with the time since when it
	// is true. A verdict is valid until the next step of the iteration.
	Verdicts() iter.Seq2[metric.Verdict, time.Time]
	// Points yields the values of a metric of an entity that are remembered, the oldest first, between
	// two times, both included.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
}

// listRow is one row of a list: a sample or a verdict.
type listRow struct {
	entity  metric.Entity
	name    string // the entity's own; for cgroups the path
	sample  *metric.Sample
	verdict *metric.Verdict
	since   time.Time
}

// collectRows returns the rows of v that belong to the list, sorted. Rows of one item are next to
// each other.
func collectRows(v SampleReader, facts *cluster.Facts, r Resource, q Query) []listRow {
	var rows []listRow
	selector, _ := labels.Parse(q.Selector) // newQuery has reported its error
	add := func(w listRow) {
		e := w.entity
		if e.Part == "" && fits(q.Namespace, string(e.Namespace)) && fits(q.Node, string(e.Node)) &&
			fits(q.Pod, string(e.Pod)) && fits(q.Name, w.name) && hasLabels(facts, e, selector) && !boundElsewhere(facts, w) {
			rows = append(rows, w)
		}
	}
	for _, kind := range kindsOf[r] {
		for s := range v.Samples(kind) {
			if name := nameIn(r, s.Entity, s.Instance); name != "" {
				add(listRow{entity: s.Entity, name: name, sample: s})
			}
		}
	}
	for verdict, since := range v.Verdicts() {
		if !slices.Contains(kindsOf[r], verdict.Entity.Kind) {
			continue
		}
		if name := nameIn(r, verdict.Entity, verdict.Instance); name != "" {
			add(listRow{entity: verdict.Entity, name: name, verdict: &verdict, since: since})
		}
	}
	slices.SortStableFunc(rows, func(a, b listRow) int {
		if r == Cgroups {
			return cmp.Or(cmp.Compare(a.entity.Node, b.entity.Node), cmp.Compare(a.name, b.name))
		}
		return cmp.Or(
			cmp.Compare(a.entity.Namespace, b.entity.Namespace),
			cmp.Compare(a.entity.Pod, b.entity.Pod),
			cmp.Compare(a.name, b.name),
			cmp.Compare(a.entity.Node, b.entity.Node))
	})
	return rows
}

// kindsOf are the kinds of the entities in a list.
var kindsOf = map[Resource][]metric.Kind{
	Nodes: {metric.Node}, Pods: {metric.Pod}, Containers: {metric.Container}, Cgroups: {metric.Node, metric.System, metric.Pod, metric.Container},
}

// nameIn returns the entity's own name in a list of r. It is empty if the entity does not belong
// there.
func nameIn(r Resource, e metric.Entity, i metric.Instance) string {
	switch r {
	case Nodes:
		return string(e.Node)
	case Pods:
		return string(e.Pod)
	case Containers:
		return e.Name
	}
	if i.Path == "" && e.Kind == metric.System {
		return e.Name // the kubelet's name: "runtime"
	}
	return string(i.Path)
}

// hasLabels reports whether the selector matches the labels of e's pod, or of its node if it has no
// pod. Only the empty selector matches what the API server does not know.
func hasLabels(facts *cluster.Facts, e metric.Entity, selector labels.Selector) bool {
	if selector.Empty() {
		return true
	}
	if e.Pod == "" {
		n := facts.Node(e.Node)
		return n != nil && selector.Matches(labels.Set(n.Labels))
	}
	p := facts.Pod(e.PodRef())
	return p != nil && selector.Matches(labels.Set(p.Labels))
}

// boundElsewhere reports whether w is about a pod that the API server binds to another node. The
// list has what that node reports; w would be a second item of the same name.
func boundElsewhere(facts *cluster.Facts, w listRow) bool {
	if w.entity.Pod == "" {
		return false
	}
	p := facts.Pod(w.entity.PodRef())
	if p == nil || p.Node == "" || p.Node == w.entity.Node {
		return false
	}
	if w.sample != nil {
		return w.sample.Rejected()
	}
	return w.verdict.Reason.Layer() == metric.LayerIdentity
}
