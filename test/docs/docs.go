// Package docs writes the pages of the documentation that are generated from
// code. make generate runs it. A test fails while a page and the code differ.
package docs

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// Metrics returns docs/metrics.md, the catalogue as a page.
func Metrics() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Written by ` + "`make generate`" + ` from the catalogue in ` + "`metric/catalogue.go`" + `; do not edit.

This page lists every metric that weir knows. The first column has Heapster's name. A metric with ✦ is not in
Heapster's storage schema; its name follows the same pattern. The second column has the name on ` + "`/metrics/cluster`" + `,
which begins there with ` + "`weir_`" + ` and the level, for example
` + "`" + metric.CPUUsageRate.Describe().PrometheusName(metric.Container) + "`" + `. Prometheus metrics have base units.
By default ` + "`/metrics/cluster`" + ` shows the profile of the most used ones; ` + "`?profile=all`" + ` shows all ([how](prometheus.md#what-it-costs)).
Heapster's APIs serve the unit in the last column.

If a source cannot supply a metric, the metric is absent, never zero. The numbers of namespaces and of the cluster are
sums of what was measured. While reads of a node fail, its pods are not in these sums, so watch
` + "`weir_node_up`" + ` on ` + "`/metrics`" + ` too. Metrics with *parts* also exist for each device, network
interface, volume or accelerator of the entity.

On one machine, ` + "`weir run`" + ` has those of the machine and its cgroups:

` + "```" + `console run
$ weir run &
...
weir serves on http://127.0.0.1:8087
...
$ curl -s '127.0.0.1:8087/metrics/cluster?metric=memory_working_set_bytes&level=node'
# HELP weir_node_memory_working_set_bytes Memory in use less the inactive page cache: what the kernel cannot drop at ease.
# TYPE weir_node_memory_working_set_bytes gauge
weir_node_memory_working_set_bytes{node="..."} 5678391296
...
` + "```" + `
`)
	for g := range metric.NumGroups {
		group := metric.Group(g)
		fmt.Fprintf(&b, "\n## %s\n\n| metric | Prometheus | kind | levels | what it is | Heapster's unit |\n| --- | --- | --- | --- | --- | --- |\n", group)
		for i := range metric.Catalogue {
			d := &metric.Catalogue[i]
			if d.Group != group {
				continue
			}
			name := "`" + d.Name + "`"
			if d.NotInHeapster {
				name += " ✦"
			}
			kind := d.Type.String()
			if d.Type == metric.Rate {
				kind += " of `" + d.RateOf.String() + "`"
			}
			help := d.Help
			if d.Parts != "" {
				help += " Parts: " + d.Parts + "s."
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s |\n", name, d.Prometheus, kind, levels(d.Kinds), help, heapsterUnit(d))
		}
	}
	return b.String()
}

// heapsterUnit returns the unit in which Heapster's APIs serve d. It is the
// usual unit of d's kind of number, with two exceptions, as in
// api/model/units.go.
func heapsterUnit(d *metric.Descriptor) string {
	switch d.ID {
	case metric.Uptime:
		return "milliseconds"
	case metric.AcceleratorDutyCycle:
		return "percent"
	}
	return d.Unit.HeapsterUnit()
}

func levels(l metric.KindSet) string {
	var names []string
	for k := range metric.NumKinds {
		if kind := metric.Kind(k); l.Has(kind) {
			names = append(names, kind.String())
		}
	}
	return strings.Join(names, ", ")
}
