package usage

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
)

// Query narrows a list. An empty pattern matches everything.
type Query struct {
	Namespace, Node, Pod, Name string
	// Metrics are names or patterns of further metrics. Nil asks for every gauge
	// and rate, an empty slice for none.
	Metrics []string
}

// parameters lists what a request may say, for the error about one it may not.
var parameters = []string{"namespace", "node", "pod", "name", "metrics"}

// Values returns q as query parameters.
func (q Query) Values() url.Values {
	v := url.Values{}
	for _, p := range []struct{ name, value string }{
		{"namespace", q.Namespace}, {"node", q.Node}, {"pod", q.Pod}, {"name", q.Name},
	} {
		if p.value != "" {
			v.Set(p.name, p.value)
		}
	}
	if q.Metrics != nil {
		v.Set("metrics", strings.Join(q.Metrics, ","))
	}
	return v
}

// ParseQuery is the inverse of Values. It refuses parameters it does not know,
// repeated ones, and metrics that match nothing in the catalogue.
func ParseQuery(v url.Values) (Query, error) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if weirdev.Moot(name) {
			continue
		}
		if !slices.Contains(parameters, name) {
			return Query{}, fmt.Errorf("unknown parameter %q: there are %s", name, strings.Join(parameters, ", "))
		}
		if len(v[name]) > 1 {
			return Query{}, fmt.Errorf("parameter %q is given %d times", name, len(v[name]))
		}
	}
	q := Query{Namespace: v.Get("namespace"), Node: v.Get("node"), Pod: v.Get("pod"), Name: v.Get("name")}
	if v.Has("metrics") {
		q.Metrics = []string{}
		for m := range strings.SplitSeq(v.Get("metrics"), ",") {
			if m = strings.TrimSpace(m); m != "" {
				q.Metrics = append(q.Metrics, m)
			}
		}
	}
	if _, err := choose(q.Metrics); err != nil {
		return Query{}, err
	}
	return q, nil
}

// choice is which metrics go into Item.Metrics, and so which groups' reasons
// are told.
type choice struct {
	metrics [metric.NumMetrics]bool
	groups  [metric.NumGroups]bool
}

func choose(patterns []string) (*choice, error) {
	c := &choice{}
	c.groups[metric.CPU], c.groups[metric.Memory] = true, true
	take := func(d *metric.Descriptor) {
		// Those two have fields of their own.
		if d.ID != metric.CPUUsageRate && d.ID != metric.MemoryWorkingSet {
			c.metrics[d.ID] = true
		}
		if patterns != nil {
			c.groups[d.Group] = true
		}
	}
	if patterns == nil {
		for i := range metric.Catalogue {
			if d := &metric.Catalogue[i]; d.Shape != metric.Cumulative {
				take(d)
			}
		}
		return c, nil
	}
	for _, p := range patterns {
		found := false
		for i := range metric.Catalogue {
			if d := &metric.Catalogue[i]; match(p, d.Name) {
				take(d)
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no metric matches %q: docs/metrics.md lists them", p)
		}
	}
	return c, nil
}

// match reports whether all of s fits pattern, in which * stands for any
// characters, "/" included, and ? for one. The empty pattern fits everything.
// It goes back only to the last star, so it takes at most len(pattern)*len(s)
// steps.
func match(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
