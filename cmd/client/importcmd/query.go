package importcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/weir-metrics/weir/api/externalmetrics/rules"
)

// These stand for what prometheus-adapter writes into a query for a caller.
const (
	matchersMark  = "__weir_matchers__"
	namespaceMark = "__weir_namespace__"
	objectMark    = "__weir_object__"
	anyMark       = "__weir_"
)

// convertedQuery is a query without what depends on the caller.
type convertedQuery struct {
	text string
	// narrowed and others are the metrics with and without matchers of the caller.
	narrowed, others []string
}

// promql parses the queries of the adapter as weir does.
var promql = parser.NewParser(parser.Options{})

// convertQuery executes a template for a series. objectLabel is empty for an external metric, and
// namespaceLabel if the query does not depend on the namespace.
func convertQuery(text, series, objectLabel, namespaceLabel string) (*convertedQuery, error) {
	t, err := template.New("metricsQuery").Delims("<<", ">>").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("metricsQuery is not a template: %w", err)
	}
	if dependsOnCaller(t.Root, false) {
		return nil, errors.New("metricsQuery has template logic (if or with) on the matchers of the caller: write a query for each case")
	}
	values := map[string]string{}
	if objectLabel != "" {
		values[objectLabel] = objectMark
	}
	if namespaceLabel != "" {
		values[namespaceLabel] = namespaceMark
	}
	var groupBy []string
	if objectLabel != "" {
		groupBy = []string{objectLabel}
	}
	var out strings.Builder
	err = t.Option("missingkey=zero").Execute(&out, struct {
		Series, LabelMatchers, GroupBy string
		LabelValuesByName              map[string]string
		GroupBySlice                   []string
	}{series, fmt.Sprintf("%s=%q", matchersMark, "1"), objectLabel, values, groupBy})
	if err != nil {
		return nil, fmt.Errorf("metricsQuery is not a template of prometheus-adapter: %w", err)
	}
	expr, err := promql.ParseExpr(out.String())
	if err != nil {
		shown := strings.ReplaceAll(strings.TrimSpace(out.String()), matchersMark+`="1"`, "<<.LabelMatchers>>")
		return nil, fmt.Errorf("the query does not parse: %w: %s", err, shown)
	}
	switch {
	case objectLabel == "":
	case !rules.MayHaveLabel(expr, objectLabel):
		return nil, fmt.Errorf("the query returns no label %s, so prometheus-adapter has a value of no object", objectLabel)
	case comparesObjects(expr, objectLabel):
		return nil, fmt.Errorf("the query aggregates the objects that are asked for, without the label %s, and weir asks for all objects at once: group by <<.GroupBy>> everywhere", objectLabel)
	}
	q := &convertedQuery{}
	for _, v := range rules.VectorSelectors(expr) {
		name := rules.MetricName(v)
		if removeMarks(v, objectLabel, namespaceLabel) {
			q.narrowed = append(q.narrowed, name)
		} else {
			q.others = append(q.others, name)
		}
	}
	if q.text = expr.String(); strings.Contains(q.text, anyMark) {
		return nil, errors.New("metricsQuery writes the caller's namespace or object into another label or a text: weir adds matchers of the namespace's and the object's label only")
	}
	return q, nil
}

// dependsOnCaller reports whether a part of a template is left out for some callers. overMatchers is set
// in a range over the matchers of the caller.
func dependsOnCaller(n parse.Node, overMatchers bool) bool {
	switch n := n.(type) {
	case *parse.ListNode:
		return n != nil && slices.ContainsFunc(n.Nodes, func(n parse.Node) bool { return dependsOnCaller(n, overMatchers) })
	case *parse.IfNode:
		return overMatchers || namesMatchers(n.Pipe) || dependsOnCaller(n.List, false) || dependsOnCaller(n.ElseList, false)
	case *parse.WithNode:
		return overMatchers || namesMatchers(n.Pipe) || dependsOnCaller(n.List, false) || dependsOnCaller(n.ElseList, false)
	case *parse.RangeNode:
		return dependsOnCaller(n.List, overMatchers || namesMatchers(n.Pipe)) || dependsOnCaller(n.ElseList, overMatchers)
	}
	return false
}

func namesMatchers(p *parse.PipeNode) bool {
	return strings.Contains(p.String(), "LabelMatchers") || strings.Contains(p.String(), "LabelValuesByName")
}

// comparesObjects reports whether the value of an object depends on the other objects that are asked for: the
// query aggregates series that it narrows to these objects, and does not group by their label.
func comparesObjects(n parser.Node, objectLabel string) bool {
	mixes := false
	switch n := n.(type) {
	case *parser.AggregateExpr:
		mixes = slices.Contains(n.Grouping, objectLabel) == n.Without
	case *parser.Call:
		mixes = slices.Contains([]string{"scalar", "absent", "absent_over_time"}, n.Func.Name)
	}
	if mixes && slices.ContainsFunc(rules.VectorSelectors(n), func(v *parser.VectorSelector) bool {
		return slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool {
			return m.Name == matchersMark || m.Name == objectLabel && m.Value == objectMark
		})
	}) {
		return true
	}
	for child := range parser.ChildrenIter(n) {
		if comparesObjects(child, objectLabel) {
			return true
		}
	}
	return false
}

// removeMarks removes the matchers of the caller, and those that only want a namespace. It reports
// whether there were matchers of the caller's namespace or, without namespaces, of the caller at all.
func removeMarks(v *parser.VectorSelector, objectLabel, namespaceLabel string) (narrowed bool) {
	v.LabelMatchers = slices.DeleteFunc(v.LabelMatchers, func(m *labels.Matcher) bool {
		positive := m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp
		switch {
		case m.Name == matchersMark:
			narrowed = true
			return true
		case m.Name == namespaceLabel && m.Value == namespaceMark && positive:
			narrowed = true
			return true
		case m.Name == objectLabel && m.Value == objectMark && positive:
			narrowed = narrowed || namespaceLabel == ""
			return true
		}
		return false
	})
	if narrowed {
		v.LabelMatchers = slices.DeleteFunc(v.LabelMatchers, func(m *labels.Matcher) bool {
			return m.Name == namespaceLabel && m.Type == labels.MatchNotEqual && m.Value == ""
		})
	}
	return narrowed
}
