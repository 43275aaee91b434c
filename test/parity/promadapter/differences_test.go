package promadapter

import (
	"net/http"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// difference is a way in which weir's answer differs from the adapter's on purpose.
type difference struct {
	// docs is how docs/from-prometheus-adapter.md or docs/external-metrics.md names the case.
	docs string
	// explains reports whether it is why the answers to a question differ.
	explains func(q *question, adapter, weir *answer) bool
}

// differences are all wanted ones. The first that explains is counted.
var differences = []difference{
	{"a value is NaN", func(_ *question, adapter, weir *answer) bool {
		return adapter.status == http.StatusOK && weir.status == http.StatusNotFound && strings.Contains(weir.message, "returns NaN")
	}},
	{"a value is an infinity", func(_ *question, adapter, weir *answer) bool {
		return adapter.status == http.StatusOK && weir.status == http.StatusNotFound && strings.Contains(weir.message, "returns +Inf")
	}},
	{"several series of one object", func(_ *question, adapter, weir *answer) bool {
		return adapter.status == http.StatusOK && weir.status == http.StatusNotFound && strings.Contains(weir.message, "returns several series")
	}},
	{"no object of a list has a series", func(q *question, adapter, weir *answer) bool {
		return q.resource != "" && adapter.status == http.StatusOK && len(adapter.values) == 0 && weir.status == http.StatusNotFound
	}},
	{"the query returns nothing", func(q *question, adapter, weir *answer) bool {
		return q.resource == "" && adapter.status == http.StatusOK && len(adapter.values) == 0 && weir.status == http.StatusNotFound
	}},
	{"a pod has ended", func(_ *question, adapter, weir *answer) bool {
		return without(adapter, ` done}`).same(weir)
	}},
	{"the metric selector has values with signs of a regular expression", func(q *question, adapter, weir *answer) bool {
		return q.pastesExpression()
	}},
	{"the query has no `<<.LabelMatchers>>`, and the request a metric selector", func(q *question, _, _ *answer) bool {
		return q.metricSelector != "" && (q.metric == "by_index" || q.metric == "by_range" || q.metric == "queue_by_value" || q.metric == "queue_fixed")
	}},
	{"the configuration names no label of the namespace", func(q *question, adapter, _ *answer) bool {
		return q.metric == "no_label_of_namespace" && adapter.status == http.StatusInternalServerError
	}},
	{"the metric selector of a custom metric has `!=`", func(q *question, adapter, weir *answer) bool {
		return q.resource != "" && strings.Contains(q.metricSelector, "!=") && adapter.status != http.StatusOK && strings.Contains(adapter.message, "not a valid label selector operator")
	}},
	{"a comma follows `<<.LabelMatchers>>`, and there are none", func(q *question, adapter, weir *answer) bool {
		return q.resource == "" && q.metricSelector == "" && adapter.status == http.StatusInternalServerError && weir.status == http.StatusOK
	}},
	{"a metric is not carried over", func(q *question, _, weir *answer) bool {
		return q.lost && weir.status == http.StatusNotFound
	}},
}

// without returns an answer without the values whose object ends in a text.
func without(a *answer, suffix string) *answer {
	less := &answer{status: a.status, values: map[string]int64{}}
	for id, v := range a.values {
		if !strings.Contains(id, suffix) {
			less.values[id] = v
		}
	}
	if len(less.values) == 0 && len(a.values) > 0 {
		less.status = http.StatusNotFound
	}
	return less
}

// pastesExpression reports whether the adapter makes a regular expression of values that are not meant as one.
func (q *question) pastesExpression() bool {
	s, err := labels.Parse(q.metricSelector)
	if err != nil {
		return false
	}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		if r.Operator() == selection.In || r.Operator() == selection.NotIn {
			for v := range r.Values() {
				if regexp.QuoteMeta(v) != v {
					return true
				}
			}
		}
	}
	return false
}

// same reports whether answers are errors both, or have the same values up to a thousandth.
func (a *answer) same(b *answer) bool {
	if a.status != http.StatusOK || b.status != http.StatusOK {
		return a.status != http.StatusOK && b.status != http.StatusOK
	}
	if len(a.values) != len(b.values) {
		return false
	}
	for id, v := range a.values {
		w, ok := b.values[id]
		if !ok || max(v-w, w-v) > 1 {
			return false
		}
	}
	return true
}
