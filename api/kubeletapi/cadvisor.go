package kubeletapi

import (
	"math"
	"path"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/weir-metrics/weir/metric"
)

// cgroupFamilies are the families of /metrics/cadvisor with one value for each cgroup, in
// cAdvisor's units.
var cgroupFamilies = []family{
	{"container_cpu_user_seconds_total", metric.CPUUser, 1e9},
	{"container_cpu_system_seconds_total", metric.CPUSystem, 1e9},
	{"container_cpu_cfs_throttled_seconds_total", metric.CPUThrottled, 1e9},
	{"container_cpu_cfs_periods_total", metric.CPUPeriods, 1},
	{"container_cpu_cfs_throttled_periods_total", metric.CPUThrottledPeriods, 1},
	{"container_cpu_load_average_10s", metric.CPULoad, 1e-3}, // in thousandths
	{"container_pressure_cpu_waiting_seconds_total", metric.CPUPressureSome, 1e9},
	{"container_pressure_cpu_stalled_seconds_total", metric.CPUPressureFull, 1e9},

	{"container_memory_usage_bytes", metric.MemoryUsage, 1},
	{"container_memory_working_set_bytes", metric.MemoryWorkingSet, 1},
	{"container_memory_rss", metric.MemoryRSS, 1},
	{"container_memory_cache", metric.MemoryCache, 1},
	{"container_memory_mapped_file", metric.MemoryMappedFile, 1},
	{"container_memory_swap", metric.MemorySwap, 1},
	{"container_memory_failcnt", metric.MemoryFailures, 1},
	{"container_oom_events_total", metric.MemoryOOMEvents, 1},
	{"container_pressure_memory_waiting_seconds_total", metric.MemoryPressureSome, 1e9},
	{"container_pressure_memory_stalled_seconds_total", metric.MemoryPressureFull, 1e9},

	{"container_pressure_io_waiting_seconds_total", metric.IOPressureSome, 1e9},
	{"container_pressure_io_stalled_seconds_total", metric.IOPressureFull, 1e9},

	{"container_threads", metric.ProcessThreads, 1},
	{"container_threads_max", metric.ProcessLimit, 1},
	{"container_file_descriptors", metric.ProcessOpenFiles, 1},
}

// The families with one value for each interface or device, and those with other labels.
var (
	cpuFamilies        = []family{{"container_cpu_usage_seconds_total", metric.CPUUsage, 1e9}}
	pageFaultFamilies  = []family{{"container_memory_failures_total", metric.MemoryPageFaults, 1}}
	majorFaultFamilies = []family{{"container_memory_failures_total", metric.MemoryMajorPageFaults, 1}}
	interfaceFamilies  = []family{
		{"container_network_receive_bytes_total", metric.NetworkRx, 1},
		{"container_network_receive_errors_total", metric.NetworkRxErrors, 1},
		{"container_network_transmit_bytes_total", metric.NetworkTx, 1},
		{"container_network_transmit_errors_total", metric.NetworkTxErrors, 1},
	}
	deviceFamilies = []family{
		{"container_fs_usage_bytes", metric.FilesystemUsage, 1},
		{"container_fs_limit_bytes", metric.FilesystemLimit, 1},
		{"container_fs_inodes_total", metric.FilesystemInodes, 1},
		{"container_fs_inodes_free", metric.FilesystemInodesFree, 1},
		{"container_fs_reads_bytes_total", metric.DiskReadBytes, 1},
		{"container_fs_writes_bytes_total", metric.DiskWriteBytes, 1},
	}
)

// cfsPeriod is the period of every CPU limit, in microseconds: the default of the kernel and the
// kubelet. A sample has only the quotient of quota and period.
const cfsPeriod = 100_000

// cadvisor returns the families of /metrics/cadvisor. t is nil if nothing could be read.
func cadvisor(t *tree, image ImageFunc) []*dto.MetricFamily {
	f := families{}
	failed := t == nil || t.node.Sample == nil
	f.errorGauge("container_scrape_error", "cgroups", failed)
	f.errorGauge("machine_scrape_error", "the machine", failed)
	if failed {
		return f.sorted()
	}
	f.machine(t.node.Sample)
	processes := ownProcesses(t.all)
	for i := range t.all {
		if c := &t.all[i]; c.Instance.Path != "" {
			f.cgroup(c, image, processes)
		}
	}
	return f.sorted()
}

// machine adds the capacities of the machine.
func (f families) machine(node *metric.Sample) {
	if v, ok := node.Values.Get(metric.CPUNodeCapacity); ok {
		f.gauge("machine_cpu_cores", "CPUs of the machine.", v/1e9, 0, nil)
	}
	if v, ok := node.Values.Get(metric.MemoryNodeCapacity); ok {
		f.gauge("machine_memory_bytes", metric.MemoryNodeCapacity.Describe().Help, v, 0, nil)
	}
	used, _, ok := get(node, metric.MemorySwap)
	if left, _, also := get(node, metric.MemorySwapAvailable); ok && also {
		f.gauge("machine_swap_bytes", "Swap of the machine.", used+left, 0, nil)
	}
}

// cgroup adds the values of one cgroup and its parts.
func (f families) cgroup(c *cgroup, image ImageFunc, processes map[metric.CgroupPath]float64) {
	s := c.Sample
	imageName := ""
	if image != nil && c.container != "" {
		imageName = image(c.ref, c.container)
	}
	with := func(more ...string) []*dto.LabelPair {
		return labels(append(more, "container", c.container, "id", string(s.Instance.Path), "image", imageName,
			"name", string(s.Instance.ID), "namespace", string(c.ref.Namespace), "pod", string(c.ref.Name))...)
	}
	plain := with()
	f.values(cgroupFamilies, s, plain)
	f.values(cpuFamilies, s, with("cpu", "total"))
	f.values(pageFaultFamilies, s, with("failure_type", "pgfault", "scope", "hierarchy"))
	f.values(majorFaultFamilies, s, with("failure_type", "pgmajfault", "scope", "hierarchy"))
	if _, at, ok := get(s, metric.ProcessCount); ok {
		f.gauge("container_processes", "Processes in the cgroup itself.", processes[s.Instance.Path], at, plain)
	}
	for _, p := range c.parts {
		switch kind, name, _ := strings.Cut(p.Entity.Part, ":"); kind {
		case "interface":
			f.values(interfaceFamilies, p, with("interface", name))
		case "device":
			f.values(deviceFamilies, p, with("device", name))
		}
	}
	f.addTimes(s, plain)
	if s.Entity.Kind != metric.Node {
		f.limits(s, plain)
	}
}

// addTimes adds the start time of a cgroup, and when it was last read.
func (f families) addTimes(s *metric.Sample, plain []*dto.LabelPair) {
	if s.Instance.Start != 0 {
		f.gauge("container_start_time_seconds", "When the cgroup began, in seconds since the Unix epoch.", float64(s.Instance.Start)/1e9, 0, plain)
	}
	_, cpuAt, _ := get(s, metric.CPUUsage)
	_, memoryAt, _ := get(s, metric.MemoryUsage)
	if last := max(cpuAt, memoryAt); last != 0 {
		f.gauge("container_last_seen", "When the cgroup was last read, in seconds since the Unix epoch.", float64(last/1e9), last, plain)
	}
}

// limits adds the limits of a cgroup, in the kernel's units.
func (f families) limits(s *metric.Sample, plain []*dto.LabelPair) {
	if v, _, ok := get(s, metric.CPULimit); ok {
		f.gauge("container_spec_cpu_period", "Period of the CPU limit in microseconds.", cfsPeriod, 0, plain)
		f.gauge("container_spec_cpu_quota", "CPU time in each period in microseconds.", math.Round(v/1e9*cfsPeriod), 0, plain)
	}
	limit, _, _ := get(s, metric.MemoryLimit) // cAdvisor has 0 for no limit
	if _, _, ok := get(s, metric.MemoryUsage); ok {
		f.gauge("container_spec_memory_limit_bytes", "Memory limit; 0 if there is none.", limit, 0, plain)
	}
}

// ownProcesses returns the number of processes in each cgroup without its children, as cAdvisor
// counts them.
func ownProcesses(all []cgroup) map[metric.CgroupPath]float64 {
	own := map[metric.CgroupPath]float64{}
	for i := range all {
		if v, _, ok := get(all[i].Sample, metric.ProcessCount); ok {
			own[all[i].Instance.Path] = v
		}
	}
	for i := range all {
		v, _, ok := get(all[i].Sample, metric.ProcessCount)
		for p := string(all[i].Instance.Path); ok && len(p) > 1; {
			p = path.Dir(p)
			if n, found := own[metric.CgroupPath(p)]; found {
				own[metric.CgroupPath(p)] = max(0, n-v)
				break
			}
		}
	}
	return own
}
