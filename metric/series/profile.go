package series

import (
	"fmt"

	"github.com/weir-metrics/weir/metric"
)

// Profile is a named set of metrics. Each series costs a Prometheus memory, so what few people use
// is sent only if it is asked for.
type Profile string

// The profiles. The empty Profile is none: it excludes nothing.
const (
	// Default has what dashboards, autoscalers and capacity planning use.
	Default Profile = "default"
	// All has every metric of the catalogue, also of parts.
	All Profile = "all"
)

// Usual sets the Profile to Default if neither a profile nor metrics are named.
func (f *Filter) Usual() {
	if f.Profile == "" && len(f.Metrics) == 0 {
		f.Profile = Default
	}
}

func parseProfile(name string) (Profile, error) {
	switch p := Profile(name); p {
	case Default, All:
		return p, nil
	}
	return "", fmt.Errorf("no profile is called %q: there are default, all", name)
}

// inDefault reports whether Default has a metric of entities of kind k. part is the kind of part, or
// empty. Pods and containers have few metrics, because a cluster has many of them. They do not have
// the size and the free space of file systems: those are the node's, and the node has them once.
func inDefault(k metric.Kind, part string, d *metric.Descriptor) bool {
	switch {
	case part != "":
		return k == metric.Node && part == "accelerator" || k == metric.Pod && part == "volume" && volumeMetrics[d.ID]
	case k == metric.Pod:
		return podMetrics[d.ID]
	case k == metric.Container:
		return containerMetrics[d.ID]
	case k == metric.System:
		return systemMetrics[d.ID]
	}
	return true
}

var (
	containerMetrics = set(
		metric.CPUUsage, metric.CPUUsageRate, metric.CPUThrottled, metric.MemoryWorkingSet, metric.MemoryRSS, metric.MemoryOOMEvents,
		metric.CPURequest, metric.CPULimit, metric.MemoryRequest, metric.MemoryLimit,
		metric.AcceleratorMemoryUsed, metric.AcceleratorDutyCycle,
	)
	podMetrics = set(
		metric.CPUUsageRate, metric.MemoryWorkingSet, metric.NetworkRx, metric.NetworkRxRate, metric.NetworkTx, metric.NetworkTxRate,
		metric.EphemeralStorageUsage, metric.CPURequest, metric.CPULimit, metric.MemoryRequest, metric.MemoryLimit,
	)
	volumeMetrics = set(metric.FilesystemUsage, metric.FilesystemLimit, metric.FilesystemAvailable)
	systemMetrics = set(metric.CPUUsage, metric.CPUUsageRate, metric.MemoryWorkingSet, metric.MemoryRSS)
)

func set(ids ...metric.ID) (all [metric.NumMetrics]bool) {
	for _, id := range ids {
		all[id] = true
	}
	return all
}
