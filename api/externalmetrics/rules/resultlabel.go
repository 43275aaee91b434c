package rules

import (
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// MayHaveLabel reports whether a series in the result of an expression can have a label.
func MayHaveLabel(expr parser.Expr, label string) bool {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return MayHaveLabel(e.Expr, label)
	case *parser.UnaryExpr:
		return MayHaveLabel(e.Expr, label)
	case *parser.StepInvariantExpr:
		return MayHaveLabel(e.Expr, label)
	case *parser.SubqueryExpr:
		return MayHaveLabel(e.Expr, label)
	case *parser.MatrixSelector:
		return MayHaveLabel(e.VectorSelector, label)
	case *parser.VectorSelector:
		return !slices.ContainsFunc(e.LabelMatchers, func(m *labels.Matcher) bool {
			return m.Name == label && m.Type == labels.MatchEqual && m.Value == ""
		})
	case *parser.AggregateExpr:
		return aggregateHasLabel(e, label)
	case *parser.BinaryExpr:
		return binaryHasLabel(e, label)
	case *parser.Call:
		return callHasLabel(e, label)
	}
	return false // numbers and text
}

// selectingAggregations return some of the series that they are given.
var selectingAggregations = []parser.ItemType{parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO}

func aggregateHasLabel(e *parser.AggregateExpr, label string) bool {
	if name, ok := e.Param.(*parser.StringLiteral); ok && e.Op == parser.COUNT_VALUES && name.Val == label {
		return true
	}
	if !slices.Contains(selectingAggregations, e.Op) && slices.Contains(e.Grouping, label) == e.Without {
		return false
	}
	return MayHaveLabel(e.Expr, label)
}

func binaryHasLabel(e *parser.BinaryExpr, label string) bool {
	left, right := MayHaveLabel(e.LHS, label), MayHaveLabel(e.RHS, label)
	m := e.VectorMatching
	switch {
	case e.LHS.Type() != parser.ValueTypeVector:
		return right
	case e.RHS.Type() != parser.ValueTypeVector || m == nil:
		return left
	case e.Op == parser.LOR:
		return left || right
	case e.Op == parser.LAND || e.Op == parser.LUNLESS:
		return left
	case m.Card == parser.CardManyToOne:
		return left || right && slices.Contains(m.Include, label)
	case m.Card == parser.CardOneToMany:
		return right || left && slices.Contains(m.Include, label)
	}
	return left && slices.Contains(m.MatchingLabels, label) == m.On
}

func callHasLabel(e *parser.Call, label string) bool {
	if e.Type() != parser.ValueTypeVector {
		return false
	}
	if e.Func.Name == "label_replace" || e.Func.Name == "label_join" {
		if to, ok := e.Args[1].(*parser.StringLiteral); ok && to.Val == label {
			return true
		}
	}
	return slices.ContainsFunc(e.Args, func(arg parser.Expr) bool { return MayHaveLabel(arg, label) })
}
