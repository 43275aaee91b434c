// Package vitals reads the figures for eviction decisions at the time of the call, in about a
// millisecond: memory, file systems, process IDs and pressure of the node, and each pod's usage of
// them.
//
// # What it returns
//
// The figures are those of the kubelet's summary, with the same rules. A working set is the memory
// in use minus the inactive file pages. The available memory of the node is MemTotal minus its
// working set. The available memory of a cgroup is its limit minus its working set. The kubelet's
// figures come from a cache and are up to ten seconds old. Here each figure is read during the
// call, and has the time of its read; at the depth Memory that is true of memory.
//
// Absent is different from zero. A figure that could not be read is nil, and Read returns its
// error. A cgroup that was removed while it was read is omitted. A figure that the kernel does not
// have (pressure, with some kernels) is nil without an error.
//
// # Where it reads
//
// Pods are found in the hierarchy that counts their memory. It is that of the memory controller of
// version 1 if there is one, else version 2. Each Read lists all directories of pods, so the first
// Read after a pod's cgroup was created includes it.
//
// A pod can have two cgroups if its QoS class changed and the old cgroup was not removed. The one
// with processes belongs to the pod. A cgroup without processes is ignored, even if memory is still
// charged to it. If several have processes, the only one with a container that Options.Pod names
// belongs to the pod. Otherwise the usage of the pod is not known: it is in the summary without
// figures, and Read returns an error. Figures of several cgroups are never added.
//
// # What differs from the kubelet's summary
//
// Processes are those of all cgroups in the pod. The kubelet does not count processes in cgroups
// that a container created inside its own. The sandbox's processes do not count if Options.Pod
// names the pod's containers; the one without a name is then the sandbox. Pressure totals are in
// microseconds, as from the kubelet, although the comment on its type has another unit. From the
// second read on a pod has a CPU rate, which is the rate since an earlier read. Networks, swap,
// page faults, start times and the usage of images are not read.
//
// On version 1 the kernel does not list processes of other PID namespaces. If it counts tasks but
// lists no process, their number is not known; the reader then needs the host's PID namespace. It
// also needs it for the limit of process IDs, because since Linux 6.14 each namespace has its own
// kernel.pid_max.
//
// # Files
//
//	vitals.go  this comment, options, depths
//	reader.go  the Reader: which hierarchies it reads, one Read
//	node.go    the node: memory, tasks, file systems
//	pods.go    pods: their cgroups, the choice between two of them, their figures
//	cgroup.go  one cgroup with its open files; the kubepods cgroups
//	usage.go   memory, CPU time and pressure of a cgroup
//	files.go   reads files that stay open between reads, and lists directories
package vitals

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/disk"
)

// Depth is how much of the machine is read.
type Depth uint8

// The depths.
const (
	Node Depth = iota // only the node
	// Memory is also the memory of each pod's cgroup, without what is left of its limit. It costs
	// half of Pods (BenchmarkRead). Processes and CPU time are those of the last read at a larger
	// depth, or of this one for a pod that was not read before. If there are several kubepods cgroups,
	// Memory is read as Pods.
	Memory
	Pods       // and each pod's cgroup
	Containers // and each container's cgroup and, with version 2, the pressure of pods and containers
)

// Disks returns the disk usage of pods. *disk.Scanner implements it.
type Disks interface {
	Pod(uid metric.PodUID) (*disk.PodUsage, bool)
}

// PodNames has the names of a pod, which its cgroup does not have.
type PodNames struct {
	Namespace, Name string
	// UID is the UID for the summary. The API server has another UID for a static pod than the path of
	// its cgroup. Empty means the one in the path.
	UID metric.PodUID
	// Containers are the names of containers, by ID without a scheme. If there are any, the only
	// container without a name is the sandbox.
	Containers map[string]string
}

// Options configures a Reader.
type Options struct {
	// Node is the node's name in the summary.
	Node string
	// Mount is the directory in which the cgroup hierarchies are mounted. Default: from mountinfo.
	// Proc is the proc file system. Default: "/proc".
	Mount, Proc string
	// KubeletRoot is a directory on nodefs. Default: /var/lib/kubelet, or / if that does not exist.
	// ContainerRoot is a directory on the file system of images. Default: /var/lib/containerd, or /.
	// If it has the directory of containerd's overlay snapshotter, that directory is used, as in the
	// kubelet. For another snapshotter, set its directory.
	KubeletRoot, ContainerRoot string
	// LayerRoot is a directory on the file system of writable layers. Set it if that differs from the
	// file system of images, as in CRI-O with an imagestore. Default: ContainerRoot.
	LayerRoot string
	// Disks returns the disk usage of pods; nil if it is not known.
	Disks Disks
	// Pod returns the names of a pod; false if there are none. uid is the UID in the path of its
	// cgroup.
	Pod func(uid metric.PodUID) (PodNames, bool)
}
