package simulator

// cadvisorFamilies are the cgroup metrics of /metrics/cadvisor, in the
// kubelet's order.
var cadvisorFamilies = [...]family{
	{name: "container_cpu_cfs_burst_periods_total", help: "Number of periods when burst occurs.", typ: "counter", only: isLimited, value: zero},
	{name: "container_cpu_cfs_burst_seconds_total", help: "Total time duration the container has been bursted.", typ: "counter", only: isLimited, value: zero},
	{name: "container_cpu_cfs_periods_total", help: "Number of elapsed enforcement period intervals.", typ: "counter",
		only: isLimited, value: ofLine(func(l *cgroupLine) float64 { return float64((l.stamp - l.start) / 100_000_000) })},
	{name: "container_cpu_cfs_throttled_periods_total", help: "Number of throttled period intervals.", typ: "counter",
		only: isLimited, value: ofLine(func(l *cgroupLine) float64 { return float64(l.cpu / 2_000_000_000) })},
	{name: "container_cpu_cfs_throttled_seconds_total", help: "Total time duration the container has been throttled.", typ: "counter",
		only: isLimited, value: ofLine(func(l *cgroupLine) float64 { return float64(l.cpu/50) / 1e9 })},
	{name: "container_cpu_load_average_10s", help: "Value of container cpu load average over the last 10 seconds.", typ: "gauge", value: zero},
	{name: "container_cpu_load_d_average_10s", help: "Value of container cpu load.d average over the last 10 seconds.", typ: "gauge", value: zero},
	{name: "container_cpu_system_seconds_total", help: "Cumulative system cpu time consumed in seconds.", typ: "counter",
		value: ofLine(func(l *cgroupLine) float64 { return ticks(l.cpu / 5) })},
	{name: "container_cpu_usage_seconds_total", help: "Cumulative cpu time consumed in seconds.", typ: "counter",
		early: []string{`cpu="total"`}, value: ofLine(func(l *cgroupLine) float64 { return float64(l.cpu) / 1e9 })},
	{name: "container_cpu_user_seconds_total", help: "Cumulative user cpu time consumed in seconds.", typ: "counter",
		value: ofLine(func(l *cgroupLine) float64 { return ticks(l.cpu - l.cpu/5) })},
	{name: "container_file_descriptors", help: "Number of open file descriptors for the container.", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return units(l, 7) })},
	ofDisk("container_fs_inodes_free", "Number of available Inodes", "gauge", constant(15_961_000)),
	ofDisk("container_fs_inodes_total", "Number of Inodes", "gauge", constant(16_777_216)),
	ofDisk("container_fs_io_current", "Number of I/Os currently in progress", "gauge", zero),
	ofDisk("container_fs_io_time_seconds_total", "Cumulative count of seconds spent doing I/Os", "counter", zero),
	ofDisk("container_fs_io_time_weighted_seconds_total", "Cumulative weighted I/O time in seconds", "counter", zero),
	ofDisk("container_fs_limit_bytes", "Number of bytes that can be consumed by the container on this filesystem.", "gauge", constant(diskBytes)),
	ofDisk("container_fs_read_seconds_total", "Cumulative count of seconds spent reading", "counter", zero),
	ofDisk("container_fs_reads_merged_total", "Cumulative count of reads merged", "counter", zero),
	ofDisk("container_fs_reads_total", "Cumulative count of reads completed", "counter", ofLine(func(l *cgroupLine) float64 { return float64(l.cpu / 40_000_000) })),
	ofDisk("container_fs_sector_reads_total", "Cumulative count of sector reads completed", "counter", zero),
	ofDisk("container_fs_sector_writes_total", "Cumulative count of sector writes completed", "counter", zero),
	ofDisk("container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", "gauge", constant(diskBytes-diskFree)),
	ofDisk("container_fs_write_seconds_total", "Cumulative count of seconds spent writing", "counter", zero),
	ofDisk("container_fs_writes_merged_total", "Cumulative count of writes merged", "counter", zero),
	ofDisk("container_fs_writes_total", "Cumulative count of writes completed", "counter", ofLine(func(l *cgroupLine) float64 { return float64(l.cpu / 40_000_000) })),
	{name: "container_health_state", help: "The result of the container's health check", typ: "gauge", value: constant(-1)},
	{name: "container_last_seen", help: "Last time a container was seen by the exporter", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return float64(l.lastSeen / second) })},
	{name: "container_memory_cache", help: "Number of bytes of page cache memory.", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return pages(l.memory / 10) })},
	{name: "container_memory_failcnt", help: "Number of memory usage hits limits", typ: "counter", value: zero},
	{name: "container_memory_failures_total", help: "Cumulative count of memory allocation failures.", typ: "counter",
		early: []string{`failure_type="pgfault"`, `failure_type="pgmajfault"`}, late: []string{`scope="container"`, `scope="hierarchy"`}, value: func(l *cgroupLine, kind, _ int) float64 { return float64(l.cpu / 3_000_000 * int64(1-kind)) }},
	{name: "container_memory_kernel_usage", help: "Size of kernel memory allocated in bytes.", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return pages(l.memory / 40) })},
	{name: "container_memory_mapped_file", help: "Size of memory mapped files in bytes.", typ: "gauge", value: zero},
	{name: "container_memory_max_usage_bytes", help: "Maximum memory usage recorded in bytes", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return pages(l.memory + l.memory/4) })},
	{name: "container_memory_rss", help: "Size of RSS in bytes.", typ: "gauge", value: ofLine(func(l *cgroupLine) float64 { return float64(l.memory) - pages(l.memory/8) })},
	{name: "container_memory_swap", help: "Container swap usage in bytes.", typ: "gauge", value: zero},
	{name: "container_memory_total_active_file_bytes", help: "Current total active file in bytes.", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return pages(l.memory / 30) })},
	{name: "container_memory_total_inactive_file_bytes", help: "Current total inactive file in bytes.", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return pages(l.memory / 16) })},
	{name: "container_memory_usage_bytes", help: "Current memory usage in bytes, including all memory regardless of when it was accessed", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return float64(l.memory) + pages(l.memory/16) })},
	{name: "container_memory_working_set_bytes", help: "Current working set in bytes.", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return float64(l.memory) })},
	ofNetwork("container_network_receive_bytes_total", "Cumulative count of bytes received", networkValue(true, 1)),
	ofNetwork("container_network_receive_errors_total", "Cumulative count of errors encountered while receiving", zero),
	ofNetwork("container_network_receive_packets_dropped_total", "Cumulative count of packets dropped while receiving", zero),
	ofNetwork("container_network_receive_packets_total", "Cumulative count of packets received", networkValue(true, 900)),
	ofNetwork("container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", networkValue(false, 1)),
	ofNetwork("container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting", zero),
	ofNetwork("container_network_transmit_packets_dropped_total", "Cumulative count of packets dropped while transmitting", zero),
	ofNetwork("container_network_transmit_packets_total", "Cumulative count of packets transmitted", networkValue(false, 900)),
	{name: "container_oom_events_total", help: "Count of out of memory events observed for the container", typ: "counter", value: zero},
	{name: "container_processes", help: "Number of processes running inside the container.", typ: "gauge",
		value: ofLine(func(l *cgroupLine) float64 { return units(l, 1) })},
	{name: "container_sockets", help: "Number of open sockets for the container.", typ: "gauge", value: zero},
	{name: "container_spec_cpu_period", help: "CPU period of the container.", typ: "gauge", unstamped: true, value: constant(100000)},
	{name: "container_spec_cpu_quota", help: "CPU quota of the container.", typ: "gauge",
		unstamped: true, only: isLimited, value: ofLine(func(l *cgroupLine) float64 { return float64(l.limits.cpuLimit * 100) })},
	{name: "container_spec_cpu_shares", help: "CPU share of the container.", typ: "gauge",
		unstamped: true, value: ofLine(func(l *cgroupLine) float64 { return float64(max(l.limits.cpuRequest*1024/1000, 2)) })},
	{name: "container_spec_memory_limit_bytes", help: "Memory limit for the container.", typ: "gauge",
		unstamped: true, value: ofLine(func(l *cgroupLine) float64 { return float64(max(l.limits.memoryLimit, l.nodeMemory)) })},
	{name: "container_spec_memory_reservation_limit_bytes", help: "Memory reservation limit for the container.", typ: "gauge", unstamped: true, value: zero},
	{name: "container_spec_memory_swap_limit_bytes", help: "Memory swap limit for the container.", typ: "gauge",
		unstamped: true, value: ofLine(func(l *cgroupLine) float64 { return float64(l.limits.memoryLimit) })},
	{name: "container_start_time_seconds", help: "Start time of the container since unix epoch in seconds.", typ: "gauge",
		unstamped: true, value: ofLine(func(l *cgroupLine) float64 { return float64(l.start / second) })},
	{name: "container_tasks_state", help: "Number of tasks in given state", typ: "gauge",
		late: []string{`state="iowaiting"`, `state="running"`, `state="sleeping"`, `state="stopped"`, `state="uninterruptible"`}, value: zero},
	{name: "container_threads", help: "Number of threads running inside the container", typ: "gauge", value: ofLine(func(l *cgroupLine) float64 { return units(l, 7) })},
	{name: "container_threads_max", help: "Maximum number of threads allowed inside the container, infinity if value is zero", typ: "gauge", value: zero},
	{name: "container_ulimits_soft", help: "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice", typ: "gauge",
		late: []string{`ulimit="max_open_files"`}, only: isUnit, value: constant(20000)},
}

// ofDisk returns a metric that only the node has, for its disk.
func ofDisk(name, help, typ string, value func(*cgroupLine, int, int) float64) family {
	return family{name: name, help: help, typ: typ, early: []string{`device="/dev/vda"`}, only: isRoot, value: value}
}

// ofNetwork returns a counter that each interface has.
func ofNetwork(name, help string, value func(*cgroupLine, int, int) float64) family {
	return family{name: name, help: help, typ: "counter", network: true, only: hasNetwork, value: value}
}

// ofLine returns a value that is the same for all labels.
func ofLine(value func(*cgroupLine) float64) func(*cgroupLine, int, int) float64 {
	return func(l *cgroupLine, _, _ int) float64 { return value(l) }
}

func zero(*cgroupLine, int, int) float64 { return 0 }

func constant(v float64) func(*cgroupLine, int, int) float64 {
	return func(*cgroupLine, int, int) float64 { return v }
}

// networkValue returns the bytes of eth0, divided by unit. For cni0 it returns
// half of the opposite direction.
func networkValue(receive bool, unit int64) func(*cgroupLine, int, int) float64 {
	return func(l *cgroupLine, iface, _ int) float64 {
		if receive == (iface == 0) {
			return float64(l.received / int64(iface+1) / unit)
		}
		return float64(l.sent / int64(iface+1) / unit)
	}
}

func isRoot(l *cgroupLine) bool     { return l.kind == rootGroup }
func hasNetwork(l *cgroupLine) bool { return l.interfaces > 0 }
func isLimited(l *cgroupLine) bool  { return l.limits.cpuLimit > 0 }
func isUnit(l *cgroupLine) bool     { return l.kind >= sandboxUnit }

// units returns v for a cgroup that contains processes, and 0 for one that
// contains only cgroups.
func units(l *cgroupLine, v float64) float64 {
	if l.kind == kubeGroup || l.kind == podGroup {
		return 0
	}
	return v
}

// ticks rounds CPU time down to hundredths of a second, the unit in which the
// kernel counts user and system time. The result is in seconds.
func ticks(ns int64) float64 { return float64(ns/10_000_000) / 100 }

// pages rounds bytes down to whole pages.
func pages(bytes int64) float64 { return float64(bytes / page * page) }
