package eviction

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Kill.Signal of evictions for limits of local storage, as the kubelet counts them.
const (
	EmptyDirLimit  = "emptydirfs.limit"
	PodLimit       = "ephemeralpodfs.limit"
	ContainerLimit = "ephemeralcontainerfs.limit"
)

// ExceededLimit is a limit of local storage that a pod exceeds.
type ExceededLimit struct {
	Pod PodRef
	// Kind is EmptyDirLimit, PodLimit or ContainerLimit. Name is the name of the volume or the
	// container.
	Kind, Name  string
	Used, Limit resource.Quantity
	// Critical or Skipped is why the pod is not evicted. Blocked is the reason for SkipBlocked.
	Critical Critical
	Skipped  SkipReason
	Blocked  string

	message string
	pod     *corev1.Pod
}

// exceededLimits returns the pods that exceed a limit, in the given order, each with the first
// limit that it exceeds. They are all evicted at once, whether or not the node is low on a
// resource.
func exceededLimits(pods []*corev1.Pod, statsByUID map[string]*stats.PodStats, l Layout) []ExceededLimit {
	var list []ExceededLimit
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

func emptyDirExceeds(pod *corev1.Pod, s *stats.PodStats) (ExceededLimit, bool) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0 {
			continue
		}
		var n *uint64 // of entries with the same name the last one counts
		for k := range s.VolumeStats {
			if s.VolumeStats[k].Name == v.Name {
				n = s.VolumeStats[k].UsedBytes
			}
		}
		used, limit := byteQuantity(n), v.EmptyDir.SizeLimit.DeepCopy()
		if n != nil && used.Cmp(limit) > 0 {
			return ExceededLimit{Kind: EmptyDirLimit, Name: v.Name, Used: used, Limit: limit,
				message: fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())}, true
		}
	}
	return ExceededLimit{}, false
}

func podExceeds(pod *corev1.Pod, s *stats.PodStats) (ExceededLimit, bool) {
	limit, ok := limitOf(pod, corev1.ResourceEphemeralStorage)
	if !ok || s.EphemeralStorage == nil {
		return ExceededLimit{}, false
	}
	used := byteQuantity(s.EphemeralStorage.UsedBytes)
	if used.Cmp(limit) <= 0 {
		return ExceededLimit{}, false
	}
	return ExceededLimit{Kind: PodLimit, Used: used, Limit: limit,
		message: fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())}, true
}

func containerExceeds(pod *corev1.Pod, s *stats.PodStats, rootfs bool) (ExceededLimit, bool) {
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
			return ExceededLimit{Kind: ContainerLimit, Name: c.Name, Used: used, Limit: limit,
				message: fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())}, true
		}
	}
	return ExceededLimit{}, false
}

// storageLimit returns the limit of a regular container; a limit of zero is none.
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
		return byteQuantity(nil)
	}
	return byteQuantity(fs.UsedBytes)
}

// requestOf returns what a pod requests of a resource, or zero. If the pod has requests or limits at
// the pod level, of any resource, the containers' requests do not count.
func requestOf(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var request resource.Quantity
	if hasPodLevelResources(pod) {
		if q, ok := pod.Spec.Resources.Requests[name]; ok && isPodLevelResource(name) {
			request = q.DeepCopy()
		}
	} else if t := sumContainers(pod, name, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }); t.set {
		request = t.sum
	}
	addOverhead(pod, name, &request)
	return request
}

// limitOf returns the sum of the limits that a pod's containers have; false if none has one. Limits
// at the pod level do not count, since Kubernetes does not support them for storage.
func limitOf(pod *corev1.Pod, name corev1.ResourceName) (resource.Quantity, bool) {
	t := sumContainers(pod, name, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	addOverhead(pod, name, &t.sum)
	return t.sum, t.set
}

func addOverhead(pod *corev1.Pod, name corev1.ResourceName, q *resource.Quantity) {
	if overhead, ok := pod.Spec.Overhead[name]; ok && !q.IsZero() {
		q.Add(overhead)
	}
}

// hasPodLevelResources reports whether a pod has requests or limits at the pod level.
func hasPodLevelResources(pod *corev1.Pod) bool {
	r := pod.Spec.Resources
	if r == nil {
		return false
	}
	for _, list := range [...]corev1.ResourceList{r.Requests, r.Limits} {
		for name := range list {
			if isPodLevelResource(name) {
				return true
			}
		}
	}
	return false
}

// isPodLevelResource reports whether Kubernetes supports the resource at the pod level.
func isPodLevelResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// optionalSum is a sum of quantities. set is false if nothing was added, which differs from a sum
// of zero. The sum has the format of the first quantity.
type optionalSum struct {
	sum resource.Quantity
	set bool
}

func (t *optionalSum) addFrom(list corev1.ResourceList, name corev1.ResourceName) {
	if q, ok := list[name]; ok {
		t.addQuantity(q)
	}
}

func (t *optionalSum) addQuantity(q resource.Quantity) {
	if !t.set {
		t.sum, t.set = q.DeepCopy(), true
		return
	}
	t.sum.Add(q)
}

func (t *optionalSum) raiseTo(u optionalSum) {
	if u.set && (!t.set || u.sum.Cmp(t.sum) > 0) {
		t.sum, t.set = u.sum.DeepCopy(), true
	}
}

// sumContainers returns what containers need together. It is the larger of two figures: the sum
// of the regular containers and the restartable init containers, which run at once; and the most
// that another init container needs, with the restartable ones started before it.
func sumContainers(pod *corev1.Pod, name corev1.ResourceName, of func(*corev1.Container) corev1.ResourceList) optionalSum {
	var running, beside, starting optionalSum
	for i := range pod.Spec.Containers {
		running.addFrom(of(&pod.Spec.Containers[i]), name)
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running.addFrom(of(c), name)
			beside.addFrom(of(c), name)
			starting.raiseTo(beside)
			continue
		}
		var alone optionalSum
		alone.addFrom(of(c), name)
		if beside.set {
			alone.addQuantity(beside.sum)
		}
		starting.raiseTo(alone)
	}
	running.raiseTo(starting)
	return running
}
