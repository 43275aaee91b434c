package eviction

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// parts are what of a pod lies on a file system.
type parts struct{ rootfs, logs, volumes bool }

// partsOn is what the pods are ranked by for a disk signal. Image layers belong to no pod
// in particular and are not measured: with a split layout nothing is left for imagefs.
func (l Layout) partsOn(s Signal) parts {
	image := s == ImageFsAvailable || s == ImageFsInodesFree
	node := s == NodeFsAvailable || s == NodeFsInodesFree
	switch {
	case l.separate():
		return parts{rootfs: !node, logs: node, volumes: node}
	case l.split():
		return parts{rootfs: !image, logs: !image, volumes: !image}
	default:
		return parts{true, true, true}
	}
}

// use is how much a pod uses of something.
type use struct {
	sum   resource.Quantity
	doubt string // why it is missing or cannot be right
	known bool   // at least one figure was there
}

// add adds a figure as the kubelet reads it: none is zero, and one too large for 64 bits
// with a sign is negative.
func (u *use) add(n *uint64, what string) {
	if n == nil {
		return
	}
	u.known = true
	if *n > math.MaxInt64 && u.doubt == "" {
		u.doubt = fmt.Sprintf("%s of %d is more than there can be", what, *n)
	}
	u.sum.Add(*resource.NewQuantity(int64(*n), resource.BinarySI))
}

// done fills in the doubt about what is missing.
func (u *use) done(what string) {
	if !u.known && u.doubt == "" {
		u.doubt = "its statistics have no " + what
	}
}

func (u *use) at(t, now time.Time) {
	if u.doubt == "" {
		u.doubt = ahead(t, now)
	}
}

func memoryUse(s *stats.PodStats, now time.Time) (u use) {
	if m := s.Memory; m != nil {
		u.add(m.WorkingSetBytes, "a working set")
		u.at(m.Time.Time, now)
	}
	u.done("working set")
	return u
}

func processUse(s *stats.PodStats) (u use) {
	if p := s.ProcessStats; p != nil {
		u.add(p.ProcessCount, "a number of processes")
	}
	u.done("number of processes")
	return u
}

func cpuUse(s *stats.PodStats, now time.Time) (u use) {
	if c := s.CPU; c != nil {
		u.at(c.Time.Time, now)
		if n := c.UsageNanoCores; n != nil {
			u.known = true
			if *n > math.MaxInt64 {
				u.doubt = fmt.Sprintf("a use of %d nanocores is more than there can be", *n)
			}
			u.sum = *resource.NewScaledQuantity(int64(*n), resource.Nano)
		}
	}
	u.done("use of processors")
	return u
}

// diskUse is what a pod uses of a file system: bytes, or inodes.
func diskUse(pod *corev1.Pod, s *stats.PodStats, on parts, inodes bool) (u use) {
	what := "used bytes"
	if inodes {
		what = "used inodes"
	}
	add := func(fs *stats.FsStats) {
		switch {
		case fs == nil:
		case inodes:
			u.add(fs.InodesUsed, "a number of inodes")
		default:
			u.add(fs.UsedBytes, "a number of bytes")
		}
	}
	for i := range s.Containers {
		if on.rootfs {
			add(s.Containers[i].Rootfs)
		}
		if on.logs {
			add(s.Containers[i].Logs)
		}
	}
	if on.volumes {
		for i := range pod.Spec.Volumes {
			if !local(&pod.Spec.Volumes[i]) {
				continue
			}
			for k := range s.VolumeStats {
				if s.VolumeStats[k].Name == pod.Spec.Volumes[i].Name {
					add(&s.VolumeStats[k].FsStats)
					break
				}
			}
		}
	}
	if on != (parts{}) {
		u.done(what)
	}
	return u
}

// local says whether a volume lies on the node's file system.
func local(v *corev1.Volume) bool {
	return v.HostPath != nil || v.GitRepo != nil || v.ConfigMap != nil ||
		v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
}
