package model

import (
	"fmt"

	"github.com/weir-metrics/weir/metric"
)

// systemNames are what Heapster called the system containers of a node that
// kubelets call otherwise.
var systemNames = map[string]string{"docker-daemon": "runtime", "system": "misc"}

// known reports whether anything is known of e: numbers, facts or a verdict.
func (q *request) known(e metric.Entity) bool {
	if _, ok := q.view.Lookup(e); ok {
		return true
	}
	switch e.Kind {
	case metric.Cluster:
		return true
	case metric.Node:
		if q.facts.Node(e.Node) != nil {
			return true
		}
	case metric.Pod:
		if q.facts.Pod(e.PodRef()) != nil {
			return true
		}
	case metric.Container:
		if q.facts.Pod(e.PodRef()).Container(e.Name) != nil {
			return true
		}
	case metric.Namespaced:
		found := false
		q.facts.EachPod(func(p *metric.PodFacts) bool {
			found = p.Namespace == e.Namespace
			return !found
		})
		if found {
			return true
		}
	}
	for v := range q.view.Verdicts() {
		if e.Kind == metric.Namespaced && v.Entity.Namespace == e.Namespace || same(v.Entity, e) {
			return true
		}
	}
	return false
}

// same reports whether v is e, whose node may be left empty.
func same(v, e metric.Entity) bool {
	if e.Node == "" {
		v.Node = ""
	}
	return v == e
}

// unknown is the answer about an entity of which nothing is known.
func (q *request) unknown(e metric.Entity) *problem {
	list := modelRoot + "/nodes/"
	switch e.Kind {
	case metric.Namespaced:
		list = modelRoot + "/namespaces/"
	case metric.Pod:
		list = modelRoot + "/namespaces/" + string(e.Namespace) + "/pods/"
	case metric.Container:
		list = modelRoot + "/namespaces/" + string(e.Namespace) + "/pods/" + string(e.Pod) + "/containers/"
	case metric.System:
		list = modelRoot + "/nodes/" + string(e.Node) + "/freecontainers/"
	}
	return notFound("nothing is known of %s: %s lists what is measured", noun(e), list)
}

// noun names an entity in a sentence.
func noun(e metric.Entity) string {
	switch e.Kind {
	case metric.Cluster:
		return "the cluster"
	case metric.Node:
		return "node " + string(e.Node)
	case metric.System:
		return "container " + e.Name + " of node " + string(e.Node)
	case metric.Namespaced:
		return "namespace " + string(e.Namespace)
	}
	return fmt.Sprintf("%v %v", e.Kind, e)
}

// nothing says in one sentence why the query finds no points.
func (q *request) nothing(e metric.Entity, id metric.ID) string {
	if s, ok := q.view.Lookup(e); ok && s.Values.Has(id) {
		return fmt.Sprintf("%v of %s has no point between start and end; it is measured now, so ask without them", id, noun(e))
	}
	return q.missing(e, id)
}

// missing says in one sentence why an entity has no number of a metric.
func (q *request) missing(e metric.Entity, id metric.ID) string {
	d := id.Describe()
	if !d.Levels.Has(e.Kind) {
		return fmt.Sprintf("%v is not kept of a %v", id, e.Kind)
	}
	if e.Kind == metric.Pod && q.facts != nil && q.facts.Synced && q.facts.Pod(e.PodRef()) == nil {
		if _, ok := q.view.Lookup(e); !ok {
			return fmt.Sprintf("there is no %s", noun(e))
		}
	}
	reason, evidence := metric.Unjudged, metric.Evidence{}
	for v := range q.view.Verdicts() {
		if v.Group != d.Group || !same(v.Entity, e) || v.Reason == metric.Measured {
			continue
		}
		if v.Reason.Foreign() && reason != metric.Unjudged {
			continue // of a namesake: it leaves no gap
		}
		if v.Reason.Layer() < reason.Layer() || reason.Foreign() {
			reason, evidence = v.Reason, v.Evidence
		}
	}
	if reason == metric.Unjudged {
		if s, ok := q.view.Lookup(e); ok && s.Reasons[d.Group].Layer() != metric.LayerNone {
			reason = s.Reasons[d.Group]
		} else if p := q.facts.Pod(e.PodRef()); e.Kind == metric.Pod && p != nil && p.Phase == metric.Pending {
			reason = metric.PodPending
		} else {
			reason = metric.NotReported
		}
	}
	evidence.Err = nil // it names addresses, which are no business of who may read one namespace
	return fmt.Sprintf("no %v of %s: %v, %s", id, noun(e), reason, reason.Sentence(d.Group, evidence))
}
