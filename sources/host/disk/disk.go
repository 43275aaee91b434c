// Package disk measures the disk usage of each pod: the writable layers of its containers, their
// logs and its volumes, in bytes and inodes. It does not use the socket of the container
// runtime, because that socket gives root access.
//
// A Scanner scans all pods every minute, like the kubelet, with a limited share of one core.
// Refresh scans them at once. Pods with very many files are scanned separately, so they do not
// delay the others. The Scanner counts as the kubelet does: it counts allocated blocks (a hole in a
// file counts nothing), it counts a file with several names once, it ignores other devices, and it
// follows no links. The ephemeral storage of a pod is the sum of:
//
//   - emptyDirs on disk and config maps, below KubeletRoot/pods/UID/volumes. An emptyDir in memory
//     is a separate tmpfs: it is in Volumes, but not in the sum.
//   - The writable layer and the logs, including rotated logs, of each running container. Those of
//     containers that have ended, and the layer of the sandbox, are not in the sum.
//   - The logs of the pod itself, and its etc-hosts.
//
// The writable layer is the upper directory of the overlay that is a container's root. If the
// runtime mounts it below the container's ID, as containerd does, it is in the host's mount table;
// otherwise it is in the mount table of the container's processes. Processes are found by their
// cgroups. This needs the host's /proc, but not its PID namespace.
//
// A part that cannot be measured (another snapshotter, an unreadable directory, too many files to
// count in time) is nil, and so is the pod's sum. Package eviction adds the parts that are on a file
// system itself, and a part that is nil counts nothing there, as in the kubelet.
//
// The process must be able to read KubeletRoot, PodLogs and ContainerRoot, including later mounts
// (mountPropagation HostToContainer). It needs CAP_DAC_READ_SEARCH for directories that only their
// owners can read.
//
// The files: disk.go has the options and results; scanner.go scans all pods, in the background and
// on Refresh; podscan.go measures one pod; layers.go finds the writable layers of containers;
// walk.go counts the files of a tree, with a limited share of time.
package disk

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// PodUsage is the disk usage of a pod. The Scanner does not change it after returning it.
type PodUsage struct {
	// At is the end of the pod's scan.
	At time.Time
	// Containers are the running containers by name. If Options.Containers does not know the pod, the
	// keys are IDs, and the sandbox is included.
	Containers map[string]ContainerUsage
	// Volumes are the volumes with files that the kubelet counts: emptyDirs (also in memory), config
	// maps, secrets, projected volumes and the downward API.
	Volumes []stats.VolumeStats
	// Ephemeral is the ephemeral storage, added up as the kubelet does; nil if a part of it could not
	// be read. Its capacity is that of the file system of KubeletRoot.
	Ephemeral *stats.FsStats
}

// ContainerUsage is the disk usage of a container. A field is nil if it is not known.
type ContainerUsage struct{ Rootfs, Logs *stats.FsStats }

// Options configures a Scanner.
type Options struct {
	// RootFS is where the host's root directory is mounted. KubeletRoot, PodLogs and ContainerRoot are
	// paths on the host and are read below RootFS. Default: "/".
	RootFS string
	// Proc is where the host's /proc is mounted. Default: "/proc".
	Proc string
	// KubeletRoot is the kubelet's directory. Default: "/var/lib/kubelet".
	KubeletRoot string
	// PodLogs is the kubelet's directory for logs of pods. Default: "/var/log/pods".
	PodLogs string
	// ContainerRoot is the runtime's directory with the writable layers. A layer elsewhere in
	// a process's mount table is an error. Default: "/var/lib/containerd".
	ContainerRoot string
	// Containers returns the names of a pod's running containers by ID without a scheme, and whether
	// the pod is known. It must not return containers that have ended, because a container that is not
	// found makes the sum of the pod unknown. A static pod's UID is the hash of its manifest, as in
	// the names of its cgroup and directory. If Containers is nil, no pod is known. The sum of an
	// unknown pod is nil, because its sandbox cannot be distinguished from its containers.
	Containers func(metric.PodUID) (map[string]string, bool)

	// Done is called with the result of each background scan, for logs and metrics. Calls do not
	// overlap. It may be nil.
	Done func(ScanResult)
}

// ScanResult is the result of a background scan.
type ScanResult struct {
	At       time.Time // the start of the scan
	Took     time.Duration
	Slow     bool  // whether it scanned the slow pods or the others
	Pods     int   // the number of scanned pods
	Unknown  int   // the number of those pods that have no sum
	Inodes   int64 // the number of counted inodes
	Problems error // the joined errors; only the first few in full
}

func (o Options) withDefaults() (Options, error) {
	o.RootFS = cmp.Or(o.RootFS, "/")
	o.Proc = cmp.Or(o.Proc, "/proc")
	o.KubeletRoot = cmp.Or(o.KubeletRoot, "/var/lib/kubelet")
	o.PodLogs = cmp.Or(o.PodLogs, "/var/log/pods")
	o.ContainerRoot = cmp.Or(o.ContainerRoot, "/var/lib/containerd")
	if o.Containers == nil {
		o.Containers = func(metric.PodUID) (map[string]string, bool) { return nil, false }
	}
	if o.Done == nil {
		o.Done = func(ScanResult) {}
	}
	var errs []error
	for _, p := range []struct{ name, path string }{
		{"RootFS", o.RootFS}, {"Proc", o.Proc}, {"KubeletRoot", o.KubeletRoot},
		{"PodLogs", o.PodLogs}, {"ContainerRoot", o.ContainerRoot},
	} {
		if !path.IsAbs(p.path) {
			errs = append(errs, fmt.Errorf("%s is %q: it must be an absolute path", p.name, p.path))
		}
	}
	return o, errors.Join(errs...)
}

// hostPath returns the path at which a path of the host is read.
func (o *Options) hostPath(p ...string) string { return path.Join(append([]string{o.RootFS}, p...)...) }
