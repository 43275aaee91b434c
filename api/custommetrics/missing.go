package custommetrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/warning"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// agent is who warns.
const agent = "weir"

// absence is why an object has no number.
type absence struct {
	entity metric.Entity
	why    explain.Ruling
}

// world is what reasons are made of: the very state the answer is read from. Only
// an answer that lacks something asks for it.
func (q *question) world() *explain.World {
	return &explain.World{Now: q.options.Now(), View: q.view, Facts: q.facts, Sources: q.options.Sources()}
}

// absences says why each of the objects has no number, in their order.
func (q *question) absences(entities []metric.Entity) []absence {
	all := make([]absence, len(entities))
	w := q.world()
	survey := w.SurveyOf(q.d.ID)
	for i, e := range entities {
		var why explain.Ruling
		switch pod := q.facts.Pod(e.PodRef()); {
		case e.Kind == metric.Pod && pod != nil:
			why = survey.Pod(pod)
		case e.Kind == metric.Node:
			why = survey.Node(e.Node)
		default:
			why, _ = w.Rule(e, q.d.ID)
		}
		all[i] = absence{e, q.absent(why)}
	}
	return all
}

// absent returns why. Where it finds nothing missing of the object as a whole, it is
// a part that is.
func (q *question) absent(why explain.Ruling) explain.Ruling {
	if why.Served {
		return explain.Ruling{Reason: metric.NotReported, Said: "it has no part that the metric selector chooses"}
	}
	return why
}

// notFound returns the error that says why e has no number.
func (q *question) notFound(e metric.Entity) error {
	switch q.kind {
	case metric.Pod:
		if q.facts != nil && q.facts.Synced && q.facts.Pod(e.PodRef()) == nil {
			return notFound("there is no pod %s", e)
		}
	case metric.Node:
		if q.facts != nil && q.facts.Synced && q.facts.Node(e.Node) == nil {
			return notFound("there is no node %s", e.Node)
		}
	case metric.Namespaced:
		return notFound("no pod of namespace %s has %s", e.Namespace, q.d.Prometheus)
	}
	why, known := q.world().Rule(e, q.d.ID)
	if !known {
		return notFound("nothing is known of %v", e)
	}
	why = q.absent(why)
	switch reported := why.Reason.Layer() == metric.LayerReport && why.Reason != metric.NotApplicable; {
	case reported && !q.parts.whole():
		return notFound("%v has no part with %s that the metric selector %s chooses", e, q.d.Prometheus, q.parts.selector)
	case reported && q.d.Parts != "":
		if names := q.partsOf(e); len(names) > 0 {
			return notFound("%v has %s of parts only: choose by a metric selector, of %s", e, q.d.Prometheus, strings.Join(names, ", "))
		}
	}
	return notFound("%v has no %s: %s", e, q.d.Prometheus, why.Brief())
}

// nobody returns the error for a selector that found no number.
func (q *question) nobody(namespace string, selector labels.Selector, missing []metric.Entity) error {
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	if len(missing) == 0 {
		if selector.Empty() {
			return notFound("there are no %s%s", q.of.resource, where)
		}
		return notFound("no %s%s have labels that match %s", q.of.resource, where, selector)
	}
	if len(missing) == 1 {
		return q.notFound(missing[0])
	}
	all := q.absences(missing)
	return notFound("none of %d %s has %s: %s; %v: %s", len(all), q.of.resource, q.d.Prometheus, counts(all), all[0].entity, all[0].why.Brief())
}

// warn tells the client of the objects that are missing from an answer, in two
// lines at most.
func (q *question) warn(ctx context.Context, missing []metric.Entity, of int) {
	if len(missing) == 0 {
		return
	}
	all := q.absences(missing)
	warning.AddWarning(ctx, agent, fmt.Sprintf("%d of %d %s have no %s: %s", len(all), of, q.of.resource, q.d.Prometheus, counts(all)))
	warning.AddWarning(ctx, agent, printable(fmt.Sprintf("%v: %s", all[0].entity, all[0].why.Brief())))
}

// warnOfGaps tells the client which pods a namespace's sum lacks.
func (q *question) warnOfGaps(ctx context.Context, namespace metric.Namespace) {
	pods := *q
	pods.of, pods.kind = &objects[0], metric.Pod
	var missing []metric.Entity
	of := 0
	for _, p := range q.facts.PodsIn(namespace) {
		if p.Phase != cluster.Running {
			continue
		}
		of++
		e := pods.entity(string(namespace), string(p.Name))
		if _, ok := pods.measure(e); !ok {
			missing = append(missing, e)
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.SortFunc(missing, metric.Entity.Compare)
	gaps := slices.DeleteFunc(pods.absences(missing), func(a absence) bool {
		// What a pod does not have is no gap in the sum.
		return !a.why.Expected() || a.why.Reason == metric.NotApplicable || a.why.Reason == metric.Unsupported
	})
	if len(gaps) == 0 {
		return
	}
	warning.AddWarning(ctx, agent, fmt.Sprintf("the sum lacks %d of %d pods: %s", len(gaps), of, counts(gaps)))
	warning.AddWarning(ctx, agent, printable(fmt.Sprintf("%v: %s", gaps[0].entity, gaps[0].why.Brief())))
}

// counts says how often each reason holds, the commonest first: "3 NodeTimeout,
// 1 PodPending".
func counts(all []absence) string {
	n := map[metric.Reason]int{}
	for _, a := range all {
		n[a.why.Reason]++
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

// printable returns s without what a header cannot carry.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
