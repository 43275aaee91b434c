package model

import (
	"math"

	"github.com/weir-metrics/weir/metric"
)

// oldNames are what metrics were called before Heapster 1.0; it went on to
// serve them, and so do old clients to ask for them.
var oldNames = map[string]metric.ID{
	"cpu-usage":      metric.CPUUsageRate,
	"cpu-limit":      metric.CPULimit,
	"memory-limit":   metric.MemoryLimit,
	"memory-usage":   metric.MemoryUsage,
	"memory-working": metric.MemoryWorkingSet,
}

// metricOf returns the metric a client calls by Heapster's name, or by an older
// one.
func metricOf(name string) (metric.ID, bool) {
	if id, ok := oldNames[name]; ok {
		return id, true
	}
	id, ok := metric.ByName(name)
	// ByName knows Prometheus' names too, which promise other units.
	return id, ok && id.Describe().Name == name
}

// factor returns what a value in the catalogue's unit is multiplied by to be in
// Heapster's.
func factor(id metric.ID) float64 {
	switch id {
	case metric.Uptime:
		return 1e-6 // milliseconds; CPU time alone was in nanoseconds
	case metric.AcceleratorDutyCycle:
		return 100 // percent
	}
	return id.Describe().Unit.Heapster()
}

// integer reports whether Heapster kept the metric as an integer: all but
// rates other than CPU's, shares, and what a node has.
func integer(id metric.ID) bool {
	switch id {
	case metric.CPUUsageRate, metric.AcceleratorDutyCycle:
		return true
	case metric.CPUNodeCapacity, metric.CPUNodeAllocatable,
		metric.MemoryNodeCapacity, metric.MemoryNodeAllocatable,
		metric.EphemeralStorageNodeCapacity, metric.EphemeralStorageNodeAllocatable:
		return false
	}
	d := id.Describe()
	return d.Shape != metric.Rate && d.Unit != metric.Ratio
}

// whole returns v as the unsigned integer that every point carries.
func whole(v float64) uint64 {
	switch {
	case !(v > 0): // negative, or no number
		return 0
	case v >= math.MaxInt64: // clients read it into an int64
		return math.MaxInt64
	}
	return uint64(math.Round(v))
}
