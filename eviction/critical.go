package eviction

import corev1 "k8s.io/api/core/v1"

// Critical is why a pod is never evicted.
type Critical uint8

// The reasons.
const (
	NotCritical      Critical = iota
	StaticPod                 // it comes from a file or URL of the node, which nobody would bring back
	MirrorPod                 // it is the API server's image of a static pod
	CriticalPriority          // its priority is that of the system's own classes, or above
)

// Annotations that the kubelet puts on pods.
const (
	sourceAnnotation = "kubernetes.io/config.source"
	mirrorAnnotation = corev1.MirrorPodAnnotationKey
	fromAPIServer    = "api"
)

// criticalPriority is that of the class system-cluster-critical.
const criticalPriority = 2_000_000_000

// CriticalOf returns why a pod is critical, or that it is not.
func CriticalOf(pod *corev1.Pod) Critical {
	if source, ok := pod.Annotations[sourceAnnotation]; ok && source != fromAPIServer {
		return StaticPod
	}
	if _, ok := pod.Annotations[mirrorAnnotation]; ok {
		return MirrorPod
	}
	if priority(pod) >= criticalPriority {
		return CriticalPriority
	}
	return NotCritical
}

// priority is zero for a pod of no class.
func priority(pod *corev1.Pod) int32 {
	if p := pod.Spec.Priority; p != nil {
		return *p
	}
	return 0
}

func refOf(pod *corev1.Pod) PodRef {
	return PodRef{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}
}

// PodRef names a pod.
type PodRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// String returns namespace/name.
func (r PodRef) String() string { return r.Namespace + "/" + r.Name }
