package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing with a.
func (a *Autoscaler) DeepCopy() *Autoscaler {
	spec := AutoscalerSpec{HorizontalPodAutoscalerSpec: *a.Spec.HorizontalPodAutoscalerSpec.DeepCopy(), Mode: a.Spec.Mode}
	return &Autoscaler{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy(), Spec: spec, Status: *a.Status.DeepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (a *Autoscaler) DeepCopyObject() runtime.Object {
	if a == nil {
		return nil
	}
	return a.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *AutoscalerList) DeepCopyObject() runtime.Object {
	c := &AutoscalerList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: slices.Clone(l.Items)}
	for i := range c.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return c
}

// DeepCopy returns a copy that shares nothing with s.
func (s *AutoscalerStatus) DeepCopy() *AutoscalerStatus {
	c := *s
	c.HorizontalPodAutoscalerStatus = *s.HorizontalPodAutoscalerStatus.DeepCopy()
	c.Decisions = slices.Clone(s.Decisions)
	for i, d := range s.Decisions {
		if d.Recommendation != nil {
			c.Decisions[i].Recommendation = new(*d.Recommendation)
		}
	}
	if s.Explanation != nil {
		e := *s.Explanation
		e.Pods = slices.Clone(e.Pods)
		c.Explanation = &e
	}
	if s.Memory != nil {
		c.Memory = &Memory{Target: s.Memory.Target, Recommendations: slices.Clone(s.Memory.Recommendations), Changes: slices.Clone(s.Memory.Changes)}
	}
	return &c
}
