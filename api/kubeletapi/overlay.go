package kubeletapi

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/weir-metrics/weir/metric"
)

// overlay has the fields that nodes, pods and containers of a summary have in common. All values of
// a field with one time must come from one read, that of the round: a counter of now with an
// earlier time would give a wrong rate.
type overlay struct {
	start  *metav1.Time
	cpu    **stats.CPUStats
	memory **stats.MemoryStats
	io     **stats.IOStats
	swap   **stats.SwapStats
}

// with sets the fields to those values that s has. s may be nil.
func (o overlay) with(s *metric.Sample) {
	if s == nil {
		return
	}
	if s.Instance.Start != 0 {
		*o.start = timeOf(s.Instance.Start)
	}
	*o.cpu = cpuOf(s, *o.cpu)
	*o.memory = memoryOf(s, *o.memory)
	*o.io = ioOf(s, *o.io)
	if *o.swap == nil {
		*o.swap = swapOf(s)
	}
}

func cpuOf(s *metric.Sample, base *stats.CPUStats) *stats.CPUStats {
	used, when, ok := get(s, metric.CPUUsage)
	if !ok {
		return base
	}
	out := &stats.CPUStats{Time: timeOf(when), UsageCoreNanoSeconds: new(uint64(used))}
	if rate, ok := s.Values.Get(metric.CPUUsageRate); ok && s.Servable(metric.CPU) {
		out.UsageNanoCores = new(uint64(rate))
	}
	out.PSI = pressureOf(s, metric.CPUPressureSome, metric.CPUPressureFull, ptr.Deref(base, stats.CPUStats{}).PSI)
	return out
}

// memoryOf returns base if it is complete, because it is newer, or if s has no memory. Otherwise it
// returns the memory of s.
func memoryOf(s *metric.Sample, base *stats.MemoryStats) *stats.MemoryStats {
	_, when, ok := get(s, metric.MemoryWorkingSet)
	if !ok || base != nil && base.WorkingSetBytes != nil && base.PageFaults != nil {
		return base
	}
	return &stats.MemoryStats{
		Time:           timeOf(when),
		AvailableBytes: valueOf(s, metric.MemoryAvailable), UsageBytes: valueOf(s, metric.MemoryUsage),
		WorkingSetBytes: valueOf(s, metric.MemoryWorkingSet), RSSBytes: valueOf(s, metric.MemoryRSS),
		PageFaults: valueOf(s, metric.MemoryPageFaults), MajorPageFaults: valueOf(s, metric.MemoryMajorPageFaults),
		PSI: pressureOf(s, metric.MemoryPressureSome, metric.MemoryPressureFull, ptr.Deref(base, stats.MemoryStats{}).PSI),
	}
}

func ioOf(s *metric.Sample, base *stats.IOStats) *stats.IOStats {
	_, when, ok := get(s, metric.IOPressureSome)
	if !ok {
		return base
	}
	return &stats.IOStats{Time: timeOf(when), PSI: pressureOf(s, metric.IOPressureSome, metric.IOPressureFull, ptr.Deref(base, stats.IOStats{}).PSI)}
}

// pressureOf returns the totals of the round and the averages of base. Totals are in microseconds,
// as the kernel and the kubelet report them, although the comment on their type has
// another unit.
func pressureOf(s *metric.Sample, some, full metric.ID, base *stats.PSIStats) *stats.PSIStats {
	a, _, hasSome := get(s, some)
	b, _, hasFull := get(s, full)
	if !hasSome && !hasFull {
		return base
	}
	out := ptr.Deref(base, stats.PSIStats{})
	out.Some.Total, out.Full.Total = uint64(a/1000), uint64(b/1000)
	return &out
}

func swapOf(s *metric.Sample) *stats.SwapStats {
	_, when, ok := get(s, metric.MemorySwap)
	if !ok {
		return nil
	}
	return &stats.SwapStats{
		Time: timeOf(when), SwapUsageBytes: valueOf(s, metric.MemorySwap), SwapAvailableBytes: valueOf(s, metric.MemorySwapAvailable),
	}
}

// networkOf returns the traffic of c and of its interfaces. c gets the name of the interface that
// has the same traffic.
func networkOf(c cgroup, base *stats.NetworkStats) *stats.NetworkStats {
	_, when, whole := get(c.Sample, metric.NetworkRx)
	out := &stats.NetworkStats{}
	if whole {
		out.InterfaceStats = interfaceOf(c.Sample, "")
	}
	for _, p := range c.parts {
		name, isInterface := strings.CutPrefix(p.Entity.Part, "interface:")
		_, t, ok := get(p, metric.NetworkRx)
		if !isInterface || !ok {
			continue
		}
		one := interfaceOf(p, name)
		if whole && out.Name == "" && *one.RxBytes == *out.RxBytes && one.TxBytes != nil && out.TxBytes != nil && *one.TxBytes == *out.TxBytes {
			out.Name = name
		}
		out.Interfaces = append(out.Interfaces, one)
		when = max(when, t)
	}
	if when == 0 {
		return base
	}
	out.Time = timeOf(when)
	return out
}

func interfaceOf(s *metric.Sample, name string) stats.InterfaceStats {
	return stats.InterfaceStats{
		Name:    name,
		RxBytes: valueOf(s, metric.NetworkRx), RxErrors: valueOf(s, metric.NetworkRxErrors),
		TxBytes: valueOf(s, metric.NetworkTx), TxErrors: valueOf(s, metric.NetworkTxErrors),
	}
}

// fsOf returns the file system of s itself, or nil if it was not read.
func fsOf(s *metric.Sample) *stats.FsStats {
	_, when, ok := get(s, metric.FilesystemUsage)
	if !ok {
		return nil
	}
	return &stats.FsStats{
		Time:           timeOf(when),
		AvailableBytes: valueOf(s, metric.FilesystemAvailable), CapacityBytes: valueOf(s, metric.FilesystemLimit),
		UsedBytes: valueOf(s, metric.FilesystemUsage), InodesFree: valueOf(s, metric.FilesystemInodesFree),
		Inodes: valueOf(s, metric.FilesystemInodes), InodesUsed: valueOf(s, metric.FilesystemInodesUsed),
	}
}

// rlimitOf returns the number of tasks and its limit, or nil if they were not read. Like a kubelet,
// it counts threads, which use process IDs too.
func rlimitOf(s *metric.Sample) *stats.RlimitStats {
	limit, when, hasLimit := get(s, metric.ProcessLimit)
	count, _, hasCount := get(s, metric.ProcessThreads)
	if !hasLimit || !hasCount {
		return nil
	}
	return &stats.RlimitStats{Time: timeOf(when), MaxPID: new(int64(limit)), NumOfRunningProcesses: new(int64(count))}
}

// valueOf returns a value of s in the form of a summary, or nil if it is not served.
func valueOf(s *metric.Sample, id metric.ID) *uint64 {
	v, _, ok := get(s, id)
	if !ok {
		return nil
	}
	return new(uint64(v))
}

func timeOf(ns int64) metav1.Time {
	if ns == 0 {
		return metav1.Time{}
	}
	return metav1.Unix(ns/1e9, ns%1e9)
}
