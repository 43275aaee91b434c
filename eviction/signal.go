package eviction

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Signal is something a node may run out of.
type Signal string

// The kubelet's signals. Each is how much there is left: bytes, inodes, process ids.
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

// Signals are the kubelet's, in the order in which they are acted on, but that every
// hard threshold goes before the soft ones. The pressure signals of memory come after the
// two of memory, those of io and cpu at the end.
func Signals() []Signal {
	return []Signal{
		MemoryAvailable, AllocatableMemoryAvailable,
		NodeFsAvailable, NodeFsInodesFree,
		ImageFsAvailable, ImageFsInodesFree,
		ContainerFsAvailable, ContainerFsInodesFree,
		PIDAvailable,
	}
}

// What a node is low on, as the kubelet calls it in messages and events.
const (
	resourceMemory = string(corev1.ResourceMemory)
	resourceDisk   = string(corev1.ResourceEphemeralStorage)
	resourceCPU    = string(corev1.ResourceCPU)
	resourceInodes = "inodes"
	resourcePIDs   = "pids"
	resourceIO     = "io"
)

// Conditions that the kubelet lacks: tasks of the node wait for a processor, or for a disk.
const (
	NodeCPUPressure corev1.NodeConditionType = "CPUPressure"
	NodeIOPressure  corev1.NodeConditionType = "IOPressure"
)

// trait is what a signal stands for.
type trait struct {
	resource  string
	condition corev1.NodeConditionType
	rank      int // the place in the order of action; memory is below memoryFirst
}

// memoryFirst parts memory's ranks from all others: those are acted on first, hard or soft.
const memoryFirst = 10

// trait returns what the signal stands for; the zero trait if it is none.
func (s Signal) trait() trait {
	switch s {
	case MemoryAvailable:
		return trait{resourceMemory, corev1.NodeMemoryPressure, 0}
	case AllocatableMemoryAvailable:
		return trait{resourceMemory, corev1.NodeMemoryPressure, 1}
	case NodeFsAvailable:
		return trait{resourceDisk, corev1.NodeDiskPressure, 11}
	case NodeFsInodesFree:
		return trait{resourceInodes, corev1.NodeDiskPressure, 12}
	case ImageFsAvailable:
		return trait{resourceDisk, corev1.NodeDiskPressure, 13}
	case ImageFsInodesFree:
		return trait{resourceInodes, corev1.NodeDiskPressure, 14}
	case ContainerFsAvailable:
		return trait{resourceDisk, corev1.NodeDiskPressure, 15}
	case ContainerFsInodesFree:
		return trait{resourceInodes, corev1.NodeDiskPressure, 16}
	case PIDAvailable:
		return trait{resourcePIDs, corev1.NodePIDPressure, 17}
	}
	of, _, _, ok := s.stall()
	if !ok {
		return trait{}
	}
	switch of {
	case "memory":
		return trait{resourceMemory, corev1.NodeMemoryPressure, 2}
	case "cpu":
		return trait{resourceCPU, NodeCPUPressure, 18}
	default:
		return trait{resourceIO, NodeIOPressure, 19}
	}
}

// stall takes a pressure signal apart: memory.pressure.some.avg10 is of memory, some,
// avg10.
func (s Signal) stall() (of, share, window string, ok bool) {
	parts := strings.Split(string(s), ".")
	if len(parts) != 4 || parts[1] != "pressure" {
		return "", "", "", false
	}
	of, share, window = parts[0], parts[2], parts[3]
	ok = (of == "memory" || of == "cpu" || of == "io") &&
		(share == "some" || share == "full") &&
		(window == "avg10" || window == "avg60" || window == "avg300")
	return of, share, window, ok
}

// Pressure says whether the signal is one of the kernel's pressure stall figures: then
// more is worse.
func (s Signal) Pressure() bool {
	_, _, _, ok := s.stall()
	return ok
}

// Resource is what a node is low on by this signal, as the kubelet names it: memory,
// ephemeral-storage, inodes, pids; cpu and io for weir's own. Empty for an unknown one.
func (s Signal) Resource() string {
	return s.trait().resource
}

// Condition is the node condition the signal leads to.
func (s Signal) Condition() corev1.NodeConditionType {
	return s.trait().condition
}

func (s Signal) inBytes() bool {
	r := s.Resource()
	return r == resourceMemory || r == resourceDisk
}
