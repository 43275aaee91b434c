package eviction

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Admission is whether a node under pressure takes a pod.
type Admission struct {
	Admit bool
	// Reason and Message are those of a refusal, in the kubelet's words.
	Reason, Message string
	// Because is why.
	Because AdmissionCase
}

// AdmissionCase is the rule an admission goes by.
type AdmissionCase uint8

// The rules, in order.
const (
	AdmitNoPressure AdmissionCase = iota // no condition is reported
	AdmitCritical                        // a critical pod
	AdmitRequests                        // under memory pressure alone, a pod that says what it needs or may have at most
	AdmitTolerates                       // under memory pressure alone, a pod that tolerates its taint
	RefuseMemory                         // best effort, under memory pressure
	RefuseOther                          // under any other pressure
)

// Admit returns whether a node with these conditions takes a pod.
func Admit(pod *corev1.Pod, conditions []corev1.NodeConditionType) Admission {
	switch {
	case len(conditions) == 0:
		return Admission{Admit: true, Because: AdmitNoPressure}
	case CriticalOf(pod) != NotCritical:
		return Admission{Admit: true, Because: AdmitCritical}
	}
	refused := Admission{Because: RefuseOther, Reason: Reason, Message: fmt.Sprintf("The node had condition: %v. ", conditions)}
	if len(conditions) > 1 || conditions[0] != corev1.NodeMemoryPressure {
		return refused
	}
	switch {
	case !bestEffort(pod):
		return Admission{Admit: true, Because: AdmitRequests}
	case toleratesMemoryPressure(pod):
		return Admission{Admit: true, Because: AdmitTolerates}
	}
	refused.Because = RefuseMemory
	return refused
}

// bestEffort says whether a pod neither requests nor is limited in processors or memory.
// The class its status tells goes before what its specification says.
func bestEffort(pod *corev1.Pod) bool {
	if class := pod.Status.QOSClass; class != "" {
		return class == corev1.PodQOSBestEffort
	}
	if r := pod.Spec.Resources; r != nil {
		return !says(r.Requests) && !says(r.Limits)
	}
	for _, list := range [...][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if r := &list[i].Resources; says(r.Requests) || says(r.Limits) {
				return false
			}
		}
	}
	return true
}

func says(list corev1.ResourceList) bool {
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := list[name]; ok && q.Sign() > 0 {
			return true
		}
	}
	return false
}

// toleratesMemoryPressure says whether a pod tolerates the taint of memory pressure, which
// has no value. Operators that compare numbers never do.
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
