package eviction

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Admission reports whether a node under pressure admits a pod.
type Admission struct {
	Admit bool
	// Reason and Message are set if the pod is refused. Message is the kubelet's text.
	Reason, Message string
}

// Admit returns whether a node with these conditions admits a pod. Without a condition it admits
// every pod, and it always admits critical pods. If memory pressure is the only condition, it
// refuses only pods that have no requests and limits and do not tolerate the taint of memory
// pressure.
func Admit(pod *corev1.Pod, conditions []corev1.NodeConditionType) Admission {
	memoryOnly := len(conditions) == 1 && conditions[0] == corev1.NodeMemoryPressure
	if len(conditions) == 0 || CriticalReason(pod) != "" || memoryOnly && (!isBestEffort(pod) || toleratesMemoryPressure(pod)) {
		return Admission{Admit: true}
	}
	return Admission{Reason: Reason, Message: fmt.Sprintf("The node had condition: %v. ", conditions)}
}

// isBestEffort reports whether a pod has neither requests nor limits of CPU and memory. The class
// in its status, which an API server always sets, takes precedence over its specification.
// Pod-level resources count instead of those of the containers only if they name a resource that
// they support. Kubelets before 1.37, or without the feature gate PodLevelResourcesFixKubeletQOSClass, let
// an empty object count too.
func isBestEffort(pod *corev1.Pod) bool {
	if class := pod.Status.QOSClass; class != "" {
		return class == corev1.PodQOSBestEffort
	}
	if r := pod.Spec.Resources; resourcehelper.IsPodLevelResourcesSet(pod) {
		return !hasCPUOrMemory(r.Requests) && !hasCPUOrMemory(r.Limits)
	}
	for _, list := range [...][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if r := &list[i].Resources; hasCPUOrMemory(r.Requests) || hasCPUOrMemory(r.Limits) {
				return false
			}
		}
	}
	return true
}

func hasCPUOrMemory(list corev1.ResourceList) bool {
	return list.Cpu().Sign() > 0 || list.Memory().Sign() > 0
}

// toleratesMemoryPressure reports whether a pod tolerates the taint of memory pressure. The taint
// has no value, so operators that compare numbers never match it.
func toleratesMemoryPressure(pod *corev1.Pod) bool {
	taint := corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &taint, false)
	})
}
