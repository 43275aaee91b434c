package metric

// ID names a metric: an index into the catalogue.
type ID uint8

// Descriptor describes a metric. All names, units and help texts of the APIs are derived from
// it.
type Descriptor struct {
	ID ID
	// Name is Heapster's name. A metric that Heapster did not have has a name of the same form:
	// "cpu/usage_rate".
	Name string
	// Prometheus is the name after "weir_<kind>_", in base units:
	// "cpu_usage_cores".
	Prometheus string
	Unit       Unit
	Type       MetricType
	Group      Group
	// Kinds are the kinds of entity that have the metric.
	Kinds KindSet
	// Parts is the kind of part of an entity that has the metric, beside or instead of the entity
	// itself: "device", "interface", "volume", "accelerator", or empty.
	Parts string
	// RateOf is the cumulative metric that a rate is calculated from.
	RateOf ID
	// NotInHeapster marks metrics that Heapster did not have.
	NotInHeapster bool
	Help          string
}

// Declared reports whether objects of the API server have the value, which changes seldom: requests,
// limits and capacities.
func (d *Descriptor) Declared() bool {
	switch d.ID {
	case Uptime, CPUUtilization, MemoryUtilization, CPUNodeUtilization, MemoryNodeUtilization, EphemeralStorageNodeUtilization:
		return false
	}
	return d.Group == Spec
}

// The metrics, in the catalogue's order.
const (
	CPUUsage ID = iota
	CPUUsageRate
	CPUUser
	CPUSystem
	CPUThrottled
	CPUThrottledRate
	CPUPeriods
	CPUThrottledPeriods
	CPULoad
	CPUPressureSome
	CPUPressureSomeRate
	CPUPressureFull
	CPUPressureFullRate

	MemoryUsage
	MemoryWorkingSet
	MemoryAvailable
	MemoryRSS
	MemoryCache
	MemoryMappedFile
	MemoryPageFaults
	MemoryPageFaultsRate
	MemoryMajorPageFaults
	MemoryMajorPageFaultsRate
	MemoryFailures
	MemoryOOMEvents
	MemorySwap
	MemorySwapAvailable
	MemoryPressureSome
	MemoryPressureSomeRate
	MemoryPressureFull
	MemoryPressureFullRate

	NetworkRx
	NetworkRxRate
	NetworkRxErrors
	NetworkRxErrorsRate
	NetworkTx
	NetworkTxRate
	NetworkTxErrors
	NetworkTxErrorsRate

	FilesystemUsage
	FilesystemLimit
	FilesystemAvailable
	FilesystemInodes
	FilesystemInodesFree
	FilesystemInodesUsed
	EphemeralStorageUsage

	DiskReadBytes
	DiskReadBytesRate
	DiskWriteBytes
	DiskWriteBytesRate
	IOPressureSome
	IOPressureSomeRate
	IOPressureFull
	IOPressureFullRate

	ProcessCount
	ProcessLimit
	ProcessThreads
	ProcessOpenFiles

	AcceleratorMemoryTotal
	AcceleratorMemoryUsed
	AcceleratorDutyCycle

	Uptime
	CPURequest
	CPULimit
	CPUUtilization
	MemoryRequest
	MemoryLimit
	MemoryUtilization
	SwapLimit
	EphemeralStorageRequest
	EphemeralStorageLimit
	AcceleratorRequest
	CPUNodeCapacity
	CPUNodeAllocatable
	CPUNodeReservation
	CPUNodeUtilization
	MemoryNodeCapacity
	MemoryNodeAllocatable
	MemoryNodeReservation
	MemoryNodeUtilization
	EphemeralStorageNodeCapacity
	EphemeralStorageNodeAllocatable
	EphemeralStorageNodeReservation
	EphemeralStorageNodeUtilization

	// NumMetrics is the number of metrics.
	NumMetrics
)

// Catalogue lists every metric, in the order of their IDs.
//
// Names without NotInHeapster are those of Heapster's storage schema
// (docs/storage-schema.md of Heapster 1.5).
var Catalogue = [NumMetrics]Descriptor{
	CPUUsage:            cumulative("cpu/usage", "cpu_usage_seconds_total", Nanoseconds, CPU, runningKinds, "CPU time used, over all cores."),
	CPUUsageRate:        rateOf(CPUUsage, "cpu/usage_rate", "cpu_usage_cores", Nanocores, CPU, runningKinds|summedKinds, "CPU time used in each second of the window, in cores."),
	CPUUser:             notInHeapster(cumulative("cpu/user", "cpu_user_seconds_total", Nanoseconds, CPU, runningKinds, "CPU time used in user mode.")),
	CPUSystem:           notInHeapster(cumulative("cpu/system", "cpu_system_seconds_total", Nanoseconds, CPU, runningKinds, "CPU time used in the kernel.")),
	CPUThrottled:        notInHeapster(cumulative("cpu/throttled", "cpu_throttled_seconds_total", Nanoseconds, CPU, onSystem|onPod|onContainer, "Time runnable threads were held back by the CPU limit.")),
	CPUThrottledRate:    notInHeapster(rateOf(CPUThrottled, "cpu/throttled_rate", "cpu_throttled_seconds_per_second", Nanocores, CPU, onSystem|onPod|onContainer, "Time runnable threads were held back by the CPU limit in each second of the window.")),
	CPUPeriods:          notInHeapster(cumulative("cpu/periods", "cpu_periods_total", Count, CPU, onSystem|onPod|onContainer, "CPU limit enforcement periods elapsed.")),
	CPUThrottledPeriods: notInHeapster(cumulative("cpu/throttled_periods", "cpu_throttled_periods_total", Count, CPU, onSystem|onPod|onContainer, "CPU limit enforcement periods in which threads were held back.")),
	CPULoad:             gauge("cpu/load", "cpu_load_threads", Count, CPU, runningKinds, "Runnable and uninterruptible threads, averaged over ten seconds."),
	CPUPressureSome:     notInHeapster(cumulative("cpu/pressure_some", "cpu_pressure_some_seconds_total", Nanoseconds, CPU, runningKinds, "Time in which some thread waited for CPU (PSI).")),
	CPUPressureSomeRate: notInHeapster(rateOf(CPUPressureSome, "cpu/pressure_some_rate", "cpu_pressure_some_ratio", Ratio, CPU, runningKinds, "Share of the window in which some thread waited for CPU (PSI).")),
	CPUPressureFull:     notInHeapster(cumulative("cpu/pressure_full", "cpu_pressure_full_seconds_total", Nanoseconds, CPU, runningKinds, "Time in which every thread waited for CPU (PSI).")),
	CPUPressureFullRate: notInHeapster(rateOf(CPUPressureFull, "cpu/pressure_full_rate", "cpu_pressure_full_ratio", Ratio, CPU, runningKinds, "Share of the window in which every thread waited for CPU (PSI).")),

	MemoryUsage:               gauge("memory/usage", "memory_usage_bytes", Bytes, Memory, runningKinds|summedKinds, "Memory in use, page cache included."),
	MemoryWorkingSet:          gauge("memory/working_set", "memory_working_set_bytes", Bytes, Memory, runningKinds|summedKinds, "Memory in use less the inactive page cache: what the kernel cannot drop at ease."),
	MemoryAvailable:           notInHeapster(gauge("memory/available", "memory_available_bytes", Bytes, Memory, runningKinds, "Memory limit (of a node, its capacity) less the working set.")),
	MemoryRSS:                 gauge("memory/rss", "memory_rss_bytes", Bytes, Memory, runningKinds|summedKinds, "Anonymous memory, transparent huge pages included."),
	MemoryCache:               gauge("memory/cache", "memory_cache_bytes", Bytes, Memory, runningKinds|summedKinds, "Page cache."),
	MemoryMappedFile:          notInHeapster(gauge("memory/mapped_file", "memory_mapped_file_bytes", Bytes, Memory, runningKinds, "Page cache mapped into processes.")),
	MemoryPageFaults:          cumulative("memory/page_faults", "memory_page_faults_total", Count, Memory, runningKinds, "Page faults."),
	MemoryPageFaultsRate:      rateOf(MemoryPageFaults, "memory/page_faults_rate", "memory_page_faults_per_second", PerSecond, Memory, runningKinds, "Page faults in each second of the window."),
	MemoryMajorPageFaults:     cumulative("memory/major_page_faults", "memory_major_page_faults_total", Count, Memory, runningKinds, "Page faults that had to read from disk."),
	MemoryMajorPageFaultsRate: rateOf(MemoryMajorPageFaults, "memory/major_page_faults_rate", "memory_major_page_faults_per_second", PerSecond, Memory, runningKinds, "Page faults that had to read from disk in each second of the window."),
	MemoryFailures:            notInHeapster(cumulative("memory/failures", "memory_limit_hits_total", Count, Memory, onSystem|onPod|onContainer, "Times memory use hit its limit.")),
	MemoryOOMEvents:           notInHeapster(cumulative("memory/oom_events", "memory_oom_events_total", Count, Memory, runningKinds, "Out-of-memory events.")),
	MemorySwap:                notInHeapster(gauge("memory/swap", "memory_swap_bytes", Bytes, Memory, runningKinds|summedKinds, "Swap in use.")),
	MemorySwapAvailable:       notInHeapster(gauge("memory/swap_available", "memory_swap_available_bytes", Bytes, Memory, runningKinds, "Swap left to use.")),
	MemoryPressureSome:        notInHeapster(cumulative("memory/pressure_some", "memory_pressure_some_seconds_total", Nanoseconds, Memory, runningKinds, "Time in which some thread waited for memory (PSI).")),
	MemoryPressureSomeRate:    notInHeapster(rateOf(MemoryPressureSome, "memory/pressure_some_rate", "memory_pressure_some_ratio", Ratio, Memory, runningKinds, "Share of the window in which some thread waited for memory (PSI).")),
	MemoryPressureFull:        notInHeapster(cumulative("memory/pressure_full", "memory_pressure_full_seconds_total", Nanoseconds, Memory, runningKinds, "Time in which every thread waited for memory (PSI).")),
	MemoryPressureFullRate:    notInHeapster(rateOf(MemoryPressureFull, "memory/pressure_full_rate", "memory_pressure_full_ratio", Ratio, Memory, runningKinds, "Share of the window in which every thread waited for memory (PSI).")),

	NetworkRx:           withParts("interface", cumulative("network/rx", "network_receive_bytes_total", Bytes, Network, onNode|onPod, "Bytes received.")),
	NetworkRxRate:       withParts("interface", rateOf(NetworkRx, "network/rx_rate", "network_receive_bytes_per_second", BytesPerSecond, Network, onNode|onPod|summedKinds, "Bytes received in each second of the window.")),
	NetworkRxErrors:     withParts("interface", cumulative("network/rx_errors", "network_receive_errors_total", Count, Network, onNode|onPod, "Errors while receiving.")),
	NetworkRxErrorsRate: withParts("interface", rateOf(NetworkRxErrors, "network/rx_errors_rate", "network_receive_errors_per_second", PerSecond, Network, onNode|onPod|summedKinds, "Errors while receiving in each second of the window.")),
	NetworkTx:           withParts("interface", cumulative("network/tx", "network_transmit_bytes_total", Bytes, Network, onNode|onPod, "Bytes sent.")),
	NetworkTxRate:       withParts("interface", rateOf(NetworkTx, "network/tx_rate", "network_transmit_bytes_per_second", BytesPerSecond, Network, onNode|onPod|summedKinds, "Bytes sent in each second of the window.")),
	NetworkTxErrors:     withParts("interface", cumulative("network/tx_errors", "network_transmit_errors_total", Count, Network, onNode|onPod, "Errors while sending.")),
	NetworkTxErrorsRate: withParts("interface", rateOf(NetworkTxErrors, "network/tx_errors_rate", "network_transmit_errors_per_second", PerSecond, Network, onNode|onPod|summedKinds, "Errors while sending in each second of the window.")),

	FilesystemUsage:       withParts("device", gauge("filesystem/usage", "filesystem_usage_bytes", Bytes, Filesystem, onNode|onPod|onContainer, "Bytes used on a file system.")),
	FilesystemLimit:       withParts("device", gauge("filesystem/limit", "filesystem_limit_bytes", Bytes, Filesystem, onNode|onPod|onContainer, "Size of a file system.")),
	FilesystemAvailable:   withParts("device", gauge("filesystem/available", "filesystem_available_bytes", Bytes, Filesystem, onNode|onPod|onContainer, "Bytes left for users other than root.")),
	FilesystemInodes:      withParts("device", gauge("filesystem/inodes", "filesystem_inodes", Count, Filesystem, onNode|onPod|onContainer, "Inodes a file system has.")),
	FilesystemInodesFree:  withParts("device", gauge("filesystem/inodes_free", "filesystem_inodes_free", Count, Filesystem, onNode|onPod|onContainer, "Inodes left.")),
	FilesystemInodesUsed:  withParts("device", notInHeapster(gauge("filesystem/inodes_used", "filesystem_inodes_used", Count, Filesystem, onNode|onPod|onContainer, "Inodes used."))),
	EphemeralStorageUsage: gauge("ephemeral_storage/usage", "ephemeral_storage_usage_bytes", Bytes, Filesystem, onNode|onPod|onContainer|summedKinds, "Local ephemeral storage used: writable layers, logs and emptyDir volumes on disk."),

	DiskReadBytes:      withParts("device", cumulative("disk/io_read_bytes", "disk_read_bytes_total", Bytes, IO, runningKinds, "Bytes read from block devices.")),
	DiskReadBytesRate:  withParts("device", rateOf(DiskReadBytes, "disk/io_read_bytes_rate", "disk_read_bytes_per_second", BytesPerSecond, IO, runningKinds, "Bytes read from block devices in each second of the window.")),
	DiskWriteBytes:     withParts("device", cumulative("disk/io_write_bytes", "disk_write_bytes_total", Bytes, IO, runningKinds, "Bytes written to block devices.")),
	DiskWriteBytesRate: withParts("device", rateOf(DiskWriteBytes, "disk/io_write_bytes_rate", "disk_write_bytes_per_second", BytesPerSecond, IO, runningKinds, "Bytes written to block devices in each second of the window.")),
	IOPressureSome:     notInHeapster(cumulative("io/pressure_some", "io_pressure_some_seconds_total", Nanoseconds, IO, runningKinds, "Time in which some thread waited for block I/O (PSI).")),
	IOPressureSomeRate: notInHeapster(rateOf(IOPressureSome, "io/pressure_some_rate", "io_pressure_some_ratio", Ratio, IO, runningKinds, "Share of the window in which some thread waited for block I/O (PSI).")),
	IOPressureFull:     notInHeapster(cumulative("io/pressure_full", "io_pressure_full_seconds_total", Nanoseconds, IO, runningKinds, "Time in which every thread waited for block I/O (PSI).")),
	IOPressureFullRate: notInHeapster(rateOf(IOPressureFull, "io/pressure_full_rate", "io_pressure_full_ratio", Ratio, IO, runningKinds, "Share of the window in which every thread waited for block I/O (PSI).")),

	ProcessCount:     notInHeapster(gauge("process/count", "processes", Count, Process, runningKinds, "Processes.")),
	ProcessLimit:     notInHeapster(gauge("process/limit", "processes_limit", Count, Process, runningKinds, "Most processes and threads allowed.")),
	ProcessThreads:   notInHeapster(gauge("process/threads", "threads", Count, Process, runningKinds, "Threads.")),
	ProcessOpenFiles: notInHeapster(gauge("process/open_files", "open_files", Count, Process, runningKinds, "Open file descriptors.")),

	AcceleratorMemoryTotal: withParts("accelerator", gauge("accelerator/memory_total", "accelerator_memory_total_bytes", Bytes, Accelerator, onNode|onContainer, "Memory of an accelerator.")),
	AcceleratorMemoryUsed:  withParts("accelerator", gauge("accelerator/memory_used", "accelerator_memory_used_bytes", Bytes, Accelerator, onNode|onContainer, "Memory in use on an accelerator.")),
	AcceleratorDutyCycle:   withParts("accelerator", gauge("accelerator/duty_cycle", "accelerator_duty_cycle_ratio", Ratio, Accelerator, onNode|onContainer, "Share of the past sampling period in which an accelerator was busy.")),

	Uptime:                          gauge("uptime", "uptime_seconds", Nanoseconds, Spec, runningKinds, "Time since the instance started."),
	CPURequest:                      gauge("cpu/request", "cpu_request_cores", Nanocores, Spec, onContainer|onPod|onNode|summedKinds, "CPU requested."),
	CPULimit:                        gauge("cpu/limit", "cpu_limit_cores", Nanocores, Spec, onSystem|onContainer|onPod|onNode|summedKinds, "CPU limit."),
	CPUUtilization:                  notInHeapster(gauge("cpu/utilization", "cpu_utilization_ratio", Ratio, Spec, onContainer|onPod, "CPU used over CPU requested.")),
	MemoryRequest:                   gauge("memory/request", "memory_request_bytes", Bytes, Spec, onContainer|onPod|onNode|summedKinds, "Memory requested."),
	MemoryLimit:                     gauge("memory/limit", "memory_limit_bytes", Bytes, Spec, onSystem|onContainer|onPod|onNode|summedKinds, "Memory limit."),
	MemoryUtilization:               notInHeapster(gauge("memory/utilization", "memory_utilization_ratio", Ratio, Spec, onContainer|onPod, "Working set over memory requested.")),
	SwapLimit:                       notInHeapster(gauge("memory/swap_limit", "memory_swap_limit_bytes", Bytes, Spec, onSystem|onContainer|onPod, "Swap limit.")),
	EphemeralStorageRequest:         gauge("ephemeral_storage/request", "ephemeral_storage_request_bytes", Bytes, Spec, onContainer|onPod|onNode|summedKinds, "Local ephemeral storage requested."),
	EphemeralStorageLimit:           gauge("ephemeral_storage/limit", "ephemeral_storage_limit_bytes", Bytes, Spec, onContainer|onPod|onNode|summedKinds, "Local ephemeral storage limit."),
	AcceleratorRequest:              gauge("accelerator/request", "accelerator_request", Count, Spec, onContainer|onPod|onNode|summedKinds, "Accelerators requested."),
	CPUNodeCapacity:                 gauge("cpu/node_capacity", "cpu_capacity_cores", Nanocores, Spec, onNode|onCluster, "CPU a node has."),
	CPUNodeAllocatable:              gauge("cpu/node_allocatable", "cpu_allocatable_cores", Nanocores, Spec, onNode|onCluster, "CPU a node has for pods."),
	CPUNodeReservation:              gauge("cpu/node_reservation", "cpu_reservation_ratio", Ratio, Spec, onNode|onCluster, "Share of the allocatable CPU that is requested."),
	CPUNodeUtilization:              gauge("cpu/node_utilization", "cpu_node_utilization_ratio", Ratio, Spec, onNode|onCluster, "Share of the allocatable CPU that is used."),
	MemoryNodeCapacity:              gauge("memory/node_capacity", "memory_capacity_bytes", Bytes, Spec, onNode|onCluster, "Memory a node has."),
	MemoryNodeAllocatable:           gauge("memory/node_allocatable", "memory_allocatable_bytes", Bytes, Spec, onNode|onCluster, "Memory a node has for pods."),
	MemoryNodeReservation:           gauge("memory/node_reservation", "memory_reservation_ratio", Ratio, Spec, onNode|onCluster, "Share of the allocatable memory that is requested."),
	MemoryNodeUtilization:           gauge("memory/node_utilization", "memory_node_utilization_ratio", Ratio, Spec, onNode|onCluster, "Share of the allocatable memory that is in the working set."),
	EphemeralStorageNodeCapacity:    gauge("ephemeral_storage/node_capacity", "ephemeral_storage_capacity_bytes", Bytes, Spec, onNode|onCluster, "Local ephemeral storage a node has."),
	EphemeralStorageNodeAllocatable: gauge("ephemeral_storage/node_allocatable", "ephemeral_storage_allocatable_bytes", Bytes, Spec, onNode|onCluster, "Local ephemeral storage a node has for pods."),
	EphemeralStorageNodeReservation: gauge("ephemeral_storage/node_reservation", "ephemeral_storage_reservation_ratio", Ratio, Spec, onNode|onCluster, "Share of the allocatable ephemeral storage that is requested."),
	EphemeralStorageNodeUtilization: gauge("ephemeral_storage/node_utilization", "ephemeral_storage_node_utilization_ratio", Ratio, Spec, onNode|onCluster, "Share of the allocatable ephemeral storage that is used."),
}

// Describe returns the catalogue's entry for id.
func (id ID) Describe() *Descriptor { return &Catalogue[id] }

// String returns Heapster's name: "cpu/usage_rate".
func (id ID) String() string {
	if id < NumMetrics {
		return Catalogue[id].Name
	}
	return "unknown"
}

// ByName returns the metric with this name, and whether there is one. The name is Heapster's
// ("cpu/usage_rate") or Prometheus' without its prefix ("cpu_usage_cores").
func ByName(name string) (ID, bool) {
	id, ok := names[name]
	return id, ok
}

// PrometheusName returns the metric's full name for entities of kind k:
// "weir_container_cpu_usage_cores".
func (d *Descriptor) PrometheusName(k Kind) string {
	return "weir_" + k.String() + "_" + d.Prometheus
}

var names = map[string]ID{}

func init() {
	for i := range Catalogue {
		d := &Catalogue[i]
		d.ID = ID(i)
		names[d.Name], names[d.Prometheus] = d.ID, d.ID
	}
}

func gauge(name, prometheus string, u Unit, g Group, l KindSet, help string) Descriptor {
	return Descriptor{Name: name, Prometheus: prometheus, Unit: u, Type: Gauge, Group: g, Kinds: l, Help: help}
}

func cumulative(name, prometheus string, u Unit, g Group, l KindSet, help string) Descriptor {
	d := gauge(name, prometheus, u, g, l, help)
	d.Type = Cumulative
	return d
}

func rateOf(id ID, name, prometheus string, u Unit, g Group, l KindSet, help string) Descriptor {
	d := gauge(name, prometheus, u, g, l, help)
	d.Type, d.RateOf = Rate, id
	return d
}

func notInHeapster(d Descriptor) Descriptor { d.NotInHeapster = true; return d }

func withParts(parts string, d Descriptor) Descriptor { d.Parts = parts; return d }
