package autoscaler

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// Default fills in what an API server fills in where a specification says nothing:
// one replica at the least, a CPU utilization of 80%, and the rules of a behavior
// that has any. A window of scaling down stays open: it is the controller's setting.
func Default(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
	if spec.MinReplicas == nil {
		spec.MinReplicas = new(int32(1))
	}
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
		b.ScaleUp = upRules(b)
		if b.ScaleUp.StabilizationWindowSeconds == nil {
			b.ScaleUp.StabilizationWindowSeconds = new(int32(0))
		}
		b.ScaleDown = downRules(b)
		for _, r := range []*autoscalingv2.HPAScalingRules{b.ScaleUp, b.ScaleDown} {
			if r.SelectPolicy == nil {
				r.SelectPolicy = new(autoscalingv2.MaxChangePolicySelect)
			}
		}
	}
}

// upRules are a behavior's for scaling up: by 4 replicas or to twice as many, every
// 15 seconds, where it has none.
func upRules(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HPAScalingRules {
	if b.ScaleUp != nil && b.ScaleUp.Policies != nil {
		return b.ScaleUp
	}
	return withPolicies(b.ScaleUp,
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
}

// downRules are a behavior's for scaling down: as far as the metrics ask, where it
// has none.
func downRules(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HPAScalingRules {
	if b.ScaleDown != nil && b.ScaleDown.Policies != nil {
		return b.ScaleDown
	}
	return withPolicies(b.ScaleDown,
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
}

// withPolicies returns a copy of the rules, which may be nil, with these policies.
func withPolicies(r *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	var filled autoscalingv2.HPAScalingRules
	if r != nil {
		filled = *r
	}
	filled.Policies = policies
	return &filled
}
