package cadvisor

import "github.com/weir-metrics/weir/metric"

// use is how the lines of a family are used.
type use uint8

const (
	set       use = iota // the value is the cgroup's
	sum                  // several lines, such as one for each CPU; the cgroup's value is their sum
	faults               // page faults; a label has the kind
	network              // the value is an interface's
	disk                 // the value is a device's; the cgroup's value is their sum
	volume               // the value is a file system's
	gpu                  // the value is an accelerator's
	startTime            // the start time of the cgroup
	processes            // the number of processes in the cgroup; identity also uses it to see that the cgroup is alive
	quota                // CPU quota, in microseconds for each period
	period               // CPU period, in microseconds
	limit                // a limit; 0 means that there is none
	machine              // the value is the node's; the labels have the machine's IDs
	failure              // 1 if the kubelet could not read everything
)

// family describes a family of the endpoint.
type family struct {
	use use
	id  metric.ID
	// scale is the exponent of ten between the family's unit and the metric's unit: 9 from seconds to
	// nanoseconds, -3 from thousandths, -2 from percent.
	scale int8
}

// families has the families that have a metric in weir, by name.
var families = map[string]*family{
	"container_cpu_usage_seconds_total":         {sum, metric.CPUUsage, 9},
	"container_cpu_user_seconds_total":          {set, metric.CPUUser, 9},
	"container_cpu_system_seconds_total":        {set, metric.CPUSystem, 9},
	"container_cpu_cfs_throttled_seconds_total": {set, metric.CPUThrottled, 9},
	"container_cpu_cfs_periods_total":           {set, metric.CPUPeriods, 0},
	"container_cpu_cfs_throttled_periods_total": {set, metric.CPUThrottledPeriods, 0},
	// cAdvisor's load is in thousandths.
	"container_cpu_load_average_10s":               {set, metric.CPULoad, -3},
	"container_pressure_cpu_waiting_seconds_total": {set, metric.CPUPressureSome, 9},
	"container_pressure_cpu_stalled_seconds_total": {set, metric.CPUPressureFull, 9},

	"container_memory_usage_bytes":       {set, metric.MemoryUsage, 0},
	"container_memory_working_set_bytes": {set, metric.MemoryWorkingSet, 0},
	"container_memory_rss":               {set, metric.MemoryRSS, 0},
	"container_memory_cache":             {set, metric.MemoryCache, 0},
	"container_memory_mapped_file":       {set, metric.MemoryMappedFile, 0},
	"container_memory_swap":              {set, metric.MemorySwap, 0},
	// One of these two is always 0: the first with version 1 of cgroups, the second with version 2.
	"container_memory_events_max_total":               {sum, metric.MemoryFailures, 0},
	"container_memory_failcnt":                        {sum, metric.MemoryFailures, 0},
	"container_memory_failures_total":                 {faults, metric.MemoryPageFaults, 0},
	"container_oom_events_total":                      {set, metric.MemoryOOMEvents, 0},
	"container_pressure_memory_waiting_seconds_total": {set, metric.MemoryPressureSome, 9},
	"container_pressure_memory_stalled_seconds_total": {set, metric.MemoryPressureFull, 9},

	"container_network_receive_bytes_total":   {network, metric.NetworkRx, 0},
	"container_network_receive_errors_total":  {network, metric.NetworkRxErrors, 0},
	"container_network_transmit_bytes_total":  {network, metric.NetworkTx, 0},
	"container_network_transmit_errors_total": {network, metric.NetworkTxErrors, 0},

	"container_fs_usage_bytes":                    {volume, metric.FilesystemUsage, 0},
	"container_fs_limit_bytes":                    {volume, metric.FilesystemLimit, 0},
	"container_fs_inodes_total":                   {volume, metric.FilesystemInodes, 0},
	"container_fs_inodes_free":                    {volume, metric.FilesystemInodesFree, 0},
	"container_fs_reads_bytes_total":              {disk, metric.DiskReadBytes, 0},
	"container_fs_writes_bytes_total":             {disk, metric.DiskWriteBytes, 0},
	"container_pressure_io_waiting_seconds_total": {set, metric.IOPressureSome, 9},
	"container_pressure_io_stalled_seconds_total": {set, metric.IOPressureFull, 9},

	"container_processes":        {processes, metric.ProcessCount, 0},
	"container_threads":          {set, metric.ProcessThreads, 0},
	"container_threads_max":      {limit, metric.ProcessLimit, 0},
	"container_file_descriptors": {set, metric.ProcessOpenFiles, 0},

	"container_accelerator_memory_total_bytes": {gpu, metric.AcceleratorMemoryTotal, 0},
	"container_accelerator_memory_used_bytes":  {gpu, metric.AcceleratorMemoryUsed, 0},
	"container_accelerator_duty_cycle":         {gpu, metric.AcceleratorDutyCycle, -2},

	"container_start_time_seconds":      {startTime, 0, 9},
	"container_spec_cpu_quota":          {quota, 0, 0},
	"container_spec_cpu_period":         {period, 0, 0},
	"container_spec_memory_limit_bytes": {limit, metric.MemoryLimit, 0},

	"machine_cpu_cores":      {machine, metric.CPUNodeCapacity, 9},
	"machine_memory_bytes":   {machine, metric.MemoryNodeCapacity, 0},
	"container_scrape_error": {failure, 0, 0},
	"machine_scrape_error":   {failure, 0, 0},
}
