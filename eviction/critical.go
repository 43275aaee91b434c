package eviction

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The annotations that the kubelet sets on pods.
const (
	sourceAnnotation = "kubernetes.io/config.source"
	mirrorAnnotation = corev1.MirrorPodAnnotationKey
	fromAPIServer    = "api"
)

// criticalPriority is the priority of the class system-cluster-critical.
const criticalPriority = 2_000_000_000

// CriticalReason returns the reason why a pod is never evicted; empty if it may be evicted.
func CriticalReason(pod *corev1.Pod) string {
	if source, ok := pod.Annotations[sourceAnnotation]; ok && source != fromAPIServer {
		return "it is a static pod, which no controller would replace"
	}
	if _, ok := pod.Annotations[mirrorAnnotation]; ok {
		return "it is the mirror of a static pod, which no controller would replace"
	}
	if ptr.Deref(pod.Spec.Priority, 0) >= criticalPriority {
		return "its priority is that of system-cluster-critical, or higher"
	}
	return ""
}

func refOf(pod *corev1.Pod) PodIdentity {
	return PodIdentity{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}
}

// PodIdentity identifies a pod.
type PodIdentity struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// String returns namespace/name.
func (p PodIdentity) String() string { return p.Namespace + "/" + p.Name }
