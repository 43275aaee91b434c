package prometheus

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// filters are what a series must pass, all of them: the sink's options and the
// request's.
type filters []*Options

func (f filters) level(k metric.Kind) bool {
	for _, o := range f {
		if len(o.Levels) > 0 && !slices.Contains(o.Levels, k) {
			return false
		}
	}
	return true
}

// metrics returns which metrics of entities of kind k pass. part is the kind of
// part, or empty.
func (f filters) metrics(k metric.Kind, part string) (pass [metric.NumMetrics]bool) {
	for id := range pass {
		d := &metric.Catalogue[id]
		pass[id] = true
		for _, o := range f {
			pass[id] = pass[id] && (len(o.Metrics) == 0 || slices.ContainsFunc(o.Metrics, func(pattern string) bool {
				return match(pattern, d.Name) || match(pattern, d.Prometheus) || match(pattern, familyName(k, part, d))
			}))
		}
	}
	return pass
}

// verdicts reports whether weir_verdicts passes, which is one of the metrics.
func (f filters) verdicts() bool {
	for _, o := range f {
		if len(o.Metrics) > 0 && !slices.ContainsFunc(o.Metrics, func(pattern string) bool { return match(pattern, verdictsFamily) }) {
			return false
		}
	}
	return true
}

// wide reports whether entities pass whatever their names.
func (f filters) wide() bool {
	return !slices.ContainsFunc(f, func(o *Options) bool { return len(o.Namespaces)+len(o.Labels) > 0 })
}

func (f filters) entity(l *labelSet) bool {
	for _, o := range f {
		if len(o.Namespaces) > 0 && !slices.ContainsFunc(o.Namespaces, func(pattern string) bool {
			return l.get("namespace") != "" && match(pattern, l.get("namespace"))
		}) {
			return false
		}
		for name, pattern := range o.Labels {
			if !match(pattern, l.get(name)) {
				return false
			}
		}
	}
	return true
}

// match reports whether s is what pattern says: * stands for any text, the
// slash included, ? for one byte.
func match(pattern, s string) bool {
	star, retry := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0: // let the last star take one more
			retry++
			p, i = star+1, retry
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
