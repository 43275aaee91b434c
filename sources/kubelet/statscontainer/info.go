package statscontainer

import "time"

// info is the part of cAdvisor's ContainerInfo that weir has metrics for.
// Pointers tell absent from zero.
type info struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Spec struct {
		Created       time.Time         `json:"creation_time"`
		Labels        map[string]string `json:"labels"`
		HasCPU        *bool             `json:"has_cpu"`
		HasMemory     *bool             `json:"has_memory"`
		HasNetwork    *bool             `json:"has_network"`
		HasFilesystem *bool             `json:"has_filesystem"`
		HasDiskIO     *bool             `json:"has_diskio"`
		CPU           struct {
			Quota  uint64 `json:"quota"`
			Period uint64 `json:"period"`
		} `json:"cpu"`
		Memory struct {
			Limit uint64 `json:"limit"`
		} `json:"memory"`
	} `json:"spec"`
	Stats []stats `json:"stats"`
}

type stats struct {
	Timestamp time.Time `json:"timestamp"`
	CPU       *struct {
		Usage struct {
			Total  *uint64 `json:"total"`
			User   *uint64 `json:"user"`
			System *uint64 `json:"system"`
		} `json:"usage"`
		CFS *struct {
			Periods          *uint64 `json:"periods"`
			ThrottledPeriods *uint64 `json:"throttled_periods"`
			ThrottledTime    *uint64 `json:"throttled_time"`
		} `json:"cfs"`
		Load *int64 `json:"load_average"` // thousandths
		PSI  *psi   `json:"psi"`
	} `json:"cpu"`
	Memory *struct {
		Usage        *uint64 `json:"usage"`
		WorkingSet   *uint64 `json:"working_set"`
		RSS          *uint64 `json:"rss"`
		Cache        *uint64 `json:"cache"`
		MappedFile   *uint64 `json:"mapped_file"`
		Swap         *uint64 `json:"swap"`
		Failcnt      *uint64 `json:"failcnt"`
		Hierarchical *struct {
			Faults      *uint64 `json:"pgfault"`
			MajorFaults *uint64 `json:"pgmajfault"`
		} `json:"hierarchical_data"`
		PSI *psi `json:"psi"`
	} `json:"memory"`
	Network *struct {
		iface
		Interfaces []iface `json:"interfaces"`
	} `json:"network"`
	DiskIO *struct {
		ServiceBytes []struct {
			Device string            `json:"device"`
			Major  uint64            `json:"major"`
			Minor  uint64            `json:"minor"`
			Stats  map[string]uint64 `json:"stats"`
		} `json:"io_service_bytes"`
		PSI *psi `json:"psi"`
	} `json:"diskio"`
	Filesystem []struct {
		Device     string  `json:"device"`
		HasInodes  bool    `json:"has_inodes"`
		Capacity   *uint64 `json:"capacity"`
		Usage      *uint64 `json:"usage"`
		Available  *uint64 `json:"available"`
		Inodes     *uint64 `json:"inodes"`
		InodesFree *uint64 `json:"inodes_free"`
	} `json:"filesystem"`
	Processes *struct {
		Count   *uint64 `json:"process_count"`
		FDs     *uint64 `json:"fd_count"`
		Threads *uint64 `json:"threads_current"`
		Max     uint64  `json:"threads_max"` // 0 for no limit
	} `json:"processes"`
	Accelerators []struct {
		ID        string  `json:"id"`
		Total     *uint64 `json:"memory_total"`
		Used      *uint64 `json:"memory_used"`
		DutyCycle *uint64 `json:"duty_cycle"` // percent
	} `json:"accelerators"`
	OOMEvents *uint64 `json:"oom_event"`
}

type iface struct {
	Name     string  `json:"name"`
	Rx       *uint64 `json:"rx_bytes"`
	RxErrors *uint64 `json:"rx_errors"`
	Tx       *uint64 `json:"tx_bytes"`
	TxErrors *uint64 `json:"tx_errors"`
}

// psi totals are microseconds, as the kernel writes them.
type psi struct {
	Some struct {
		Total uint64 `json:"total"`
	} `json:"some"`
	Full struct {
		Total uint64 `json:"total"`
	} `json:"full"`
}
