package eviction

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Reason is the reason in the status of an evicted pod, and of the Event about it.
const Reason = "Evicted"

// The keys of annotations of the Event of an eviction.
const (
	annotationStarved         = "starved_resource"
	annotationContainers      = "offending_containers"
	annotationContainersUsage = "offending_containers_usage"
	annotationPod             = "offending_pod"
	annotationPodUsage        = "offending_pod_usage"
)

const overRequestFormat = " %s was using %s, request is %s, has larger consumption of %s. "

// evictionMessage returns the message and annotations of a pod's eviction, with the kubelet's text.
func evictionMessage(pod *corev1.Pod, s *stats.PodStats, t *ThresholdState) (string, map[string]string) {
	resource := t.Threshold.Signal.Resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. ", resource)
	if o := t.Observation; t.Threshold.Signal.Pressure() {
		fmt.Fprintf(&b, "Threshold of %s: %v, found: %v. ", o.Signal, t.Threshold.Value.Stall, o.Stall)
	} else {
		limit := t.Limit.DeepCopy()
		fmt.Fprintf(&b, "Threshold quantity: %s, available: %s. ", limit.String(), o.Quantity(o.Available).String())
	}
	if s == nil {
		return b.String(), nil
	}
	annotations := map[string]string{}
	if resource == resourceMemory && resourcehelper.IsPodLevelResourcesSet(pod) && s.Memory != nil {
		if request, ok := pod.Spec.Resources.Requests[corev1.ResourceMemory]; ok {
			usage := byteQuantity(s.Memory.WorkingSetBytes)
			fmt.Fprintf(&b, "Pod"+overRequestFormat, pod.Name, usage.String(), request.String(), resource)
			annotations[annotationPod] = pod.Name
			annotations[annotationPodUsage] = usage.String()
		}
	}
	var names, usages []string
	for i := range s.Containers {
		c := &s.Containers[i]
		usage, ok := containerUsage(c, resource)
		if !ok {
			continue
		}
		spec := findContainer(pod, c.Name)
		if spec == nil {
			continue // an ephemeral container has no request that it could exceed
		}
		request := spec.Resources.Requests[corev1.ResourceName(resource)]
		if usage.Cmp(request) > 0 {
			fmt.Fprintf(&b, "Container"+overRequestFormat, c.Name, usage.String(), request.String(), resource)
			names, usages = append(names, c.Name), append(usages, usage.String())
		}
	}
	annotations[annotationContainers] = strings.Join(names, ",")
	annotations[annotationContainersUsage] = strings.Join(usages, ",")
	annotations[annotationStarved] = resource
	return b.String(), annotations
}

// containerUsage returns a container's usage of memory or storage. It returns false if a part of it
// is not known.
func containerUsage(c *stats.ContainerStats, what string) (resource.Quantity, bool) {
	switch what {
	case resourceMemory:
		if c.Memory != nil && c.Memory.WorkingSetBytes != nil {
			return byteQuantity(c.Memory.WorkingSetBytes), true
		}
	case resourceDisk:
		if c.Rootfs != nil && c.Rootfs.UsedBytes != nil && c.Logs != nil && c.Logs.UsedBytes != nil {
			sum := *c.Rootfs.UsedBytes + *c.Logs.UsedBytes
			return byteQuantity(&sum), true
		}
	}
	return resource.Quantity{}, false
}

// byteQuantity returns n bytes in the format that the kubelet prints; nil counts as zero.
func byteQuantity(n *uint64) resource.Quantity {
	if n == nil {
		return resource.Quantity{Format: resource.BinarySI}
	}
	return *resource.NewQuantity(int64(*n), resource.BinarySI)
}

// findContainer returns the container with that name: a regular one if there is one, else an init
// container.
func findContainer(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [...][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
