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
// empty. A new metric is in Default unless it is listed below, because what nobody sees nobody uses.
// Nodes, namespaces and the cluster have all metrics. Pods and containers have few, because a cluster
// has many of them: for instance not the size and the free space of file systems, which the node has
// once.
func inDefault(k metric.Kind, part string, d *metric.Descriptor) bool {
	switch {
	case part != "":
		return k == metric.Node && part == "accelerator" || k == metric.Pod && part == "volume" && !rareOfVolumes[d.ID]
	case k == metric.System, k == metric.Pod, k == metric.Container:
		return d.Kinds.Has(k) && !rare[d.ID] && !rareOf[k][d.ID]
	}
	return true
}

// rare are the metrics that Default has of no system container, pod or container.
var rare = set(
	metric.CPUUser, metric.CPUSystem, metric.CPUThrottledRate, metric.CPUPeriods, metric.CPUThrottledPeriods, metric.CPULoad,
	metric.CPUPressureSome, metric.CPUPressureSomeRate, metric.CPUPressureFull, metric.CPUPressureFullRate, metric.CPUUtilization,
	metric.MemoryUsage, metric.MemoryAvailable, metric.MemoryCache, metric.MemoryMappedFile, metric.MemoryPageFaults, metric.MemoryPageFaultsRate,
	metric.MemoryMajorPageFaults, metric.MemoryMajorPageFaultsRate, metric.MemoryFailures, metric.MemorySwap, metric.MemorySwapAvailable, metric.SwapLimit,
	metric.MemoryPressureSome, metric.MemoryPressureSomeRate, metric.MemoryPressureFull, metric.MemoryPressureFullRate, metric.MemoryUtilization,
	metric.NetworkRxErrors, metric.NetworkRxErrorsRate, metric.NetworkTxErrors, metric.NetworkTxErrorsRate,
	metric.FilesystemUsage, metric.FilesystemLimit, metric.FilesystemAvailable,
	metric.FilesystemInodes, metric.FilesystemInodesFree, metric.FilesystemInodesUsed, metric.EphemeralStorageRequest, metric.EphemeralStorageLimit,
	metric.DiskReadBytes, metric.DiskReadBytesRate, metric.DiskWriteBytes, metric.DiskWriteBytesRate,
	metric.IOPressureSome, metric.IOPressureSomeRate, metric.IOPressureFull, metric.IOPressureFullRate,
	metric.ProcessCount, metric.ProcessLimit, metric.ProcessThreads, metric.ProcessOpenFiles, metric.Uptime,
	metric.AcceleratorMemoryTotal, metric.AcceleratorRequest,
)

// rareOf are those that Default has of other kinds only.
var rareOf = [metric.NumKinds][metric.NumMetrics]bool{
	metric.System:    set(metric.CPUThrottled, metric.CPULimit, metric.MemoryOOMEvents, metric.MemoryLimit),
	metric.Pod:       set(metric.CPUUsage, metric.CPUThrottled, metric.MemoryRSS, metric.MemoryOOMEvents),
	metric.Container: set(metric.EphemeralStorageUsage),
}

// rareOfVolumes are those that Default does not have of the volumes of pods.
var rareOfVolumes = set(metric.FilesystemInodes, metric.FilesystemInodesFree, metric.FilesystemInodesUsed)

func set(ids ...metric.ID) (all [metric.NumMetrics]bool) {
	for _, id := range ids {
		all[id] = true
	}
	return all
}
