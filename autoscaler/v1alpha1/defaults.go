package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// SetDefaults fills in what the API server would: of an Autoscaler that comes from
// a file, or from a cluster whose schema is older.
func SetDefaults(a *Autoscaler) {
	if a.Spec.Mode == "" {
		a.Spec.Mode = Active
	}
	SetSpecDefaults(&a.Spec.HorizontalPodAutoscalerSpec)
}

// SetSpecDefaults fills in what the API server fills in of a
// HorizontalPodAutoscaler: at least one replica, 80% of the requested CPU, and the
// rules of a behavior that is given in part.
func SetSpecDefaults(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	if s.MinReplicas == nil {
		s.MinReplicas = ptr(int32(1))
	}
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr(int32(80))},
			},
		}}
	}
	if b := s.Behavior; b != nil {
		percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
		pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
		b.ScaleUp = rulesDefaults(b.ScaleUp, pods, percent)
		if b.ScaleUp.StabilizationWindowSeconds == nil {
			b.ScaleUp.StabilizationWindowSeconds = ptr(int32(0))
		}
		// Of scaling down, a window that is not given is the controller's flag.
		b.ScaleDown = rulesDefaults(b.ScaleDown, percent)
	}
}

func rulesDefaults(r *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if r == nil {
		r = &autoscalingv2.HPAScalingRules{}
	}
	if r.SelectPolicy == nil {
		r.SelectPolicy = ptr(autoscalingv2.MaxChangePolicySelect)
	}
	if r.Policies == nil {
		r.Policies = policies
	}
	return r
}

func ptr[T any](v T) *T { return &v }
