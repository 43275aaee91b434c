package eviction

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Admission is whether a node under pressure admits a pod.
type Admission struct {
	Admit bool
	// Reason and Message are those of a refusal, with the kubelet's text.
	Reason, Message string
	// Case is the rule that decided.
	Case AdmissionCase
}

// AdmissionCase is the rule that decided an admission.
type AdmissionCase uint8

// The rules, in order.
const (
	AdmitNoPressure AdmissionCase = iota // no condition is reported
	AdmitCritical                        // a critical pod
	AdmitRequests                        // under memory pressure alone, a pod with requests or limits
	AdmitTolerates                       // under memory pressure alone, a pod that tolerates its taint
	RefuseMemory                         // best effort, under memory pressure
	RefuseOther                          // under any other pressure
)

// Admit returns whether a node with these conditions admits a pod.
func Admit(pod *corev1.Pod, conditions []corev1.NodeConditionType) Admission {
	switch {
	case len(conditions) == 0:
		return Admission{Admit: true, Case: AdmitNoPressure}
	case CriticalOf(pod) != NotCritical:
		return Admission{Admit: true, Case: AdmitCritical}
	}
	refused := Admission{Case: RefuseOther, Reason: Reason, Message: fmt.Sprintf("The node had condition: %v. ", conditions)}
	if len(conditions) > 1 || conditions[0] != corev1.NodeMemoryPressure {
		return refused
	}
	switch {
	case !isBestEffort(pod):
		return Admission{Admit: true, Case: AdmitRequests}
	case toleratesMemoryPressure(pod):
		return Admission{Admit: true, Case: AdmitTolerates}
	}
	refused.Case = RefuseMemory
	return refused
}

// isBestEffort reports whether a pod has neither requests nor limits of CPU and memory. The class
// in its status takes precedence over its specification.
func isBestEffort(pod *corev1.Pod) bool {
	if class := pod.Status.QOSClass; class != "" {
		return class == corev1.PodQOSBestEffort
	}
	if r := pod.Spec.Resources; r != nil {
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
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := list[name]; ok && q.Sign() > 0 {
			return true
		}
	}
	return false
}

// toleratesMemoryPressure reports whether a pod tolerates the taint of memory pressure. The taint
// has no value, so operators that compare numbers never match it.
func toleratesMemoryPressure(pod *corev1.Pod) bool {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule || t.Key != "" && t.Key != corev1.TaintNodeMemoryPressure {
			continue
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			if t.Value == "" {
				return true
			}
		case corev1.TolerationOpExists:
			return true
		}
	}
	return false
}

// Critical is why a pod is never evicted, or NotCritical.
type Critical uint8

// The reasons.
const (
	NotCritical      Critical = iota
	StaticPod                 // it comes from a file or URL on the node, and no controller would replace it
	MirrorPod                 // it represents a static pod in the API server
	CriticalPriority          // its priority is that of system-cluster-critical, or higher
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
