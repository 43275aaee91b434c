package inspect

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// Report is the judgement on every cgroup of a pod on this machine.
type Report struct {
	// Time is when the tree had been read, by our clock.
	Time time.Time `json:"time"`
	// Cgroups is "v1", "v2" or "hybrid".
	Cgroups string `json:"cgroups"`
	// Directories are the directories that were looked through.
	Directories []string `json:"directories"`
	// Roots are the kubepods cgroups that were found.
	Roots []metric.CgroupPath `json:"roots"`
	// PodsFrom is who said which pods there are; empty if nobody was asked.
	PodsFrom string `json:"podsFrom,omitempty"`
	// PodsAt is since when that may have changed.
	PodsAt *time.Time `json:"podsAt,omitempty"`
	// Pods are the cgroups of pods in the order of their paths, and after them
	// the strays: containers' cgroups that no pod's is there for.
	Pods []PodReport `json:"pods"`
	// Problems say what could not be read.
	Problems []string `json:"problems,omitempty"`
	// Removals are what Clean did; absent until it was asked to.
	Removals []Removal `json:"removals,omitempty"`
}

// Count returns how many cgroups of pods are judged so.
func (r *Report) Count(j Judgement) (n int) {
	for i := range r.Pods {
		if r.Pods[i].Judgement == j {
			n++
		}
	}
	return n
}

// CgroupReport is what is found and thought of one cgroup.
type CgroupReport struct {
	Path      metric.CgroupPath `json:"path"`
	Judgement Judgement         `json:"judgement"`
	// Reasons are sentences without a full stop, the decisive one first.
	Reasons []string `json:"reasons"`
	// Hierarchies are those that hold it, and Inode its number in the first.
	Hierarchies []string `json:"hierarchies"`
	Inode       uint64   `json:"inode"`
	// Processes counts those in it and below. Hidden says that the kernel knows
	// of more than it shows us, or that some could not be read.
	Processes int  `json:"processes"`
	Hidden    bool `json:"hidden,omitempty"`
	Frozen    bool `json:"frozen,omitempty"`
	// Limits are what it may use, as the kernel has it; nil if that does not say.
	Limits *Limits `json:"limits,omitempty"`
	// Oldest are the oldest of the processes, a few.
	Oldest []Process `json:"oldest,omitempty"`
	// Since is when it began, as far as SinceFrom knows.
	Since     time.Time `json:"since"`
	SinceFrom Origin    `json:"sinceFrom"`
}

// Origin says whence a beginning is known.
type Origin string

// The origins, the best first.
const (
	// FromStatus: the status of the pod or container says when it started.
	FromStatus Origin = "status"
	// FromProcess: its oldest process started then.
	FromProcess Origin = "process"
	// FromDirectory: the modification time of its directory, which moves when
	// something in it comes or goes. It began then, or earlier.
	FromDirectory Origin = "directory"
)

// PodReport is the judgement on a pod's cgroup.
type PodReport struct {
	CgroupReport
	UID metric.PodUID `json:"uid"`
	// Namespace and Name are the pod's; empty if it is not known.
	Namespace metric.Namespace `json:"namespace,omitempty"`
	Name      metric.PodName   `json:"name,omitempty"`
	// Driver is whose spelling the path is; empty for a stray.
	Driver podcgroup.Driver `json:"driver,omitempty"`
	// PathQoS is the class that the path says, SpecQoS the pod's own; empty if
	// it is not known.
	PathQoS podcgroup.QoS `json:"pathQoS"`
	SpecQoS podcgroup.QoS `json:"specQoS,omitempty"`
	// Removable says that Clean would remove it. KeptBecause says of a leftover why it
	// would not.
	Removable   bool   `json:"removable"`
	KeptBecause string `json:"keptBecause,omitempty"`
	// Containers are the cgroups of its containers and of its sandbox.
	Containers []ContainerReport `json:"containers,omitempty"`

	cgroup *Cgroup
}

// PodName returns "namespace/name", or "-" for a pod that is not known.
func (p *PodReport) PodName() string {
	if p.Name == "" {
		return "-"
	}
	return metric.PodRef{Namespace: p.Namespace, Name: p.Name}.String()
}

// ContainerReport is the judgement on a container's cgroup.
type ContainerReport struct {
	CgroupReport
	ID metric.ContainerID `json:"id"`
	// Runtime is what the path calls it: "cri-containerd", "crio", "docker".
	Runtime string `json:"runtime,omitempty"`
	// Name is the container's; empty if no status names its ID, as with a
	// pod's sandbox.
	Name string `json:"name,omitempty"`
}

// Judgement is what is thought of a cgroup. The list is closed; README.md says
// what each means and what to do.
type Judgement string

// The judgements. Where several would fit, the one listed first is given.
const (
	// Unknown: nobody who knows was asked, or their answer cannot speak of it.
	Unknown Judgement = "unknown"
	// Orphan: there is no pod of its UID.
	Orphan Judgement = "orphan"
	// Duplicate: another cgroup is the pod's, or the container's.
	Duplicate Judgement = "duplicate"
	// WrongQoS: it is the pod's, but stands in another class than the pod's.
	WrongQoS Judgement = "wrong-qos"
	// OldContainer: its container has ended, or been replaced.
	OldContainer Judgement = "old-container"
	// Empty: it is where it should be, and nothing runs in it.
	Empty Judgement = "empty"
	// Live: it is where it should be, and in use.
	Live Judgement = "live"
)

// Judgements returns all of them in their order.
func Judgements() []Judgement {
	return []Judgement{Unknown, Orphan, Duplicate, WrongQoS, OldContainer, Empty, Live}
}

// Leftover reports whether a cgroup so judged should no longer be there.
func (j Judgement) Leftover() bool { return j == Orphan || j == Duplicate || j == OldContainer }
