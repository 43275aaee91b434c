// Package vitals reads what eviction decisions are made of, at the moment it is
// asked and in about a millisecond: the node's memory, file systems, process
// numbers and stalls, and what each pod has of them.
//
// # What it says
//
// The figures are those of the kubelet's summary, by the same rules: a working set is the memory
// in use less the inactive file pages, what is available to the node is MemTotal less its working
// set, and what is available to a cgroup is its limit less that. But where the kubelet takes up
// to ten seconds old figures from a cache, each one here is read when it is asked for, and its time
// says when.
//
// Absent is not zero. What could not be read is nil, and told by an error beside the rest; a cgroup that
// vanished while it was read is left out. What a kernel does not keep (stalls, on one without
// them) is nil without an error.
//
// # Where it looks
//
// Pods are looked for where their memory is counted: in the version 1 hierarchy of the memory
// controller if there is one, else in version 2. Every directory of pods is listed anew each
// time, so that a pod is in the first Read after it was made.
//
// A pod can have two cgroups: its class of service changed, and the old one stayed behind. The one with
// a process is the pod; a cgroup without any is dead, whatever memory is still charged to it. If
// more than one has a process, the only one with a container that Options.Pod names is the pod. Otherwise
// nothing tells what the pod uses: it is in the summary without figures, and the error says so. Figures of
// several are never added up.
//
// # What differs from the kubelet's summary
//
// Processes are those of all cgroups in the pod, also of cgroups a container made in its own, which the
// kubelet misses. Its sandbox's do not count, if Options.Pod names the pod's containers: the one that
// has no name is the sandbox. The times of stalls are microseconds, as from the kubelet, whatever
// the type's comment says. Use of processors is there from the second read of a pod on, for the time
// since an earlier one. Networks, swap, page faults and times of start are not read; nor what images
// take of their file system.
//
// A process in a PID namespace that is not ours to see is not listed on version 1. Where the
// kernel counts tasks and lists no process, the number is not known: run with the host's PID
// namespace. So does the limit of process numbers ask for it: since Linux 6.14 each namespace has its
// own kernel.pid_max.
//
// # Files
//
//	vitals.go  this comment, options, depths
//	reader.go  the Reader: which hierarchies it reads, one Read
//	node.go    the node: memory, pressure, tasks, file systems
//	pods.go    pods: their cgroups, which of two is the pod, their figures
//	cgroup.go  one cgroup that is kept open; the kubepods cgroups
//	usage.go   memory and CPU time of a cgroup
//	files.go   files and directories that are kept open between reads
package vitals

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/disk"
)

// Depth is how much of each pod is read.
type Depth uint8

// The depths.
const (
	Node       Depth = iota // the node alone
	Pods                    // each pod's cgroup
	Containers              // and each container's
)

// Disks knows what pods use of disks. A *disk.Scanner does.
type Disks interface {
	Pod(uid metric.PodUID) (*disk.Pod, bool)
}

// Pod is what others know of a pod whose cgroup is found.
type Pod struct {
	Namespace, Name string
	// UID is the API server's, for a static pod whose cgroup goes by another: the summary has the pod
	// by it. Empty for the cgroup's.
	UID metric.PodUID
	// Containers are the names of containers by their IDs, without a scheme. Where there are
	// any, the only container that has none is the sandbox.
	Containers map[string]string
}

// Options configure a Reader.
type Options struct {
	// Node is the name the summary carries.
	Node string
	// Mount is where the cgroup hierarchies are mounted, Proc the proc file system.
	// Defaults: what mountinfo says, "/proc".
	Mount, Proc string
	// KubeletRoot and ContainerRoot lie on nodefs and on the file system of images.
	// Defaults: /var/lib/kubelet (or / if it is not there), /var/lib/containerd (likewise).
	// If ContainerRoot has the directory of containerd's overlay snapshotter, that counts,
	// as it does to the kubelet; name the directory of another snapshotter here.
	KubeletRoot, ContainerRoot string
	// LayerRoot lies on the file system of containers' writable layers, where that is not the
	// one of images (CRI-O with an imagestore; containerd has both in one place). Default: with images.
	LayerRoot string
	// Disks adds what pods use of disks; nil for nothing known.
	Disks Disks
	// Pod names a pod by the UID its cgroup has; nil for by UID alone.
	Pod func(uid metric.PodUID) (Pod, bool)
}
