package guard

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// withAllocation returns the pod with the requests that the kubelet has allocated to it, by which the
// kubelet evicts. While a resize in place is pending, they differ from those of the specification. It
// returns a copy if they do, else the pod itself. Limits of local storage cannot be resized.
func withAllocation(pod *corev1.Pod) *corev1.Pod {
	after := pod
	changed := func() *corev1.PodSpec {
		if after == pod {
			after = pod.DeepCopy()
		}
		return &after.Spec
	}
	for i := range pod.Spec.Containers {
		if requests, differ := allocated(&pod.Spec.Containers[i], pod.Status.ContainerStatuses); differ {
			changed().Containers[i].Resources.Requests = requests
		}
	}
	for i := range pod.Spec.InitContainers {
		if requests, differ := allocated(&pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses); differ {
			changed().InitContainers[i].Resources.Requests = requests
		}
	}
	if pod.Spec.Resources == nil {
		return after
	}
	for name, request := range pod.Spec.Resources.Requests {
		if all, ok := pod.Status.AllocatedResources[name]; ok {
			all = all.DeepCopy()
			if all.Sub(pod.Spec.Overhead[name]); all.Cmp(request) != 0 {
				changed().Resources.Requests[name] = all
			}
		}
	}
	return after
}

// allocated returns the requests of a container with the amounts of its status, and whether they differ from those of
// its specification. A kubelet that reports no allocation, or an empty one, has it in Resources.
func allocated(c *corev1.Container, statuses []corev1.ContainerStatus) (requests corev1.ResourceList, differ bool) {
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
	if i < 0 {
		return nil, false
	}
	allocation := statuses[i].AllocatedResources
	if allocation == nil && statuses[i].Resources != nil {
		allocation = statuses[i].Resources.Requests
	}
	if allocation == nil {
		return nil, false
	}
	requests = corev1.ResourceList{}
	maps.Copy(requests, c.Resources.Requests)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} { // no other can be resized
		amount, ok := allocation[name]
		request, asked := requests[name]
		switch {
		case ok == asked && amount.Cmp(request) == 0:
			continue
		case ok:
			requests[name] = amount
		default:
			delete(requests, name)
		}
		differ = true
	}
	return requests, differ
}
