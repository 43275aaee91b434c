package eviction

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/cluster"
)

// The values of Kill.Signal for limits of local storage, which are the kubelet's names.
const (
	EmptyDirLimit  = "emptydirfs.limit"
	PodLimit       = "ephemeralpodfs.limit"
	ContainerLimit = "ephemeralcontainerfs.limit"
)

// ExceededLimit is a limit of local storage that a pod exceeds.
type ExceededLimit struct {
	Pod PodIdentity
	// Kind is EmptyDirLimit, PodLimit or ContainerLimit. Name is the name of the volume or the
	// container.
	Kind, Name  string
	Used, Limit resource.Quantity
	// Skipped is the reason why the pod is not evicted. SkipMessage is the reason for people.
	Skipped     SkipReason
	SkipMessage string

	message string
	pod     *corev1.Pod
}

// exceededLimits returns the pods that exceed a limit, in the given order, each with the first
// limit that it exceeds. They are all evicted at once, even if the node is not low on a resource.
func exceededLimits(pods []*corev1.Pod, statsByUID map[string]*stats.PodStats, l DiskLayout, r Rules) []ExceededLimit {
	var list []ExceededLimit
	for _, pod := range pods {
		s := statsByUID[string(pod.UID)]
		if s == nil {
			continue
		}
		if e := cmp.Or(emptyDirExceeds(pod, s, r), podExceeds(pod, s), containerExceeds(pod, s, !l.DedicatedImageFs, r)); e != nil {
			e.pod, e.Pod = pod, refOf(pod)
			list = append(list, *e)
		}
	}
	return list
}

func emptyDirExceeds(pod *corev1.Pod, s *stats.PodStats, r Rules) *ExceededLimit {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		if r.IgnoreMemoryVolumes && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			continue
		}
		var n *uint64 // if several entries have the same name, the last one counts
		for k := range s.VolumeStats {
			if s.VolumeStats[k].Name == v.Name {
				n = s.VolumeStats[k].UsedBytes
			}
		}
		used, limit := byteQuantity(n), v.EmptyDir.SizeLimit.DeepCopy()
		if n != nil && used.Cmp(limit) > 0 {
			return &ExceededLimit{Kind: EmptyDirLimit, Name: v.Name, Used: used, Limit: limit,
				message: fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())}
		}
	}
	return nil
}

func podExceeds(pod *corev1.Pod, s *stats.PodStats) *ExceededLimit {
	limit, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	if !ok || s.EphemeralStorage == nil {
		return nil
	}
	used := byteQuantity(s.EphemeralStorage.UsedBytes)
	if used.Cmp(limit) <= 0 {
		return nil
	}
	return &ExceededLimit{Kind: PodLimit, Used: used, Limit: limit,
		message: fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())}
}

func containerExceeds(pod *corev1.Pod, s *stats.PodStats, rootfs bool, r Rules) *ExceededLimit {
	for i := range s.Containers {
		c := &s.Containers[i]
		limit := storageLimit(pod, c.Name, r)
		if limit.Value() == 0 {
			continue // it has no limit
		}
		used := usedBytes(c.Logs)
		if rootfs {
			used.Add(usedBytes(c.Rootfs))
		}
		if limit.Cmp(used) < 0 {
			return &ExceededLimit{Kind: ContainerLimit, Name: c.Name, Used: used, Limit: limit,
				message: fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())}
		}
	}
	return nil
}

// storageLimit returns the limit of a regular or restartable init container; zero if it has none.
func storageLimit(pod *corev1.Pod, name string, r Rules) resource.Quantity {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c.Resources.Limits[corev1.ResourceEphemeralStorage].DeepCopy()
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == name && cluster.InitRole(c.RestartPolicy) == cluster.Sidecar && !r.IgnoreSidecarLimits {
			return c.Resources.Limits[corev1.ResourceEphemeralStorage].DeepCopy()
		}
	}
	return resource.Quantity{}
}

func usedBytes(fs *stats.FsStats) resource.Quantity {
	if fs == nil {
		return byteQuantity(nil)
	}
	return byteQuantity(fs.UsedBytes)
}

// requestOf returns a pod's request for a resource, as the kubelet computes it; zero if there is
// none. If the pod has requests or limits at the pod level, for any resource, the requests of the
// containers do not count.
func requestOf(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	request := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		SkipContainerLevelResources: resourcehelper.IsPodLevelResourcesSet(pod), ExcludeOverhead: true,
	})[name].DeepCopy()
	if overhead, ok := pod.Spec.Overhead[name]; ok && !request.IsZero() {
		request.Add(overhead)
	}
	return request
}
