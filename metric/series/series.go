package series

import (
	"math"

	"github.com/weir-metrics/weir/metric"
)

// Name returns the name of a metric of entities of a kind, or of a kind of their
// parts; part is empty for whole entities.
func Name(k metric.Kind, part string, d *metric.Descriptor) string {
	if part == "" {
		return d.PrometheusName(k)
	}
	return "weir_" + k.String() + "_" + part + "_" + d.Prometheus
}

// Help returns the catalogue's help, which needs no escaping: a test sees to it.
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
		// The nearest float64 to the quotient; the factor itself is rounded.
		return v / math.Round(1/factor)
	}
	return v * factor
}

// Time returns when a value of s is of, in nanoseconds since the Unix epoch: of a rate,
// the end of its window. It is 0 if nobody knows.
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
