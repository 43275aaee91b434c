package guard

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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

// allocated returns the requests that a container's status has, and whether they differ from those of
// its specification. A kubelet that reports no allocation, or an empty one, has it in Resources.
func allocated(c *corev1.Container, statuses []corev1.ContainerStatus) (requests corev1.ResourceList, differ bool) {
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
	if i < 0 {
		return nil, false
	}
	s := &statuses[i]
	switch {
	case s.AllocatedResources != nil:
		requests = s.AllocatedResources
	case s.Resources != nil:
		requests = s.Resources.Requests
	default:
		return nil, false
	}
	return requests, !equality.Semantic.DeepEqual(requests, c.Resources.Requests)
}
