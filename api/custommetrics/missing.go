package custommetrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// missingObject is an object without a number, and the reason.
type missingObject struct {
	entity  metric.Entity
	outcome explain.Outcome
}

// explanation returns an Explainer of the state that the answer is read from.
func (m *metricRequest) explanation() *explain.Explainer {
	return &explain.Explainer{Now: m.options.Now(), View: m.view, Facts: m.facts, Sources: m.options.Sources()}
}

// absences returns the reason for each object why it has no number, in the same order.
func (m *metricRequest) absences(entities []metric.Entity) []missingObject {
	all := make([]missingObject, len(entities))
	w := m.explanation()
	survey := w.SurveyOf(m.descriptor.ID)
	for i, e := range entities {
		var outcome explain.Outcome
		switch pod := m.facts.Pod(e.PodRef()); {
		case e.Kind == metric.Pod && pod != nil:
			outcome = survey.Pod(pod)
		case e.Kind == metric.Node:
			outcome = survey.Node(e.Node)
		default:
			outcome, _ = w.Rule(e, m.descriptor.ID)
		}
		all[i] = missingObject{e, m.partAbsence(outcome)}
	}
	return all
}

// partAbsence returns the outcome of the whole object. If the whole object is served, it returns
// that the chosen part is missing.
func (m *metricRequest) partAbsence(outcome explain.Outcome) explain.Outcome {
	if outcome.Served {
		return explain.Outcome{Reason: metric.NotReported, Said: "it has no part that the metric selector chooses"}
	}
	return outcome
}

// notFound returns the error that explains why e has no number.
func (m *metricRequest) notFound(e metric.Entity) error {
	synced := m.facts != nil && m.facts.Synced
	switch {
	case synced && m.kind == metric.Pod && m.facts.Pod(e.PodRef()) == nil:
		return metricsgroup.NotFound("there is no pod %s", e)
	case synced && m.kind == metric.Node && m.facts.Node(e.Node) == nil:
		return metricsgroup.NotFound("there is no node %s", e.Node)
	case m.kind == metric.Namespaced:
		return metricsgroup.NotFound("no pod of namespace %s has %s", e.Namespace, m.name())
	}
	outcome, known := m.explanation().Rule(e, m.descriptor.ID)
	if !known {
		return metricsgroup.NotFound("weir does not know %v", e)
	}
	outcome = m.partAbsence(outcome)
	if outcome.Reason.Layer() != metric.LayerReport || outcome.Reason == metric.NotApplicable {
		return metricsgroup.NotFound("%v has no %s: %s", e, m.name(), outcome.ShortMessage())
	}
	if !m.parts.whole() {
		return metricsgroup.NotFound("%v has no part with %s that the metric selector %s chooses", e, m.name(), m.parts.selector)
	}
	if m.descriptor.Parts != "" && m.rule == nil {
		if names := m.partsOf(e); len(names) > 0 {
			return metricsgroup.NotFound("%v has %s of parts only: choose by a metric selector, of %s", e, m.name(), strings.Join(names, ", "))
		}
	}
	return metricsgroup.NotFound("%v has no %s: %s", e, m.name(), outcome.ShortMessage())
}

// noneFound returns the error for a selector that matches no object with a number.
func (m *metricRequest) noneFound(namespace string, selector labels.Selector, missing []metric.Entity) error {
	if len(missing) == 0 {
		return noObjects(m.object.resource, namespace, selector)
	}
	if len(missing) == 1 {
		return m.notFound(missing[0])
	}
	all := m.absences(missing)
	return metricsgroup.NotFound("none of %d %s has %s: %s; %v: %s", len(all), m.object.resource, m.name(), countReasons(all), all[0].entity, all[0].outcome.ShortMessage())
}

// warn adds at most two warnings about objects missing from an answer.
func (m *metricRequest) warn(ctx context.Context, missing []metric.Entity, total int) {
	if len(missing) == 0 {
		return
	}
	all := m.absences(missing)
	warn(ctx, fmt.Sprintf("%d of %d %s have no %s", len(all), total, m.object.resource, m.name()), all)
}

// warnOfGaps adds warnings about pods missing from a namespace's sum.
func (m *metricRequest) warnOfGaps(ctx context.Context, namespace metric.Namespace) {
	pods := *m
	pods.object, pods.kind = &objectKinds[0], metric.Pod
	var missing []metric.Entity
	running := 0
	for _, p := range m.facts.PodsIn(namespace) {
		if p.Phase != cluster.Running {
			continue
		}
		running++
		e := pods.entity(string(namespace), string(p.Name))
		if _, ok := pods.measure(e); !ok {
			missing = append(missing, e)
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.SortFunc(missing, metric.Entity.Compare)
	gaps := slices.DeleteFunc(pods.absences(missing), func(a missingObject) bool {
		// A pod that cannot have the metric leaves no gap in the sum.
		return !a.outcome.Expected() || a.outcome.Reason == metric.NotApplicable || a.outcome.Reason == metric.Unsupported
	})
	if len(gaps) > 0 {
		warn(ctx, fmt.Sprintf("the sum lacks %d of %d pods", len(gaps), running), gaps)
	}
}

// warn adds two warnings: what is missing, with the reasons counted, and the reason of the first
// object.
func warn(ctx context.Context, what string, missing []missingObject) {
	metricsgroup.Warn(ctx, "weir", what+": "+countReasons(missing))
	metricsgroup.Warn(ctx, "weir", fmt.Sprintf("%v: %s", missing[0].entity, missing[0].outcome.ShortMessage()))
}

// countReasons counts the reasons, most frequent first: "3 NodeTimeout, 1 PodPending".
func countReasons(all []missingObject) string {
	n := map[metric.Reason]int{}
	for _, a := range all {
		n[a.outcome.Reason]++
	}
	reasons := slices.SortedFunc(maps.Keys(n), func(a, b metric.Reason) int {
		return cmp.Or(n[b]-n[a], int(a)-int(b))
	})
	var words []string
	for _, r := range reasons {
		words = append(words, fmt.Sprintf("%d %v", n[r], r))
	}
	return strings.Join(words, ", ")
}
