package app

import (
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
)

// podNames finds the pods of this node by the UIDs that their cgroups carry. Its methods
// may be called by several goroutines.
type podNames struct {
	pods func() []*corev1.Pod
	last atomic.Pointer[podIndex]
}

// podIndex is made anew when there are other pods: far less often than it is used.
type podIndex struct {
	of  []*corev1.Pod
	all map[metric.PodUID]*corev1.Pod
}

// pod returns the pod whose cgroup carries uid; nil if there is none.
func (n *podNames) pod(uid metric.PodUID) *corev1.Pod {
	pods, index := n.pods(), n.last.Load()
	if len(pods) == 0 {
		return nil
	}
	if index == nil || len(index.of) != len(pods) || &index.of[0] != &pods[0] {
		index = &podIndex{of: pods, all: make(map[metric.PodUID]*corev1.Pod, len(pods))}
		for _, p := range pods {
			index.all[metric.PodUID(p.UID)] = p
			if hash := p.Annotations[informer.ConfigHashAnnotation]; hash != "" {
				index.all[metric.PodUID(hash)] = p
			}
		}
		n.last.Store(index)
	}
	return index.all[uid]
}

// running returns the names of a pod's containers that run, by their IDs, and whether
// there is such a pod.
func (n *podNames) running(uid metric.PodUID) (map[string]string, bool) {
	p := n.pod(uid)
	if p == nil {
		return nil, false
	}
	names := map[string]string{}
	for _, list := range [][]corev1.ContainerStatus{
		p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses,
	} {
		for i := range list {
			if c := &list[i]; c.State.Running != nil {
				_, id, _ := strings.Cut(c.ContainerID, "://")
				names[id] = c.Name
			}
		}
	}
	return names, true
}
