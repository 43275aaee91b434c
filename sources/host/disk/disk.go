// Package disk finds what each pod uses of the node's disks: the writable layers of its
// containers, their logs and its emptyDir volumes, in bytes and inodes.
package disk

import (
	"time"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// Pod is what a pod uses of disks. It is not changed once given out.
type Pod struct {
	// At is when the looking ended.
	At time.Time
	// Containers are by name or, without one, by ID.
	Containers map[string]Container
	// Volumes are those of local storage; Local are the emptyDirs on disk.
	Volumes []stats.VolumeStats
	// Ephemeral is all that counts as ephemeral storage, as the kubelet adds it up; nil if a part of it
	// could not be read.
	Ephemeral *stats.FsStats
}

// Container is what a container uses of disks; nil where it is not known.
type Container struct{ Rootfs, Logs *stats.FsStats }

// Scanner looks at the disks.
type Scanner struct{}

// Pod returns what was found of a pod when it was last looked at.
func (s *Scanner) Pod(uid metric.PodUID) (*Pod, bool) { return nil, false }
