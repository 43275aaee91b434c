package rules

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Memory is what weir remembers of its own measurements. Rules over time read it.
type Memory struct {
	// Length is how far back it reaches; 0 means metric.DefaultHistory, a negative value that it keeps
	// nothing.
	Length time.Duration
	// Metrics are those that it has; nil if that is not known.
	Metrics []metric.ID
}

// rememberedKinds are the objects of whose measurements weir has a history, by their resources.
var rememberedKinds = map[schema.GroupResource]metric.Kind{
	{Resource: "pods"}:  metric.Pod,
	{Resource: "nodes"}: metric.Node,
}

// OverTime returns the rule over time of a metric of a kind of objects, or nil.
func (r *Rules) OverTime(resource schema.GroupResource, name string) *metricsgroup.OverTime {
	if m := r.Custom(resource, name); m != nil {
		return m.OverTime
	}
	return nil
}

// overTime reads the key overTime of m, whose value is at n. forQueries are the keys of m that mean nothing
// there; absent ones are nil.
func (p *fileParser) overTime(m *Rule, n *yaml.Node, forQueries map[string]*yaml.Node) {
	for _, key := range [...]string{"query", "prometheus", "namespaced", "namespaceLabel", "selectorMetrics"} {
		if at := forQueries[key]; at != nil {
			p.addMistake(at, "%s and overTime exclude each other: leave one out", key)
		}
	}
	o := &metricsgroup.OverTime{Name: m.Name}
	m.OverTime, m.NamespaceLabel = o, ""
	kind := metric.Pod
	switch {
	case m.Object == nil:
		p.addMistake(n, "overTime is of pods or nodes: add for: pod, or for: node")
	case m.Object.Resource.Resource == "": // its own mistake
	default:
		var ok bool
		if kind, ok = rememberedKinds[m.Object.Resource]; !ok {
			p.addMistake(n, "weir keeps no history of %s: for is pod or node", m.Object.Resource)
			kind = metric.Pod
		}
	}
	p.mapping(n, "overTime", fields{
		"metric": {required: true, read: func(n *yaml.Node) { p.rememberedMetric(n, kind, &o.Metric) }},
		"function": {required: true, read: func(n *yaml.Node) {
			var name string
			if p.text(&name, "function")(n); name != "" && !o.SetFunction(name) {
				p.addMistake(n, "function %q is none: it is mean, max, or a quantile such as p95", name)
			}
		}},
		"window": {required: true, read: func(n *yaml.Node) { p.window(n, &o.Window) }},
	})
	m.Window = o.Window
}

// rememberedMetric reads the name of a metric that weir measures, and of which it has a history.
func (p *fileParser) rememberedMetric(n *yaml.Node, kind metric.Kind, to *metric.ID) {
	var name string
	if p.text(&name, "metric")(n); name == "" {
		return
	}
	id, ok := metric.ByName(name)
	kept := p.memory.Metrics
	switch {
	case !ok:
		m := p.addMistake(n, "weir measures no %s: docs/metrics.md lists what it measures", name)
		m.Wrong, m.Known = name, namesOf(kept)
	case !id.Describe().Kinds.Has(kind):
		p.addMistake(n, "a %s has no %s", kind, name)
	case kept != nil && !slices.Contains(kept, id):
		p.addMistake(n, "weir keeps no history of %s, but of %s: to add it, use the option metrics of --sink=memory", name, humanize.List(namesOf(kept), 0))
	}
	*to = id
}

// namesOf returns the Prometheus names of metrics.
func namesOf(ids []metric.ID) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.Describe().Prometheus
	}
	return names
}

// window reads how far back a rule over time looks.
func (p *fileParser) window(n *yaml.Node, to *time.Duration) {
	length := p.memory.Length
	switch {
	case length < 0:
		p.addMistake(n, "weir keeps no history: set the option history of --sink=memory to more than 0")
		return
	case length == 0:
		length = metric.DefaultHistory
	}
	p.duration(n, "window", "5m", length, to)
}
