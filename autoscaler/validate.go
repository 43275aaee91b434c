package autoscaler

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The longest times a behavior may have, in seconds.
const (
	longestPeriod = 1800
	longestWindow = 3600
)

var sourceTypes = []string{
	string(autoscalingv2.ContainerResourceMetricSourceType), string(autoscalingv2.ExternalMetricSourceType),
	string(autoscalingv2.ObjectMetricSourceType), string(autoscalingv2.PodsMetricSourceType),
	string(autoscalingv2.ResourceMetricSourceType),
}

// Validate returns everything an API server would refuse in a specification once its
// defaults are filled in (Default), each mistake with its field; nil if there is none.
// The selector of a metric is not looked at, as it is not there: a wrong one fails
// where it is used.
func Validate(spec *autoscalingv2.HorizontalPodAutoscalerSpec, s Settings) error {
	root := field.NewPath("spec")
	v := &validator{}
	v.bounds(spec, root, s)
	// Nothing in the core group has a scale but replication controllers.
	v.reference(&spec.ScaleTargetRef, root.Child("scaleTargetRef"), spec.ScaleTargetRef.Kind != "ReplicationController")
	v.metrics(spec, root.Child("metrics"))
	if b := spec.Behavior; b != nil {
		v.rules(b.ScaleUp, root.Child("behavior", "scaleUp"))
		v.rules(b.ScaleDown, root.Child("behavior", "scaleDown"))
	}
	return v.mistakes.ToAggregate()
}

type validator struct{ mistakes field.ErrorList }

func (v *validator) required(p *field.Path, detail string) {
	v.mistakes = append(v.mistakes, field.Required(p, detail))
}

func (v *validator) forbidden(p *field.Path, detail string) {
	v.mistakes = append(v.mistakes, field.Forbidden(p, detail))
}

func (v *validator) invalid(p *field.Path, value any, detail string) {
	v.mistakes = append(v.mistakes, field.Invalid(p, value, detail))
}

func (v *validator) bounds(spec *autoscalingv2.HorizontalPodAutoscalerSpec, root *field.Path, s Settings) {
	lowest, advice := int32(1), "must be at least 1, unless scaling to zero is enabled"
	if s.ScaleToZero {
		lowest, advice = 0, "must not be negative"
	}
	if spec.MinReplicas != nil && *spec.MinReplicas < lowest {
		v.invalid(root.Child("minReplicas"), *spec.MinReplicas, advice)
	}
	switch {
	case spec.MaxReplicas == 0:
		v.required(root.Child("maxReplicas"), "must be at least 1")
	case spec.MaxReplicas < 0:
		v.invalid(root.Child("maxReplicas"), spec.MaxReplicas, "must be at least 1")
	case spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas:
		v.invalid(root.Child("maxReplicas"), spec.MaxReplicas, "must not be less than minReplicas")
	}
}

// reference checks what an object is named by, which may have to have an API group.
func (v *validator) reference(r *autoscalingv2.CrossVersionObjectReference, p *field.Path, grouped bool) {
	v.segment(r.Kind, p.Child("kind"))
	v.segment(r.Name, p.Child("name"))
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		v.invalid(p.Child("apiVersion"), r.APIVersion, err.Error())
	} else if grouped && gv.Group == "" {
		v.invalid(p.Child("apiVersion"), r.APIVersion, "must name an API group: apps/v1, for instance")
	}
}

func (v *validator) segment(name string, p *field.Path) {
	if name == "" {
		v.required(p, "")
		return
	}
	for _, msg := range content.IsPathSegmentName(name) {
		v.invalid(p, name, msg)
	}
}

func (v *validator) metrics(spec *autoscalingv2.HorizontalPodAutoscalerSpec, p *field.Path) {
	outside := false
	for i := range spec.Metrics {
		m := &spec.Metrics[i]
		v.metric(m, p.Index(i))
		outside = outside || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 && !outside {
		v.forbidden(p, "zero replicas have no pods to measure: minReplicas of 0 needs an Object or External metric")
	}
}

func (v *validator) metric(m *autoscalingv2.MetricSpec, p *field.Path) {
	sources := []struct {
		kind  autoscalingv2.MetricSourceType
		field string
		set   bool
		check func(*field.Path)
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(p *field.Path) { v.object(m.Object, p) }},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(p *field.Path) { v.external(m.External, p) }},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(p *field.Path) { v.pods(m.Pods, p) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(p *field.Path) {
			v.resource(string(m.Resource.Name), &m.Resource.Target, p)
		}},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(p *field.Path) {
			v.containerResource(m.ContainerResource, p)
		}},
	}
	known := false
	for _, s := range sources {
		mine := s.kind == m.Type
		known = known || mine
		switch {
		case mine && !s.set:
			v.required(p.Child(s.field), fmt.Sprintf("must say what a metric of type %s is", m.Type))
		case mine:
			s.check(p.Child(s.field))
		case s.set:
			v.forbidden(p.Child(s.field), fmt.Sprintf("must not be set in a metric of type %s", m.Type))
		}
	}
	if m.Type == "" {
		v.required(p.Child("type"), "must be one of "+fmt.Sprint(sourceTypes))
	} else if !known {
		v.mistakes = append(v.mistakes, field.NotSupported(p.Child("type"), string(m.Type), sourceTypes))
	}
}

func (v *validator) object(s *autoscalingv2.ObjectMetricSource, p *field.Path) {
	v.reference(&s.DescribedObject, p.Child("describedObject"), false)
	v.segment(s.Metric.Name, p.Child("metric", "name"))
	v.target(&s.Target, p.Child("target"))
	if s.Target.Value == nil && s.Target.AverageValue == nil {
		v.required(p.Child("target", "averageValue"), "must have a value or an averageValue")
	}
}

func (v *validator) external(s *autoscalingv2.ExternalMetricSource, p *field.Path) {
	v.segment(s.Metric.Name, p.Child("metric", "name"))
	v.target(&s.Target, p.Child("target"))
	switch {
	case s.Target.Value == nil && s.Target.AverageValue == nil:
		v.required(p.Child("target", "averageValue"), "must have a value or an averageValue")
	case s.Target.Value != nil && s.Target.AverageValue != nil:
		v.forbidden(p.Child("target", "value"), "must have a value or an averageValue, not both")
	}
}

func (v *validator) pods(s *autoscalingv2.PodsMetricSource, p *field.Path) {
	v.segment(s.Metric.Name, p.Child("metric", "name"))
	v.target(&s.Target, p.Child("target"))
	if s.Target.AverageValue == nil {
		v.required(p.Child("target", "averageValue"), "must have an averageValue")
	}
}

func (v *validator) containerResource(s *autoscalingv2.ContainerResourceMetricSource, p *field.Path) {
	if s.Container == "" {
		v.required(p.Child("container"), "must name a container")
	} else {
		for _, msg := range validation.IsDNS1123Label(s.Container) {
			v.invalid(p.Child("container"), s.Container, msg)
		}
	}
	// Containers' resources are those of core/v1, or another's with its domain.
	switch name := string(s.Name); {
	case name == "", s.Name == corev1.ResourceCPU, s.Name == corev1.ResourceMemory, s.Name == corev1.ResourceEphemeralStorage:
	case strings.HasPrefix(name, corev1.ResourceHugePagesPrefix), strings.Contains(name, "/"):
		for _, msg := range validation.IsQualifiedName(name) {
			v.invalid(p.Child("name"), name, msg)
		}
	default:
		v.invalid(p.Child("name"), name, "must be a resource of containers: cpu or memory")
	}
	v.resource(string(s.Name), &s.Target, p)
}

func (v *validator) resource(name string, t *autoscalingv2.MetricTarget, p *field.Path) {
	if name == "" {
		v.required(p.Child("name"), "must name a resource: cpu or memory")
	}
	v.target(t, p.Child("target"))
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		v.required(p.Child("target", "averageUtilization"), "must have an averageUtilization or an averageValue")
	case t.AverageUtilization != nil && t.AverageValue != nil:
		v.forbidden(p.Child("target", "averageValue"), "must have an averageUtilization or an averageValue, not both")
	}
}

func (v *validator) target(t *autoscalingv2.MetricTarget, p *field.Path) {
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	case "":
		v.required(p.Child("type"), "must be Utilization, Value or AverageValue")
	default:
		v.invalid(p.Child("type"), t.Type, "must be Utilization, Value or AverageValue")
	}
	v.positive(t.Value, p.Child("value"))
	v.positive(t.AverageValue, p.Child("averageValue"))
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		v.invalid(p.Child("averageUtilization"), *t.AverageUtilization, "must be at least 1")
	}
}

func (v *validator) positive(q *resource.Quantity, p *field.Path) {
	if q != nil && q.Sign() <= 0 {
		v.invalid(p, text(q), "must be positive")
	}
}

// text writes a quantity without leaving its text in it, as String would.
func text(q *resource.Quantity) string {
	c := q.DeepCopy()
	return c.String()
}

func (v *validator) rules(r *autoscalingv2.HPAScalingRules, p *field.Path) {
	if r == nil {
		return
	}
	if w := r.StabilizationWindowSeconds; w != nil && (*w < 0 || *w > longestWindow) {
		v.invalid(p.Child("stabilizationWindowSeconds"), *w, fmt.Sprintf("must be between 0 and %d", longestWindow))
	}
	if s := r.SelectPolicy; s != nil {
		switch *s {
		case autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect:
		default:
			v.mistakes = append(v.mistakes, field.NotSupported(p.Child("selectPolicy"), *s, []string{
				string(autoscalingv2.DisabledPolicySelect), string(autoscalingv2.MaxChangePolicySelect), string(autoscalingv2.MinChangePolicySelect)}))
		}
	}
	if len(r.Policies) == 0 {
		v.required(p.Child("policies"), "must have at least one policy; selectPolicy: Disabled forbids every change")
	}
	for i := range r.Policies {
		v.policy(&r.Policies[i], p.Child("policies").Index(i))
	}
	if t := r.Tolerance; t != nil && t.Sign() < 0 {
		v.invalid(p.Child("tolerance"), text(t), "must not be negative")
	}
}

func (v *validator) policy(r *autoscalingv2.HPAScalingPolicy, p *field.Path) {
	switch r.Type {
	case autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy:
	default:
		v.mistakes = append(v.mistakes, field.NotSupported(p.Child("type"), r.Type,
			[]string{string(autoscalingv2.PercentScalingPolicy), string(autoscalingv2.PodsScalingPolicy)}))
	}
	if r.Value <= 0 {
		v.invalid(p.Child("value"), r.Value, "must be at least 1")
	}
	if r.PeriodSeconds <= 0 || r.PeriodSeconds > longestPeriod {
		v.invalid(p.Child("periodSeconds"), r.PeriodSeconds, fmt.Sprintf("must be between 1 and %d", longestPeriod))
	}
}
