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
//
// The files: disk.go has the options and results; scanner.go scans all pods, in the background
// and on Refresh; podscan.go measures one pod; layers.go finds the writable layers of containers;
// walk.go counts the files of a tree, at a bounded share of time.
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

// Options configure a Scanner.
type Options struct {
	// RootFS is where the host's root directory is mounted. KubeletRoot, PodLogs and ContainerRoot
	// are paths on the host, looked up below it. Default: "/".
	RootFS string
	// Proc is where the host's /proc is mounted. Default: "/proc".
	Proc string
	// KubeletRoot is the kubelet's directory. Default: "/var/lib/kubelet".
	KubeletRoot string
	// PodLogs is where the kubelet has the logs of pods. Default: "/var/log/pods".
	PodLogs string
	// ContainerRoot is the runtime's directory, in which writable layers lie: what a process says
	// to be one elsewhere is not believed. Default: "/var/lib/containerd".
	ContainerRoot string
	// Containers names the containers of a pod that run, by their IDs without a scheme, and says
	// whether it knows the pod at all. Those that have ended must not be among them, since one that
	// cannot be found makes the pod's sum unknown. A static pod's UID is the hash of its manifest, as in
	// the names of its cgroup and directory. Nil knows no pod; the sum of such a pod is
	// not known, because nothing tells its sandbox from its containers.
	Containers func(metric.PodUID) (map[string]string, bool)

	// Period is from the start of one background scan to that of the next. Default: 1m, as the
	// kubelet measures volumes.
	Period time.Duration
	// Share is the part of time that a background scan may be at work; pods that take long have one
	// of their own. Default: 0.25.
	Share float64
	// PodTimeout bounds the look at one pod in the background. One that takes longer is looked at beside the
	// others from then on, for at most SlowTimeout. Defaults: 10s, 10m.
	PodTimeout, SlowTimeout time.Duration
	// RefreshTimeout bounds a Refresh in all. Default: 2s.
	RefreshTimeout time.Duration
	// Done is told of each background scan, of one at a time, for logs and metrics; nil for nobody.
	Done func(ScanResult)
}

// ScanResult is how a background scan went.
type ScanResult struct {
	At       time.Time // when it began
	Took     time.Duration
	Slow     bool  // it was of pods that take long
	Pods     int   // looked at
	Unknown  int   // of these, the ones without a sum
	Inodes   int64 // counted
	Problems error // joined; beyond the first few they are only counted
}

func (o Options) withDefaults() (Options, error) {
	o.RootFS = cmp.Or(o.RootFS, "/")
	o.Proc = cmp.Or(o.Proc, "/proc")
	o.KubeletRoot = cmp.Or(o.KubeletRoot, "/var/lib/kubelet")
	o.PodLogs = cmp.Or(o.PodLogs, "/var/log/pods")
	o.ContainerRoot = cmp.Or(o.ContainerRoot, "/var/lib/containerd")
	o.Period = cmp.Or(o.Period, time.Minute)
	o.Share = cmp.Or(o.Share, 0.25)
	o.PodTimeout = cmp.Or(o.PodTimeout, 10*time.Second)
	o.SlowTimeout = cmp.Or(o.SlowTimeout, 10*time.Minute)
	o.RefreshTimeout = cmp.Or(o.RefreshTimeout, 2*time.Second)
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
	if !(o.Share > 0 && o.Share <= 1) {
		errs = append(errs, fmt.Errorf("the share is %v: it must be above 0 and at most 1", o.Share))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"Period", o.Period}, {"PodTimeout", o.PodTimeout}, {"SlowTimeout", o.SlowTimeout}, {"RefreshTimeout", o.RefreshTimeout}} {
		if d.d < 0 {
			errs = append(errs, fmt.Errorf("%s is %v: it must be positive", d.name, d.d))
		}
	}
	return o, errors.Join(errs...)
}

// hostPath is where a path of the host is found.
func (o *Options) hostPath(p ...string) string { return path.Join(append([]string{o.RootFS}, p...)...) }
