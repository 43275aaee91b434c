package metricsgroup

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// OverTime is a custom metric that is a function of the values that weir measured in a window.
type OverTime struct {
	// Name is the metric's name.
	Name string
	// Metric is what was measured.
	Metric metric.ID
	// Window ends with the newest value.
	Window time.Duration
	// Function is mean, max or a quantile such as p95.
	Function string

	mean     bool
	quantile float64 // 1 for the maximum
}

// SetFunction sets the function. It reports whether there is one of this name.
func (o *OverTime) SetFunction(name string) bool {
	o.Function, o.mean, o.quantile = name, name == "mean", 1
	if o.mean || name == "max" {
		return true
	}
	percent, ok := strings.CutPrefix(name, "p")
	if !ok || strings.Trim(percent, "0123456789.") != "" {
		return false
	}
	v, err := strconv.ParseFloat(percent, 64)
	o.quantile = v / 100
	return err == nil && v <= 100
}

// Of returns the function of values, which are at least one. It sorts them. A quantile between two values
// is interpolated as Prometheus does it.
func (o *OverTime) Of(values []float64) float64 {
	if o.mean {
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return sum / float64(len(values))
	}
	slices.Sort(values)
	rank := o.quantile * float64(len(values)-1)
	lower := int(math.Floor(rank))
	upper := min(lower+1, len(values)-1)
	weight := rank - float64(lower)
	return values[lower]*(1-weight) + values[upper]*weight
}

// String describes the function: "p95 of cpu_usage_cores".
func (o *OverTime) String() string {
	return fmt.Sprintf("%s of %s", o.Function, o.Metric.Describe().Prometheus)
}
