package eviction

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Signal is an eviction signal: a resource that a node may run out of.
type Signal string

// The kubelet's signals. Each is the amount that is available: bytes, inodes, process ids.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	ContainerFsAvailable       Signal = "containerfs.available"
	ContainerFsInodesFree      Signal = "containerfs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// weir's own signals of bytes, from /proc/meminfo. The kubelet has neither.
const (
	// MemAvailable is what programs can still get without swapping, as the kernel estimates it: free
	// memory and the reclaimable cache. The kubelet counts active page cache as used, so
	// memory.available is lower on a node that reads many files (kubernetes issue 43916).
	MemAvailable Signal = "memory.memAvailable"
	// SwapAvailable is the free swap. A node without swap has no figure of it.
	SwapAvailable Signal = "swap.available"
)

// The resources, with the kubelet's names in messages and Events.
const (
	resourceMemory = string(corev1.ResourceMemory)
	resourceDisk   = string(corev1.ResourceEphemeralStorage)
	resourceCPU    = string(corev1.ResourceCPU)
	resourceInodes = "inodes"
	resourcePIDs   = "pids"
	resourceIO     = "io"
)

// Node conditions that the kubelet does not have. They report that tasks of the node wait for CPU or
// for I/O.
const (
	NodeCPUPressure corev1.NodeConditionType = "CPUPressure"
	NodeIOPressure  corev1.NodeConditionType = "IOPressure"
)

// signalTraits are the properties of a signal.
type signalTraits struct {
	resource  string
	condition corev1.NodeConditionType
	rank      int  // the position in the order of action; memory is below memoryFirst
	own       bool // the kubelet does not have the signal
}

// memoryFirst is larger than the ranks of memory and not larger than any other rank: memory is
// acted on first, hard or soft.
const memoryFirst = 10

// signals has the signals of amounts: the kubelet's in the order in which they are acted on, and weir's own.
var signals = []struct {
	Signal
	signalTraits
}{
	{MemoryAvailable, signalTraits{resourceMemory, corev1.NodeMemoryPressure, 0, false}},
	{AllocatableMemoryAvailable, signalTraits{resourceMemory, corev1.NodeMemoryPressure, 1, false}},
	{NodeFsAvailable, signalTraits{resourceDisk, corev1.NodeDiskPressure, 11, false}},
	{NodeFsInodesFree, signalTraits{resourceInodes, corev1.NodeDiskPressure, 12, false}},
	{ImageFsAvailable, signalTraits{resourceDisk, corev1.NodeDiskPressure, 13, false}},
	{ImageFsInodesFree, signalTraits{resourceInodes, corev1.NodeDiskPressure, 14, false}},
	{ContainerFsAvailable, signalTraits{resourceDisk, corev1.NodeDiskPressure, 15, false}},
	{ContainerFsInodesFree, signalTraits{resourceInodes, corev1.NodeDiskPressure, 16, false}},
	{PIDAvailable, signalTraits{resourcePIDs, corev1.NodePIDPressure, 17, false}},
	{MemAvailable, signalTraits{resourceMemory, corev1.NodeMemoryPressure, 3, true}},
	{SwapAvailable, signalTraits{resourceMemory, corev1.NodeMemoryPressure, 4, true}},
}

// OwnSignals returns weir's own signals of amounts. Like those of memory they are acted on first.
func OwnSignals() []Signal { return signalsWhere(true) }

// Signals returns the kubelet's signals in the order in which they are acted on. Memory always comes
// first; otherwise a hard threshold of any signal comes before a soft one (see sortThresholds).
// Pressure signals of memory follow the two signals of memory; those of cpu and io are last.
func Signals() []Signal { return signalsWhere(false) }

func signalsWhere(own bool) (list []Signal) {
	for i := range signals {
		if signals[i].own == own {
			list = append(list, signals[i].Signal)
		}
	}
	return list
}

// traits returns the properties of a signal; the zero value for an unknown signal.
func (s Signal) traits() signalTraits {
	for i := range signals {
		if signals[i].Signal == s {
			return signals[i].signalTraits
		}
	}
	resource, _, _, ok := s.splitPressure()
	switch {
	case !ok:
		return signalTraits{}
	case resource == "memory":
		return signalTraits{resourceMemory, corev1.NodeMemoryPressure, 2, true}
	case resource == "cpu":
		return signalTraits{resourceCPU, NodeCPUPressure, 18, true}
	default:
		return signalTraits{resourceIO, NodeIOPressure, 19, true}
	}
}

// splitPressure splits a pressure signal: memory.pressure.some.avg10 becomes memory, some and
// avg10. It returns false for another signal.
func (s Signal) splitPressure() (resource, share, window string, ok bool) {
	parts := strings.Split(string(s), ".")
	if len(parts) != 4 || parts[1] != "pressure" {
		return "", "", "", false
	}
	resource, share, window = parts[0], parts[2], parts[3]
	ok = (resource == "memory" || resource == "cpu" || resource == "io") &&
		(share == "some" || share == "full") &&
		(window == "avg10" || window == "avg60" || window == "avg300")
	return resource, share, window, ok
}

// Pressure reports whether the signal is a pressure stall figure of the kernel, for which a higher
// figure is worse.
func (s Signal) Pressure() bool {
	_, _, _, ok := s.splitPressure()
	return ok
}

// Resource returns the resource of a signal with the kubelet's name: memory, ephemeral-storage,
// inodes, pids. For weir's own signals it is cpu or io, and for an unknown signal empty.
func (s Signal) Resource() string {
	return s.traits().resource
}

// Condition returns the node condition that follows from the signal.
func (s Signal) Condition() corev1.NodeConditionType {
	return s.traits().condition
}

func (s Signal) countsBytes() bool {
	r := s.Resource()
	return r == resourceMemory || r == resourceDisk
}

// CgroupThreshold is a usage threshold to register with a memory cgroup of version 1.
type CgroupThreshold struct {
	// Path is the directory of the cgroup. Attribute is the file in it that is watched.
	Path, Attribute string
	// Bytes is the usage at which the kernel gives notice. WorkingSet is Bytes without the page cache
	// that the kernel can drop.
	Bytes, WorkingSet int64
}

// Cgroups shows where the node's memory cgroups are.
type Cgroups struct {
	// Mount is where the hierarchy is mounted. Pods is the cgroup of all pods below it, with a
	// leading slash.
	Mount, Pods string
}

// CgroupThreshold returns the usage threshold for a memory threshold, with the figures of the
// current summary. The kernel counts page cache that it can drop as used; an eviction threshold
// does not. The figure therefore changes with the page cache and must be updated
// (Decision.RefreshNotifiers). The kubelet registers it; weir polls the working set instead.
func (t *Threshold) CgroupThreshold(s *stats.Summary, c Cgroups) (CgroupThreshold, error) {
	n := CgroupThreshold{Path: c.Mount, Attribute: "memory.usage_in_bytes"}
	m := s.Node.Memory
	switch t.Signal {
	case MemoryAvailable:
	case AllocatableMemoryAvailable:
		n.Path += c.Pods
		m = allPods(s)
	default:
		return CgroupThreshold{}, errors.New("the kernel sends no notice of " + string(t.Signal))
	}
	if m == nil || m.UsageBytes == nil || m.WorkingSetBytes == nil || m.AvailableBytes == nil {
		return CgroupThreshold{}, errors.New("compute the notice of " + string(t.Signal) + ": the summary lacks the memory's usage, working set or available bytes")
	}
	droppable := int64(*m.UsageBytes - *m.WorkingSetBytes)
	capacity := int64(*m.AvailableBytes + *m.WorkingSetBytes)
	figure := resource.NewQuantity(capacity, resource.BinarySI)
	figure.Sub(t.Value.amountOf(capacity))
	n.WorkingSet = figure.Value()
	figure.Add(*resource.NewQuantity(droppable, resource.BinarySI))
	n.Bytes = figure.Value()
	return n, nil
}
