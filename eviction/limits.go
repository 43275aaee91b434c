package eviction

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// What evictions for local storage limits are counted under.
const (
	EmptyDirLimit  = "emptydirfs.limit"
	PodLimit       = "ephemeralpodfs.limit"
	ContainerLimit = "ephemeralcontainerfs.limit"
)

// Exceeded is a limit of local storage that a pod exceeds.
type Exceeded struct {
	Pod PodRef
	// Kind is EmptyDirLimit, PodLimit or ContainerLimit; Name that of the volume or
	// the container.
	Kind, Name  string
	Used, Limit resource.Quantity
	// Critical is why the pod is spared all the same; or else Passed, with Blocked for
	// PassBlocked.
	Critical Critical
	Passed   Pass
	Blocked  string

	message string
	pod     *corev1.Pod
}

// exceeding returns the pods that exceed a limit, in the order given, each with the first
// limit it exceeds. They are evicted all at once, and whether or not the node is low on
// anything.
func exceeding(pods []*corev1.Pod, statsByUID map[string]*stats.PodStats, l Layout) []Exceeded {
	var list []Exceeded
	for _, pod := range pods {
		s := statsByUID[string(pod.UID)]
		if s == nil {
			continue
		}
		e, ok := emptyDirExceeds(pod, s)
		if !ok {
			e, ok = podExceeds(pod, s)
		}
		if !ok {
			e, ok = containerExceeds(pod, s, !l.DedicatedImageFs)
		}
		if ok {
			e.pod, e.Pod, e.Critical = pod, refOf(pod), CriticalOf(pod)
			list = append(list, e)
		}
	}
	return list
}

func emptyDirExceeds(pod *corev1.Pod, s *stats.PodStats) (Exceeded, bool) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		var n *uint64 // of entries with one name the last counts
		for k := range s.VolumeStats {
			if s.VolumeStats[k].Name == v.Name {
				n = s.VolumeStats[k].UsedBytes
			}
		}
		used, limit := inBytes(n), v.EmptyDir.SizeLimit.DeepCopy()
		if n != nil && used.Cmp(limit) > 0 {
			return Exceeded{Kind: EmptyDirLimit, Name: v.Name, Used: used, Limit: limit,
				message: fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())}, true
		}
	}
	return Exceeded{}, false
}

func podExceeds(pod *corev1.Pod, s *stats.PodStats) (Exceeded, bool) {
	limit, ok := limitOf(pod, corev1.ResourceEphemeralStorage)
	if !ok || s.EphemeralStorage == nil {
		return Exceeded{}, false
	}
	used := inBytes(s.EphemeralStorage.UsedBytes)
	if used.Cmp(limit) <= 0 {
		return Exceeded{}, false
	}
	return Exceeded{Kind: PodLimit, Used: used, Limit: limit,
		message: fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())}, true
}

func containerExceeds(pod *corev1.Pod, s *stats.PodStats, rootfs bool) (Exceeded, bool) {
	for i := range s.Containers {
		c := &s.Containers[i]
		limit, ok := storageLimit(pod, c.Name)
		if !ok {
			continue
		}
		used := usedBytes(c.Logs)
		if rootfs {
			used.Add(usedBytes(c.Rootfs))
		}
		if limit.Cmp(used) < 0 {
			return Exceeded{Kind: ContainerLimit, Name: c.Name, Used: used, Limit: limit,
				message: fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())}, true
		}
	}
	return Exceeded{}, false
}

// storageLimit is that of a regular container; one of zero is none.
func storageLimit(pod *corev1.Pod, name string) (resource.Quantity, bool) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			limit, ok := c.Resources.Limits[corev1.ResourceEphemeralStorage]
			return limit.DeepCopy(), ok && limit.Value() != 0
		}
	}
	return resource.Quantity{}, false
}

func usedBytes(fs *stats.FsStats) resource.Quantity {
	if fs == nil {
		return inBytes(nil)
	}
	return inBytes(fs.UsedBytes)
}
