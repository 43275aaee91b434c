package custommetrics

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/metric"
)

// scale is how finely values of a unit are told: the power of ten of the last
// digit, after the factor to the base unit.
func scale(u metric.Unit) resource.Scale {
	switch u {
	case metric.Nanocores, metric.Nanoseconds:
		return resource.Nano
	case metric.Bytes, metric.Count:
		return 0
	case metric.Ratio:
		return resource.Micro
	default:
		return resource.Milli
	}
}

// quantity returns a value in the catalogue's unit as a quantity of Prometheus'
// base unit, rounded to the nearest that scale allows. A number too large for
// that is told as finely as an int64 can.
func quantity(v float64, u metric.Unit) resource.Quantity {
	format := resource.DecimalSI
	if u == metric.Bytes {
		format = resource.BinarySI
	}
	s := scale(u)
	if s != resource.Nano { // whose values are whole already
		v *= math.Pow10(-int(s))
	}
	v = math.RoundToEven(v)
	for math.Abs(v) >= 1<<63 {
		v, s = math.RoundToEven(v/1000), s+3
	}
	if s == 0 {
		return *resource.NewQuantity(int64(v), format)
	}
	q := resource.NewScaledQuantity(int64(v), s)
	q.Format = format
	return *q
}
