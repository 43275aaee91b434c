package kubeletapi

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// overlay is what nodes, pods and containers have in common in a summary. Counters
// and what shares a time with them come from one moment, the round's: a counter of now
// under a time of then is a wrong rate.
type overlay struct {
	start  *metav1.Time
	cpu    **stats.CPUStats
	memory **stats.MemoryStats
	io     **stats.IOStats
	swap   **stats.SwapStats
}

// with lays s over what is there; a nil s changes nothing.
func (o overlay) with(s *metric.Sample) {
	if s == nil {
		return
	}
	if s.Instance.Start != 0 {
		*o.start = at(s.Instance.Start)
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
	out := &stats.CPUStats{Time: at(when), UsageCoreNanoSeconds: number(used)}
	if rate, ok := s.Values.Get(metric.CPUUsageRate); ok && s.Servable(metric.CPU) {
		out.UsageNanoCores = number(rate)
	}
	var averages *stats.PSIStats
	if base != nil {
		averages = base.PSI
	}
	out.PSI = pressureOf(s, metric.CPUPressureSome, metric.CPUPressureFull, averages)
	return out
}

// memoryOf prefers base, which is of now, if it is all there.
func memoryOf(s *metric.Sample, base *stats.MemoryStats) *stats.MemoryStats {
	_, when, ok := get(s, metric.MemoryWorkingSet)
	if !ok || base != nil && base.WorkingSetBytes != nil && base.PageFaults != nil {
		return base
	}
	out := &stats.MemoryStats{Time: at(when)}
	for to, id := range map[**uint64]metric.ID{
		&out.AvailableBytes: metric.MemoryAvailable, &out.UsageBytes: metric.MemoryUsage,
		&out.WorkingSetBytes: metric.MemoryWorkingSet, &out.RSSBytes: metric.MemoryRSS,
		&out.PageFaults: metric.MemoryPageFaults, &out.MajorPageFaults: metric.MemoryMajorPageFaults,
	} {
		set(to, s, id)
	}
	var averages *stats.PSIStats
	if base != nil {
		averages = base.PSI
	}
	out.PSI = pressureOf(s, metric.MemoryPressureSome, metric.MemoryPressureFull, averages)
	return out
}

func ioOf(s *metric.Sample, base *stats.IOStats) *stats.IOStats {
	_, when, ok := get(s, metric.IOPressureSome)
	if !ok {
		return base
	}
	var averages *stats.PSIStats
	if base != nil {
		averages = base.PSI
	}
	return &stats.IOStats{Time: at(when), PSI: pressureOf(s, metric.IOPressureSome, metric.IOPressureFull, averages)}
}

// pressureOf returns the totals of the round and the averages of base. Totals are in
// microseconds, as kubelets pass them on from the kernel, whatever their documentation
// says.
func pressureOf(s *metric.Sample, some, full metric.ID, base *stats.PSIStats) *stats.PSIStats {
	a, _, ok := get(s, some)
	b, _, also := get(s, full)
	if !ok && !also {
		return base
	}
	out := &stats.PSIStats{}
	if base != nil {
		*out = *base
	}
	out.Some.Total, out.Full.Total = uint64(a/1000), uint64(b/1000)
	return out
}

func swapOf(s *metric.Sample) *stats.SwapStats {
	_, when, ok := get(s, metric.MemorySwap)
	if !ok {
		return nil
	}
	out := &stats.SwapStats{Time: at(when)}
	set(&out.SwapUsageBytes, s, metric.MemorySwap)
	set(&out.SwapAvailableBytes, s, metric.MemorySwapAvailable)
	return out
}

// networkOf returns the traffic of c, with the name of the interface that is its own.
func networkOf(c cgroup, base *stats.NetworkStats) *stats.NetworkStats {
	_, when, whole := get(c.Sample, metric.NetworkRx)
	out := &stats.NetworkStats{}
	if whole {
		out.InterfaceStats = interfaceOf(c.Sample, "")
	}
	for _, p := range c.parts {
		name, is := strings.CutPrefix(p.Entity.Part, "interface:")
		_, t, ok := get(p, metric.NetworkRx)
		if !is || !ok {
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
	out.Time = at(when)
	return out
}

func interfaceOf(s *metric.Sample, name string) stats.InterfaceStats {
	out := stats.InterfaceStats{Name: name}
	set(&out.RxBytes, s, metric.NetworkRx)
	set(&out.RxErrors, s, metric.NetworkRxErrors)
	set(&out.TxBytes, s, metric.NetworkTx)
	set(&out.TxErrors, s, metric.NetworkTxErrors)
	return out
}

// fsOf returns the file system of s itself; nil if it was not read.
func fsOf(s *metric.Sample) *stats.FsStats {
	_, when, ok := get(s, metric.FilesystemUsage)
	if !ok {
		return nil
	}
	out := &stats.FsStats{Time: at(when)}
	for to, id := range map[**uint64]metric.ID{
		&out.AvailableBytes: metric.FilesystemAvailable, &out.CapacityBytes: metric.FilesystemLimit,
		&out.UsedBytes: metric.FilesystemUsage, &out.InodesFree: metric.FilesystemInodesFree,
		&out.Inodes: metric.FilesystemInodes, &out.InodesUsed: metric.FilesystemInodesUsed,
	} {
		set(to, s, id)
	}
	return out
}

// rlimitOf returns how many tasks there are and may be; nil if that was not read. A
// kubelet counts threads, whatever its field is called: they are what runs out.
func rlimitOf(s *metric.Sample) *stats.RlimitStats {
	limit, when, ok := get(s, metric.ProcessLimit)
	count, _, also := get(s, metric.ProcessThreads)
	if !ok || !also {
		return nil
	}
	most, now := int64(limit), int64(count)
	return &stats.RlimitStats{Time: at(when), MaxPID: &most, NumOfRunningProcesses: &now}
}

// set puts a value of s where a summary has it, if it was told.
func set(to **uint64, s *metric.Sample, id metric.ID) {
	if v, _, ok := get(s, id); ok {
		*to = number(v)
	}
}
