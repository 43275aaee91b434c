package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing with a.
func (a *Autoscaler) DeepCopy() *Autoscaler {
	if a == nil {
		return nil
	}
	c := &Autoscaler{TypeMeta: a.TypeMeta, Spec: *a.Spec.DeepCopy(), Status: *a.Status.DeepCopy()}
	c.ObjectMeta = *a.ObjectMeta.DeepCopy()
	return c
}

// DeepCopyObject is part of runtime.Object.
func (a *Autoscaler) DeepCopyObject() runtime.Object {
	if a == nil {
		return nil
	}
	return a.DeepCopy()
}

// DeepCopyObject is part of runtime.Object.
func (l *AutoscalerList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	c := &AutoscalerList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	if l.Items != nil {
		c.Items = make([]Autoscaler, len(l.Items))
		for i := range l.Items {
			c.Items[i] = *l.Items[i].DeepCopy()
		}
	}
	return c
}

// DeepCopy returns a copy that shares nothing with s.
func (s *AutoscalerSpec) DeepCopy() *AutoscalerSpec {
	if s == nil {
		return nil
	}
	return &AutoscalerSpec{HorizontalPodAutoscalerSpec: *s.HorizontalPodAutoscalerSpec.DeepCopy(), Mode: s.Mode}
}

// DeepCopy returns a copy that shares nothing with s.
func (s *AutoscalerStatus) DeepCopy() *AutoscalerStatus {
	if s == nil {
		return nil
	}
	c := *s
	c.HorizontalPodAutoscalerStatus = *s.HorizontalPodAutoscalerStatus.DeepCopy()
	c.Decisions = slices.Clone(s.Decisions)
	for i, d := range s.Decisions {
		if d.Recommendation != nil {
			n := *d.Recommendation
			c.Decisions[i].Recommendation = &n
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
