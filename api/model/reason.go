package model

import (
	"fmt"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// systemNames maps Heapster's names of system containers to the kubelet's, where they differ.
var systemNames = map[string]string{"docker-daemon": "runtime", "system": "misc"}

// explainer returns an explainer of the state that the answer is read from. Only an answer that
// lacks something needs it.
func (r *request) explainer() *explain.Explainer {
	return &explain.Explainer{Now: r.now, View: r.view, Facts: r.facts, Sources: r.opts.Sources()}
}

// isKnown reports whether weir knows anything about e: numbers, facts or a verdict.
func (r *request) isKnown(e metric.Entity) bool {
	_, known := r.view.Lookup(e)
	if !known {
		_, known = r.explainer().Rule(e, metric.CPUUsageRate)
	}
	return known
}

// unknownEntity is the answer for an entity that weir does not know.
func (r *request) unknownEntity(e metric.Entity) *requestError {
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
	return notFound("nothing is known of %s: %s lists what is measured", entityNoun(e), list)
}

// entityNoun names an entity in a sentence.
func entityNoun(e metric.Entity) string {
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

// explainNoPoints returns in one sentence why the query finds no points.
func (r *request) explainNoPoints(e metric.Entity, id metric.ID) string {
	if s, ok := r.view.Lookup(e); ok && s.Values.Has(id) {
		return fmt.Sprintf("%v of %s has no point between start and end; it is measured now, so ask without them", id, entityNoun(e))
	}
	return r.explainMissing(e, id)
}

// explainMissing returns in one sentence why an entity has no number of a metric.
func (r *request) explainMissing(e metric.Entity, id metric.ID) string {
	if !id.Describe().Kinds.Has(e.Kind) {
		return fmt.Sprintf("%v is not kept of a %v", id, e.Kind)
	}
	outcome, known := r.explainer().Rule(e.Whole(), id)
	if !known {
		return "nothing is known of " + entityNoun(e)
	}
	return fmt.Sprintf("no %v of %s: %s", id, entityNoun(e), outcome.ShortMessage())
}

// explainNotServed is the answer for a node or pod that is not served. It gives the reason.
func (r *request) explainNotServed() *requestError {
	outcome, known := r.explainer().Rule(r.entity, metric.CPUUsageRate, metric.MemoryWorkingSet)
	switch {
	case !known:
		return r.unknownEntity(r.entity)
	case outcome.Served:
		return notFound("%s has no metrics: none of its containers was reported (%v)", entityNoun(r.entity), metric.NotReported)
	}
	return notFound("%s has no metrics: %s", entityNoun(r.entity), outcome.ShortMessage())
}
