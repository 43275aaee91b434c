package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	selectors "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// QueryFor returns the query for a caller in a namespace with a selector. A rule that is not
// namespaced ignores the namespace, and a rule of namespaces without one is for all. The error is
// about the selector.
func (r *Rule) QueryFor(namespace string, selector selectors.Selector) (string, error) {
	expr, err := queryParser.ParseExpr(r.Query)
	if err != nil {
		return "", fmt.Errorf("parse query: %w", err)
	}
	chosen, err := Matchers(selector)
	if err != nil {
		return "", err
	}
	var namespaceMatcher *labels.Matcher
	if r.NamespaceLabel != "" && (namespace != "" || !r.IsOfNamespaces()) {
		if namespaceMatcher, err = labels.NewMatcher(labels.MatchEqual, r.NamespaceLabel, namespace); err != nil {
			return "", fmt.Errorf("match namespace: %w", err)
		}
	}
	for _, v := range VectorSelectors(expr) {
		if namespaceMatcher != nil {
			v.LabelMatchers = append(v.LabelMatchers, namespaceMatcher)
		}
		if len(r.SelectorMetrics) == 0 || slices.Contains(r.SelectorMetrics, MetricName(v)) {
			v.LabelMatchers = append(v.LabelMatchers, chosen...)
		}
	}
	return expr.String(), nil
}

// Matchers returns the label matchers for a selector, in its order. Prometheus does not
// distinguish an empty label from a missing one.
func Matchers(selector selectors.Selector) ([]*labels.Matcher, error) {
	if selector == nil {
		return nil, nil
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil, fmt.Errorf("the metric selector chooses nothing: leave it out")
	}
	var matchers []*labels.Matcher
	for _, r := range requirements {
		m, err := matcher(&r)
		if err != nil {
			return nil, err
		}
		matchers = append(matchers, m)
	}
	return matchers, nil
}

func matcher(r *selectors.Requirement) (*labels.Matcher, error) {
	values := r.ValuesUnsorted()
	slices.Sort(values)
	kind, value := labels.MatchEqual, ""
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
	case selection.NotEquals, selection.NotIn, selection.Exists:
		kind = labels.MatchNotEqual
	case selection.DoesNotExist:
	default:
		return nil, fmt.Errorf("the metric selector compares %s by %q, which Prometheus cannot: choose by =, !=, in, notin or existence", r.Key(), r.Operator())
	}
	switch len(values) {
	case 0:
	case 1:
		value = values[0]
	default:
		// The regular expression must match the whole text.
		if kind == labels.MatchEqual {
			kind = labels.MatchRegexp
		} else {
			kind = labels.MatchNotRegexp
		}
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = regexp.QuoteMeta(v)
		}
		value = strings.Join(quoted, "|")
	}
	m, err := labels.NewMatcher(kind, r.Key(), value)
	if err != nil {
		return nil, fmt.Errorf("metric selector on %s: %w", r.Key(), err)
	}
	return m, nil
}
