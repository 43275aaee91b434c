package evictionreport

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
)

// condition tells a node condition.
func condition(c *eviction.Condition, in *eviction.Input) document.Condition {
	told := document.Condition{Type: string(c.Type), Reported: c.Reported, MetAt: c.MetAt.UTC()}
	if !c.Reported {
		told.Message = "false; last met at " + document.Clock(c.MetAt)
		return told
	}
	told.Until = c.MetAt.Add(in.Settings.TransitionPeriod).UTC()
	if c.MetAt.Equal(in.Now) {
		told.Message = fmt.Sprintf("true: a threshold of it is met; it lasts for %s after that ends", document.Lasting(in.Settings.TransitionPeriod))
	} else {
		told.Message = fmt.Sprintf("true: last met at %s; it lasts until %s", document.Clock(c.MetAt), document.Clock(told.Until))
	}
	return told
}

// admission asks which pods a node with the decision's conditions takes, with one of
// each kind.
func admission(d *eviction.Decision) *document.Admission {
	conditions := d.Pressures()
	admits := func(pod *corev1.Pod) bool { return eviction.Admit(pod, conditions).Admit }
	tolerating := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}}}
	requesting := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(1, resource.BinarySI)}}}}}}
	mirror := &corev1.Pod{}
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1"}
	a := &document.Admission{BestEffort: admits(&corev1.Pod{}), Tolerating: admits(tolerating), Requesting: admits(requesting), Critical: admits(mirror)}
	switch {
	case a.BestEffort:
		a.Message = "any would be admitted"
	case a.Requesting:
		a.Message = "those that request or limit nothing would be refused, unless they are critical or tolerate " + corev1.TaintNodeMemoryPressure + "; others would be admitted"
	default:
		a.Message = "all would be refused that are not critical: static, or of a priority class of the system"
	}
	return a
}

// exceeded tells of a pod over a limit of local storage.
func exceeded(e *eviction.Exceeded) document.Exceeded {
	told := document.Exceeded{
		Pod: e.Pod.String(), Kind: e.Kind, Name: e.Name,
		UsedBytes: e.Used.AsApproximateFloat64(), LimitBytes: e.Limit.AsApproximateFloat64(),
	}
	of := "local storage"
	switch e.Kind {
	case eviction.EmptyDirLimit:
		of = "emptyDir " + e.Name
	case eviction.ContainerLimit:
		of = "container " + e.Name
	}
	told.Message = fmt.Sprintf("%s uses %s of %s, and may use %s", e.Pod, document.Bytes.Words(told.UsedBytes), of, document.Bytes.Words(told.LimitBytes))
	pass, why := e.Passed, ""
	switch {
	case e.Critical != eviction.NotCritical:
		pass, why = eviction.PassCritical, critical(e.Critical)
	case e.Passed == eviction.PassSelf:
		why = itself
	case e.Passed == eviction.PassBlocked:
		why = blocked + e.Blocked
	}
	if pass != eviction.NotPassed {
		told.Spared = pass.String()
		told.Message += "; it is spared: " + why
	}
	return told
}
