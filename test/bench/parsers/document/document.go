// Package document has the types into which JSON libraries decode a kubelet's
// summary: the fields that weir reads, and no others.
//
// The types favour the libraries. Numbers are values, so a missing number
// cannot be distinguished from zero, and nothing is allocated for numbers (the
// API's own types have a pointer for each). Times are strings. weir's decoder
// distinguishes missing numbers from zero and converts times to nanoseconds.
package document

// Summary is the whole answer.
type Summary struct {
	Node Node  `json:"node"`
	Pods []Pod `json:"pods"`
}

// Node is the part of the answer about the node.
type Node struct {
	NodeName         string      `json:"nodeName"`
	StartTime        string      `json:"startTime"`
	SystemContainers []Container `json:"systemContainers"`
	CPU              CPU         `json:"cpu"`
	Memory           Memory      `json:"memory"`
	IO               Timed       `json:"io"`
	Swap             Swap        `json:"swap"`
	Network          Network     `json:"network"`
	FS               FS          `json:"fs"`
	Runtime          struct {
		ImageFS     FS `json:"imageFs"`
		ContainerFS FS `json:"containerFs"`
	} `json:"runtime"`
	Rlimit struct {
		Time    string `json:"time"`
		MaxPID  int64  `json:"maxpid"`
		CurProc int64  `json:"curproc"`
	} `json:"rlimit"`
}

// Pod is the part of the answer about a pod.
type Pod struct {
	PodRef struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		UID       string `json:"uid"`
	} `json:"podRef"`
	StartTime        string      `json:"startTime"`
	Containers       []Container `json:"containers"`
	CPU              CPU         `json:"cpu"`
	Memory           Memory      `json:"memory"`
	IO               Timed       `json:"io"`
	Swap             Swap        `json:"swap"`
	Network          Network     `json:"network"`
	EphemeralStorage FS          `json:"ephemeral-storage"`
	Volume           []FS        `json:"volume"`
	ProcessStats     struct {
		ProcessCount uint64 `json:"process_count"`
	} `json:"process_stats"`
}

// Container is a container of a pod or of the system.
type Container struct {
	Name         string        `json:"name"`
	StartTime    string        `json:"startTime"`
	CPU          CPU           `json:"cpu"`
	Memory       Memory        `json:"memory"`
	IO           Timed         `json:"io"`
	Swap         Swap          `json:"swap"`
	RootFS       FS            `json:"rootfs"`
	Logs         FS            `json:"logs"`
	Accelerators []Accelerator `json:"accelerators"`
}

// CPU is an object "cpu".
type CPU struct {
	Time                 string `json:"time"`
	UsageNanoCores       uint64 `json:"usageNanoCores"`
	UsageCoreNanoSeconds uint64 `json:"usageCoreNanoSeconds"`
	PSI                  PSI    `json:"psi"`
}

// Memory is an object "memory".
type Memory struct {
	Time            string `json:"time"`
	AvailableBytes  uint64 `json:"availableBytes"`
	UsageBytes      uint64 `json:"usageBytes"`
	WorkingSetBytes uint64 `json:"workingSetBytes"`
	RSSBytes        uint64 `json:"rssBytes"`
	PageFaults      uint64 `json:"pageFaults"`
	MajorPageFaults uint64 `json:"majorPageFaults"`
	PSI             PSI    `json:"psi"`
}

// Timed is an object "io".
type Timed struct {
	Time string `json:"time"`
	PSI  PSI    `json:"psi"`
}

// PSI is an object "psi", in microseconds.
type PSI struct {
	Some Total `json:"some"`
	Full Total `json:"full"`
}

// Total is an object "some" or "full".
type Total struct {
	Total uint64 `json:"total"`
}

// Swap is an object "swap".
type Swap struct {
	Time               string `json:"time"`
	SwapAvailableBytes uint64 `json:"swapAvailableBytes"`
	SwapUsageBytes     uint64 `json:"swapUsageBytes"`
}

// FS is a file system: "fs", "rootfs", "logs", "volume", "ephemeral-storage".
type FS struct {
	Time           string `json:"time"`
	Name           string `json:"name"`
	AvailableBytes uint64 `json:"availableBytes"`
	CapacityBytes  uint64 `json:"capacityBytes"`
	UsedBytes      uint64 `json:"usedBytes"`
	InodesFree     uint64 `json:"inodesFree"`
	Inodes         uint64 `json:"inodes"`
	InodesUsed     uint64 `json:"inodesUsed"`
}

// Network is an object "network".
type Network struct {
	Time string `json:"time"`
	Interface
	Interfaces []Interface `json:"interfaces"`
}

// Interface is one of "interfaces", or the default one.
type Interface struct {
	Name     string `json:"name"`
	RxBytes  uint64 `json:"rxBytes"`
	RxErrors uint64 `json:"rxErrors"`
	TxBytes  uint64 `json:"txBytes"`
	TxErrors uint64 `json:"txErrors"`
}

// Accelerator is one of "accelerators".
type Accelerator struct {
	ID          string `json:"id"`
	MemoryTotal uint64 `json:"memoryTotal"`
	MemoryUsed  uint64 `json:"memoryUsed"`
	DutyCycle   uint64 `json:"dutyCycle"`
}
