package autoscaler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The longest times that a behavior may have, in seconds.
const (
	longestPeriod = 1800
	longestWindow = 3600
)

var sourceTypes = []string{
	string(autoscalingv2.ContainerResourceMetricSourceType), string(autoscalingv2.ExternalMetricSourceType),
	string(autoscalingv2.ObjectMetricSourceType), string(autoscalingv2.PodsMetricSourceType),
	string(autoscalingv2.ResourceMetricSourceType),
}

// Validate returns every error that an API server would find in a specification with its defaults
// (Default), each with its field; nil if there is none. Like the API server it does not check the
// selector of a metric: a wrong selector fails when it is used.
func Validate(spec *autoscalingv2.HorizontalPodAutoscalerSpec, s Settings) error {
	root := field.NewPath("spec")
	v := &validator{}
	v.checkReplicas(spec, root, s)
	// In the core group only replication controllers have a scale.
	v.checkReference(&spec.ScaleTargetRef, root.Child("scaleTargetRef"), spec.ScaleTargetRef.Kind != "ReplicationController")
	v.checkMetrics(spec, root.Child("metrics"))
	if b := spec.Behavior; b != nil {
		v.checkRules(b.ScaleUp, root.Child("behavior", "scaleUp"))
		v.checkRules(b.ScaleDown, root.Child("behavior", "scaleDown"))
	}
	return v.mistakes.ToAggregate()
}

type validator struct{ mistakes field.ErrorList }

func (v *validator) addRequired(p *field.Path, detail string) {
	v.mistakes = append(v.mistakes, field.Required(p, detail))
}

func (v *validator) addForbidden(p *field.Path, detail string) {
	v.mistakes = append(v.mistakes, field.Forbidden(p, detail))
}

func (v *validator) addInvalid(p *field.Path, value any, detail string) {
	v.mistakes = append(v.mistakes, field.Invalid(p, value, detail))
}

func (v *validator) checkReplicas(spec *autoscalingv2.HorizontalPodAutoscalerSpec, root *field.Path, s Settings) {
	lowest, advice := int32(1), "must be at least 1, unless scaling to zero is enabled"
	if s.ScaleToZero {
		lowest, advice = 0, "must not be negative"
	}
	if spec.MinReplicas != nil && *spec.MinReplicas < lowest {
		v.addInvalid(root.Child("minReplicas"), *spec.MinReplicas, advice)
	}
	switch {
	case spec.MaxReplicas == 0:
		v.addRequired(root.Child("maxReplicas"), "must be at least 1")
	case spec.MaxReplicas < 0:
		v.addInvalid(root.Child("maxReplicas"), spec.MaxReplicas, "must be at least 1")
	case spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas:
		v.addInvalid(root.Child("maxReplicas"), spec.MaxReplicas, "must not be less than minReplicas")
	}
}

// checkReference checks a reference to an object. If grouped is set, it must have an API group.
func (v *validator) checkReference(r *autoscalingv2.CrossVersionObjectReference, p *field.Path, grouped bool) {
	v.checkName(r.Kind, p.Child("kind"))
	v.checkName(r.Name, p.Child("name"))
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		v.addInvalid(p.Child("apiVersion"), r.APIVersion, err.Error())
	} else if grouped && gv.Group == "" {
		v.addInvalid(p.Child("apiVersion"), r.APIVersion, "must name an API group: apps/v1, for instance")
	}
}

func (v *validator) checkName(name string, p *field.Path) {
	if name == "" {
		v.addRequired(p, "")
		return
	}
	for _, msg := range content.IsPathSegmentName(name) {
		v.addInvalid(p, name, msg)
	}
}

func (v *validator) checkMetrics(spec *autoscalingv2.HorizontalPodAutoscalerSpec, p *field.Path) {
	outside := false
	for i := range spec.Metrics {
		m := &spec.Metrics[i]
		v.checkMetric(m, p.Index(i))
		outside = outside || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 && !outside {
		v.addForbidden(p, "zero replicas have no pods to measure: minReplicas of 0 needs an Object or External metric")
	}
}

func (v *validator) checkMetric(m *autoscalingv2.MetricSpec, p *field.Path) {
	sources := []struct {
		kind  autoscalingv2.MetricSourceType
		field string
		set   bool
		check func(*field.Path)
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(p *field.Path) { v.checkObject(m.Object, p) }},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(p *field.Path) { v.checkExternal(m.External, p) }},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(p *field.Path) { v.checkPods(m.Pods, p) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(p *field.Path) {
			v.checkResource(string(m.Resource.Name), &m.Resource.Target, p)
		}},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(p *field.Path) {
			v.checkContainerResource(m.ContainerResource, p)
		}},
	}
	known := false
	for _, s := range sources {
		mine := s.kind == m.Type
		known = known || mine
		switch {
		case mine && !s.set:
			v.addRequired(p.Child(s.field), fmt.Sprintf("must describe the metric of type %s", m.Type))
		case mine:
			s.check(p.Child(s.field))
		case s.set:
			v.addForbidden(p.Child(s.field), fmt.Sprintf("must not be set in a metric of type %s", m.Type))
		}
	}
	if m.Type == "" {
		v.addRequired(p.Child("type"), "must be one of "+fmt.Sprint(sourceTypes))
	} else if !known {
		v.mistakes = append(v.mistakes, field.NotSupported(p.Child("type"), string(m.Type), sourceTypes))
	}
}

func (v *validator) checkObject(s *autoscalingv2.ObjectMetricSource, p *field.Path) {
	v.checkReference(&s.DescribedObject, p.Child("describedObject"), false)
	v.checkName(s.Metric.Name, p.Child("metric", "name"))
	v.checkTarget(&s.Target, p.Child("target"))
	if s.Target.Value == nil && s.Target.AverageValue == nil {
		v.addRequired(p.Child("target", "averageValue"), "must have a value or an averageValue")
	}
}

func (v *validator) checkExternal(s *autoscalingv2.ExternalMetricSource, p *field.Path) {
	v.checkName(s.Metric.Name, p.Child("metric", "name"))
	v.checkTarget(&s.Target, p.Child("target"))
	switch {
	case s.Target.Value == nil && s.Target.AverageValue == nil:
		v.addRequired(p.Child("target", "averageValue"), "must have a value or an averageValue")
	case s.Target.Value != nil && s.Target.AverageValue != nil:
		v.addForbidden(p.Child("target", "value"), "must have a value or an averageValue, not both")
	}
}

func (v *validator) checkPods(s *autoscalingv2.PodsMetricSource, p *field.Path) {
	v.checkName(s.Metric.Name, p.Child("metric", "name"))
	v.checkTarget(&s.Target, p.Child("target"))
	if s.Target.AverageValue == nil {
		v.addRequired(p.Child("target", "averageValue"), "must have an averageValue")
	}
}

func (v *validator) checkContainerResource(s *autoscalingv2.ContainerResourceMetricSource, p *field.Path) {
	if s.Container == "" {
		v.addRequired(p.Child("container"), "must name a container")
	} else {
		for _, msg := range validation.IsDNS1123Label(s.Container) {
			v.addInvalid(p.Child("container"), s.Container, msg)
		}
	}
	// The resource of a container is one of core/v1, or its name has a domain.
	switch name := string(s.Name); {
	case name == "", s.Name == corev1.ResourceCPU, s.Name == corev1.ResourceMemory, s.Name == corev1.ResourceEphemeralStorage:
	case strings.HasPrefix(name, corev1.ResourceHugePagesPrefix), strings.Contains(name, "/"):
		for _, msg := range validation.IsQualifiedName(name) {
			v.addInvalid(p.Child("name"), name, msg)
		}
	default:
		v.addInvalid(p.Child("name"), name, "must be a resource of containers: cpu or memory")
	}
	v.checkResource(string(s.Name), &s.Target, p)
}

func (v *validator) checkResource(name string, t *autoscalingv2.MetricTarget, p *field.Path) {
	if name == "" {
		v.addRequired(p.Child("name"), "must name a resource: cpu or memory")
	}
	v.checkTarget(t, p.Child("target"))
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		v.addRequired(p.Child("target", "averageUtilization"), "must have an averageUtilization or an averageValue")
	case t.AverageUtilization != nil && t.AverageValue != nil:
		v.addForbidden(p.Child("target", "averageValue"), "must have an averageUtilization or an averageValue, not both")
	}
}

func (v *validator) checkTarget(t *autoscalingv2.MetricTarget, p *field.Path) {
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	case "":
		v.addRequired(p.Child("type"), "must be Utilization, Value or AverageValue")
	default:
		v.addInvalid(p.Child("type"), t.Type, "must be Utilization, Value or AverageValue")
	}
	v.checkPositive(t.Value, p.Child("value"))
	v.checkPositive(t.AverageValue, p.Child("averageValue"))
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		v.addInvalid(p.Child("averageUtilization"), *t.AverageUtilization, "must be at least 1")
	}
}

func (v *validator) checkPositive(q *resource.Quantity, p *field.Path) {
	if q != nil && q.Sign() <= 0 {
		v.addInvalid(p, quantityText(q), "must be positive")
	}
}

// quantityText formats a quantity. Quantity.String would store the text in q.
func quantityText(q *resource.Quantity) string {
	c := q.DeepCopy()
	return c.String()
}

func (v *validator) checkRules(r *autoscalingv2.HPAScalingRules, p *field.Path) {
	if r == nil {
		return
	}
	if w := r.StabilizationWindowSeconds; w != nil && (*w < 0 || *w > longestWindow) {
		v.addInvalid(p.Child("stabilizationWindowSeconds"), *w, fmt.Sprintf("must be between 0 and %d", longestWindow))
	}
	if s := r.SelectPolicy; s != nil {
		checkOneOf(v, *s, p.Child("selectPolicy"), autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)
	}
	if len(r.Policies) == 0 {
		v.addRequired(p.Child("policies"), "must have at least one policy; selectPolicy: Disabled forbids every change")
	}
	for i := range r.Policies {
		v.checkPolicy(&r.Policies[i], p.Child("policies").Index(i))
	}
	if t := r.Tolerance; t != nil && t.Sign() < 0 {
		v.addInvalid(p.Child("tolerance"), quantityText(t), "must not be negative")
	}
}

func checkOneOf[T ~string](v *validator, value T, p *field.Path, valid ...T) {
	if !slices.Contains(valid, value) {
		v.mistakes = append(v.mistakes, field.NotSupported(p, value, valid))
	}
}

func (v *validator) checkPolicy(r *autoscalingv2.HPAScalingPolicy, p *field.Path) {
	checkOneOf(v, r.Type, p.Child("type"), autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)
	if r.Value <= 0 {
		v.addInvalid(p.Child("value"), r.Value, "must be at least 1")
	}
	if r.PeriodSeconds <= 0 || r.PeriodSeconds > longestPeriod {
		v.addInvalid(p.Child("periodSeconds"), r.PeriodSeconds, fmt.Sprintf("must be between 1 and %d", longestPeriod))
	}
}

// Default sets the defaults of the API server: minReplicas 1, a CPU utilization of 80%, and the
// rules of a behavior. It does not set the window for scaling down, because that default is a
// setting of the controller.
func Default(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
	spec.MinReplicas = cmp.Or(spec.MinReplicas, new(int32(1)))
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{
					Type:               autoscalingv2.UtilizationMetricType,
					AverageUtilization: new(int32(80)),
				},
			},
		}}
	}
	if b := spec.Behavior; b != nil {
		b.ScaleUp = scaleUpRules(b)
		b.ScaleUp.StabilizationWindowSeconds = cmp.Or(b.ScaleUp.StabilizationWindowSeconds, new(int32(0)))
		b.ScaleDown = scaleDownRules(b)
		for _, r := range []*autoscalingv2.HPAScalingRules{b.ScaleUp, b.ScaleDown} {
			r.SelectPolicy = cmp.Or(r.SelectPolicy, new(autoscalingv2.MaxChangePolicySelect))
		}
	}
}

// scaleUpRules returns the rules for scaling up. The default is 4 replicas or 100% every 15
// seconds.
func scaleUpRules(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HPAScalingRules {
	if b.ScaleUp != nil && b.ScaleUp.Policies != nil {
		return b.ScaleUp
	}
	return withPolicies(b.ScaleUp,
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
}

// scaleDownRules returns the rules for scaling down. The default is 100% every 15 seconds.
func scaleDownRules(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HPAScalingRules {
	if b.ScaleDown != nil && b.ScaleDown.Policies != nil {
		return b.ScaleDown
	}
	return withPolicies(b.ScaleDown,
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
}

// withPolicies returns a copy of the rules with these policies. r may be nil.
func withPolicies(r *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	var filled autoscalingv2.HPAScalingRules
	if r != nil {
		filled = *r
	}
	filled.Policies = policies
	return &filled
}
