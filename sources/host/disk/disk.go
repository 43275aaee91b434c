// Package disk finds what each pod uses of the node's disks: the writable layers of its
// containers, their logs and its volumes, in bytes and inodes, without asking the
// container runtime, whose socket is root.
//
// A Scanner looks at all pods every minute, as the kubelet does, with a share of one core,
// and anew when Refresh asks. Pods with so many files that they would hold up the others are looked
// at beside them, and as often as that goes. It counts what the kubelet counts: allocated blocks (a hole in
// a file is free), a file with several names once, nothing on another device, and no link
// is followed. What the kubelet adds up to a pod's ephemeral storage:
//
//   - emptyDirs on disk and config maps, below KubeletRoot/pods/UID/volumes. One in memory is
//     a tmpfs of its own: it is in Volumes, but not in the sum.
//   - The writable layer and the logs, rotated ones too, of each container that runs. Those of
//     containers that have ended are not in it, nor is the sandbox's.
//   - Logs of the pod itself, and its etc-hosts.
//
// The writable layer is the upper directory of the overlay that is a container's root. The
// host's mount table tells it where the runtime mounts it below the container's ID, as
// containerd does; else that of the container's own processes does. Processes
// are found by their cgroups. All that takes the host's /proc, but not its PID namespace.
//
// A part that cannot be known (another snapshotter, a directory that may not be read, one with
// too many files to count in time) is nil, and so is the sum it belongs to: what is less than
// the truth would spare the wrong pod, and package eviction passes over pods it knows too
// little of.
//
// It needs to read KubeletRoot, PodLogs and ContainerRoot, with mounts that come later
// (mountPropagation HostToContainer), and as much as CAP_DAC_READ_SEARCH to see into
// directories that pods closed to others.
package disk

import (
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Pod is what a pod uses of disks. It is not changed once given out.
type Pod struct {
	// At is when the looking ended.
	At time.Time
	// Containers are those that run, by name; by ID, the sandbox included, where Options.Containers
	// does not know the pod.
	Containers map[string]Container
	// Volumes are those the kubelet measures by counting: emptyDirs, in memory too, config maps,
	// secrets and the like, by name.
	Volumes []stats.VolumeStats
	// Ephemeral is all that counts as ephemeral storage, as the kubelet adds it up; nil if a part of it
	// could not be read. Its capacity is that of the file system of KubeletRoot.
	Ephemeral *stats.FsStats
}

// Container is what a container uses of disks; nil where it is not known.
type Container struct{ Rootfs, Logs *stats.FsStats }
