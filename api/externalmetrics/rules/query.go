package rules

import (
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/weir-metrics/weir/internal/humanize"
)

// query checks m's query, which is at n. selected is the node of selectorMetrics, or nil.
func (p *fileParser) query(m *Rule, n, selected *yaml.Node) {
	expr, err := queryParser.ParseExpr(m.Query)
	if err != nil {
		var all parser.ParseErrors
		if !errors.As(err, &all) {
			p.addMistake(n, "query does not parse: %v", err)
			return
		}
		// Later errors are mostly consequences of the first.
		first := all[0]
		at := p.position(n, int(first.PositionRange.Start))
		p.addMistake(at, "query does not parse: %v", first.Err)
		return
	}
	switch expr.Type() {
	case parser.ValueTypeVector, parser.ValueTypeScalar:
	case parser.ValueTypeMatrix:
		p.addMistake(n, "query returns a range of values and not one: put a function such as rate() or max_over_time() around it")
	default:
		p.addMistake(n, "query returns a %s and not numbers", parser.DocumentedType(expr.Type()))
	}
	var names []string // of metrics in the query
	selectors := 0
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.MatrixSelector:
			m.Window = max(m.Window, node.Range)
		case *parser.SubqueryExpr:
			m.Window = max(m.Window, node.Range)
		case *parser.VectorSelector:
			selectors++
			names = append(names, MetricName(node))
			for _, matcher := range node.LabelMatchers {
				if m.NamespaceLabel != "" && matcher.Name == m.NamespaceLabel {
					p.addMistake(p.position(n, int(node.PosRange.Start)), "query chooses by %s, which weir sets to the caller's namespace: leave %v out, or set namespaced: false",
						m.NamespaceLabel, matcher)
				}
			}
		}
		return nil
	})
	if selectors == 0 && m.NamespaceLabel != "" {
		p.addMistake(n, "query names no metric, so it cannot be narrowed to a namespace: set namespaced: false")
	}
	if m.Object != nil && m.Object.Label != "" && !MayHaveLabel(expr, m.Object.Label) {
		p.addMistake(n, "query returns no label %[1]s, so its values are of no object: keep the label, as in sum by (%[1]s) (…), or name another one in for: label", m.Object.Label)
	}
	if selected != nil {
		p.checkSelectorMetrics(m, names, selected)
	}
}

// checkSelectorMetrics checks that each of m's selectorMetrics, at n, is among the names in its query.
func (p *fileParser) checkSelectorMetrics(m *Rule, names []string, n *yaml.Node) {
	for _, name := range m.SelectorMetrics {
		if !slices.Contains(names, name) {
			known := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
			m := p.addMistake(n, "selectorMetrics names %s, which is not in the query: there are %s", name, humanize.List(known, 0))
			m.Wrong, m.Known = name, known
		}
	}
}

// VectorSelectors returns the vector selectors in n.
func VectorSelectors(n parser.Node) (all []*parser.VectorSelector) {
	parser.Inspect(n, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			all = append(all, v)
		}
		return nil
	})
	return all
}

// MetricName returns the name of the metric that v selects, or "" if there is none.
func MetricName(v *parser.VectorSelector) string {
	if v.Name != "" {
		return v.Name
	}
	for _, m := range v.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// position returns the position in the file of a byte in a scalar. It is exact for plain, quoted
// and literal scalars without escapes. Otherwise it is the beginning of the scalar.
func (p *fileParser) position(n *yaml.Node, offset int) *yaml.Node {
	at := &yaml.Node{Line: n.Line, Column: n.Column}
	if offset < 0 || offset > len(n.Value) {
		return at
	}
	before := n.Value[:offset]
	switch {
	case n.Style&yaml.LiteralStyle != 0:
		row := strings.Count(before, "\n")
		line := n.Line + row // n.Line is the line of the bar, counted from 1; the text begins on the next line
		if line >= len(p.source) {
			return at
		}
		start := strings.LastIndexByte(before, '\n') + 1
		text, _, _ := strings.Cut(n.Value[start:], "\n")
		if indent := strings.Index(p.source[line], text); indent >= 0 {
			at.Line, at.Column = line+1, indent+1+offset-start
		}
	case n.Style&yaml.FoldedStyle != 0:
	default:
		quote := 0
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			quote = 1
		}
		// The file must have the same text here. Escapes and folding move it.
		from := n.Column - 1 + quote
		if n.Line > len(p.source) || from > len(p.source[n.Line-1]) {
			return at
		}
		if strings.HasPrefix(p.source[n.Line-1][from:], before) {
			at.Column = from + 1 + offset
		}
	}
	return at
}
