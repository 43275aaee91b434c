// Package docs writes the pages of documentation that are derived from code, so
// that they cannot lag behind it: make generate writes them, and a test fails
// while they differ.
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

Every metric weir knows, under the name Heapster gave it (or would have: those marked ✦ are beyond Heapster's
storage schema) and under its name on ` + "`/metrics/cluster`" + `. There the name begins with ` + "`weir_`" + ` and the level:
` + "`" + metric.CPUUsageRate.Describe().PrometheusName(metric.Container) + "`" + `. Prometheus names are in base units; Heapster's APIs served the unit
in the last column.

A metric that a source cannot supply is absent, never zero. What is given for namespaces and the cluster is the sum of
what was measured: while a node fails, its pods are not in it. Watch ` + "`weir_sources_failing`" + ` on ` + "`/metrics`" + ` beside it. Metrics with *parts* also exist for each device,
network interface, volume or accelerator of the entity.
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

// heapsterUnit returns the unit in which Heapster's APIs serve d: that of its
// kind of number but for two, as in api/model/units.go.
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
