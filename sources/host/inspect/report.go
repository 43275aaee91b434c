package inspect

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Report has the judgement on every pod's cgroup of this machine.
type Report struct {
	// Time is the end of the read of the tree, by this machine's clock.
	Time time.Time `json:"time"`
	// Cgroups is "v1", "v2" or "hybrid".
	Cgroups string `json:"cgroups"`
	// Directories are the directories that were searched.
	Directories []string `json:"directories"`
	// Roots are the kubepods cgroups that were found.
	Roots []metric.CgroupPath `json:"roots"`
	// PodsFrom is the source of the list of pods; empty if there is no list.
	PodsFrom string `json:"podsFrom,omitempty"`
	// PodsAt is the time of the list. Pods may have changed after it.
	PodsAt *time.Time `json:"podsAt,omitempty"`
	// Pods are the cgroups of pods, sorted by path, and after them the cgroups of containers that are
	// outside of any pod's cgroup.
	Pods []PodCgroups `json:"pods"`
	// Problems are what could not be read, and why the list of pods is in doubt.
	Problems []string `json:"problems,omitempty"`
	// Removals are the results of Clean; absent before it is called.
	Removals []Removal `json:"removals,omitempty"`
}

// Count returns how many cgroups in Pods have the judgement j.
func (r *Report) Count(j Judgement) (n int) {
	for i := range r.Pods {
		if r.Pods[i].Judgement == j {
			n++
		}
	}
	return n
}

// CgroupReport is the state of one cgroup and the judgement on it.
type CgroupReport struct {
	Path      metric.CgroupPath `json:"path"`
	Judgement Judgement         `json:"judgement"`
	// Reasons explain the judgement. They are sentences without a full stop, with the most important
	// first.
	Reasons []string `json:"reasons"`
	// Hierarchies are the names of the hierarchies that have the cgroup. Inode is its inode in the
	// first of them.
	Hierarchies []string `json:"hierarchies"`
	Inode       uint64   `json:"inode"`
	// Processes is the number of processes in the cgroup and below it. Hidden is true if there are
	// more that the kernel does not list for this process, or that could not be read.
	Processes int  `json:"processes"`
	Hidden    bool `json:"hidden,omitempty"`
	Frozen    bool `json:"frozen,omitempty"`
	// Limits are the kernel's limits for it; nil if no hierarchy has such a file.
	Limits *Limits `json:"limits,omitempty"`
	// Oldest are the oldest processes, at most three.
	Oldest []Process `json:"oldest,omitempty"`
	// Since is the creation time of the cgroup, from the source in SinceFrom.
	Since     time.Time `json:"since"`
	SinceFrom Origin    `json:"sinceFrom"`
}

// Origin is the source of CgroupReport.Since.
type Origin string

// The origins. The most exact comes first.
const (
	// FromStatus is the start time in the status of the pod or container.
	FromStatus Origin = "status"
	// FromProcess is the start of the oldest process.
	FromProcess Origin = "process"
	// FromDirectory is the modification time of the directory. It changes when a child
	// is added or removed, so the cgroup may be older.
	FromDirectory Origin = "directory"
)

// PodCgroups is the judgement on a pod's cgroup.
type PodCgroups struct {
	CgroupReport
	UID metric.PodUID `json:"uid"`
	// Namespace and Name are those of the pod; empty if the pod is not listed.
	Namespace metric.Namespace `json:"namespace,omitempty"`
	Name      metric.PodName   `json:"name,omitempty"`
	// Driver is the cgroup driver that creates such paths; empty for a container's cgroup outside of
	// any pod's.
	Driver podcgroup.Driver `json:"driver,omitempty"`
	// PathQoS is the QoS class in the path. SpecQoS is the class of the pod; empty if the pod is not
	// listed.
	PathQoS podcgroup.QoS `json:"pathQoS"`
	SpecQoS podcgroup.QoS `json:"specQoS,omitempty"`
	// Removable is true if Clean would remove it. KeptBecause is why Clean would not remove a
	// leftover.
	Removable   bool   `json:"removable"`
	KeptBecause string `json:"keptBecause,omitempty"`
	// Containers are the cgroups of its containers and of its sandbox.
	Containers []ContainerReport `json:"containers,omitempty"`

	cgroup *Cgroup
}

// PodName returns "namespace/name", or "-" for a pod that is not listed.
func (p *PodCgroups) PodName() string {
	if p.Name == "" {
		return "-"
	}
	return metric.PodRef{Namespace: p.Namespace, Name: p.Name}.String()
}

// ContainerReport is the judgement on a container's cgroup.
type ContainerReport struct {
	CgroupReport
	ID metric.ContainerID `json:"id"`
	// Runtime is the runtime in the path: "cri-containerd", "crio", "docker".
	Runtime string `json:"runtime,omitempty"`
	// Name is the name of the container; empty if no status has its ID, as for a pod's sandbox.
	Name string `json:"name,omitempty"`
}

// Judgement is the verdict on a cgroup. It is one of the constants below; README.md has what each
// means and what to do.
type Judgement string

// The judgements. If several fit, the first one in this list is used.
const (
	// Unknown means that there is no list of pods, or that the list cannot decide about this cgroup.
	Unknown Judgement = "unknown"
	// NoPod means that there is no pod with its UID.
	NoPod Judgement = "no-pod"
	// Duplicate means that the pod or the container uses another cgroup.
	Duplicate Judgement = "duplicate"
	// WrongQoS means that the pod uses it, but it is in another QoS class than the pod.
	WrongQoS Judgement = "wrong-qos"
	// OldContainer means that its container has ended or was replaced.
	OldContainer Judgement = "old-container"
	// Empty means that it is at the right place and has no process.
	Empty Judgement = "empty"
	// Live means that it is at the right place and has processes.
	Live Judgement = "live"
)

// Judgements returns all judgements in their order.
func Judgements() []Judgement {
	return []Judgement{Unknown, NoPod, Duplicate, WrongQoS, OldContainer, Empty, Live}
}

// Leftover reports whether a cgroup with this judgement should not exist any more.
func (j Judgement) Leftover() bool { return j == NoPod || j == Duplicate || j == OldContainer }
