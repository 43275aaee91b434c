package eviction

import "time"

// Summary is what is in use on a node: as much of the kubelet's summary API
// (stats/v1alpha1) as decisions are made of, with its JSON. A figure that is nil is not
// known, which is not zero. A time that is zero is not known.
type Summary struct {
	Node NodeStats  `json:"node"`
	Pods []PodStats `json:"pods"`
}

// NodeStats are of the node as a whole.
type NodeStats struct {
	NodeName         string           `json:"nodeName,omitempty"`
	SystemContainers []ContainerStats `json:"systemContainers,omitempty"`
	Memory           *MemoryStats     `json:"memory,omitempty"`
	Fs               *FsStats         `json:"fs,omitempty"`
	Runtime          *RuntimeStats    `json:"runtime,omitempty"`
	Rlimit           *RlimitStats     `json:"rlimit,omitempty"`
}

// RuntimeStats are of the container runtime's file systems.
type RuntimeStats struct {
	ImageFs     *FsStats `json:"imageFs,omitempty"`
	ContainerFs *FsStats `json:"containerFs,omitempty"`
}

// RlimitStats are of process ids.
type RlimitStats struct {
	Time    time.Time `json:"time,omitzero"`
	MaxPID  *int64    `json:"maxpid,omitempty"`
	Running *int64    `json:"curproc,omitempty"`
}

// PodStats are of a pod. PodRef.UID ties them to it.
type PodStats struct {
	PodRef           PodRef           `json:"podRef"`
	Containers       []ContainerStats `json:"containers"`
	CPU              *CPUStats        `json:"cpu,omitempty"`
	Memory           *MemoryStats     `json:"memory,omitempty"`
	Volumes          []VolumeStats    `json:"volume,omitempty"`
	EphemeralStorage *FsStats         `json:"ephemeral-storage,omitempty"`
	Processes        *ProcessStats    `json:"process_stats,omitempty"`
}

// PodRef names a pod.
type PodRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// String is namespace/name.
func (r PodRef) String() string { return r.Namespace + "/" + r.Name }

// ContainerStats are of a container.
type ContainerStats struct {
	Name   string       `json:"name"`
	Memory *MemoryStats `json:"memory,omitempty"`
	Rootfs *FsStats     `json:"rootfs,omitempty"`
	Logs   *FsStats     `json:"logs,omitempty"`
}

// VolumeStats are of a volume.
type VolumeStats struct {
	FsStats
	Name string `json:"name,omitempty"`
}

// CPUStats are in billionths of a core.
type CPUStats struct {
	Time           time.Time `json:"time,omitzero"`
	UsageNanoCores *uint64   `json:"usageNanoCores,omitempty"`
}

// MemoryStats are in bytes.
type MemoryStats struct {
	Time            time.Time `json:"time,omitzero"`
	AvailableBytes  *uint64   `json:"availableBytes,omitempty"`
	UsageBytes      *uint64   `json:"usageBytes,omitempty"`
	WorkingSetBytes *uint64   `json:"workingSetBytes,omitempty"`
}

// FsStats are of a file system, or of what something uses of one.
type FsStats struct {
	Time           time.Time `json:"time,omitzero"`
	AvailableBytes *uint64   `json:"availableBytes,omitempty"`
	CapacityBytes  *uint64   `json:"capacityBytes,omitempty"`
	UsedBytes      *uint64   `json:"usedBytes,omitempty"`
	InodesFree     *uint64   `json:"inodesFree,omitempty"`
	Inodes         *uint64   `json:"inodes,omitempty"`
	InodesUsed     *uint64   `json:"inodesUsed,omitempty"`
}

// ProcessStats are of processes.
type ProcessStats struct {
	Count *uint64 `json:"process_count,omitempty"`
}

// systemPods is the system container that holds all pods.
const systemPods = "pods"

// allPods returns the memory of all pods together, nil if not known.
func (s *Summary) allPods() *MemoryStats {
	for i := range s.Node.SystemContainers {
		if c := &s.Node.SystemContainers[i]; c.Name == systemPods {
			return c.Memory
		}
	}
	return nil
}

// byUID returns the stats of pods. Of two with one UID the last counts.
func byUID(pods []PodStats) map[string]*PodStats {
	m := make(map[string]*PodStats, len(pods))
	for i := range pods {
		m[pods[i].PodRef.UID] = &pods[i]
	}
	return m
}
