package series

import (
	"math"

	"github.com/weir-metrics/weir/metric"
)

// Name returns the name of a metric for entities of kind k, or for one kind of their parts.
// part is empty for whole entities.
func Name(k metric.Kind, part string, d *metric.Descriptor) string {
	if part == "" {
		return d.PrometheusName(k)
	}
	return "weir_" + k.String() + "_" + part + "_" + d.Prometheus
}

// Help returns the catalogue's help. It needs no escaping, as a test checks.
func Help(k metric.Kind, part string, d *metric.Descriptor) string {
	if part == "" {
		return d.Help
	}
	return d.Help + " For each " + part + " of a " + k.String() + "."
}

// Value returns v in Prometheus' base unit.
func Value(v float64, u metric.Unit) float64 {
	factor := u.Prometheus()
	if factor < 1 {
		// The division is exact to the nearest float64. The factor itself is rounded.
		return v / math.Round(1/factor)
	}
	return v * factor
}

// Time returns the time of a value of s, in nanoseconds since the Unix epoch. For a rate it is
// the end of its window. It is 0 if unknown.
func Time(s *metric.Sample, id metric.ID) int64 {
	d := &metric.Catalogue[id]
	if d.Type == metric.Rate && s.Rates[d.Group].End != 0 {
		return s.Rates[d.Group].End
	}
	return s.Times[d.Group]
}

// FromValue is the inverse of Value: it returns v, in Prometheus' base unit, in u.
func FromValue(v float64, u metric.Unit) float64 {
	factor := u.Prometheus()
	if factor < 1 {
		return v * math.Round(1/factor)
	}
	return v / factor
}
