package explaincmd

import (
	"context"
	"errors"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/manifest"
	"github.com/weir-metrics/weir/cluster"
)

// Autoscaler returns the decisions about shop/web, an HPA that weir shadows, and bank/ledger, an
// Autoscaler without its metric.
func (t *testCluster) Autoscaler(_ context.Context, kind, namespace, name string) (*decisionreport.DecisionReport, error) {
	switch kind + " " + namespace + "/" + name {
	case manifest.HorizontalPodAutoscaler + " shop/web":
		return decided(kind, decisionreport.Shadow, namespace, name, []string{"web-1", "web-2"}, nil), nil
	case manifest.Autoscaler + " bank/ledger":
		return decided(kind, decisionreport.Active, namespace, name, []string{"ledger"}, errors.New("no metrics returned from resource metrics API")), nil
	}
	return nil, unknown(kind + " " + namespace + "/" + name)
}

// decided returns a decision about pods that each use 80% of their request, or that could not be
// measured.
func decided(kind, mode, namespace, name string, pods []string, err error) *decisionreport.DecisionReport {
	percent, settings := int32(50), autoscaler.DefaultSettings()
	reading := autoscaler.Reading{At: before(4 * time.Second), Err: err}
	in := &autoscaler.Input{
		Now: noon, Settings: &settings, Object: types.NamespacedName{Namespace: namespace, Name: name},
		Spec: &autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: 10,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}},
		},
		Scale:      autoscaler.Scale{SpecReplicas: int32(len(pods)), StatusReplicas: int32(len(pods)), Selector: "app=" + name},
		ReadMetric: func(int) autoscaler.Reading { return reading },
	}
	autoscaler.Default(in.Spec)
	for _, pod := range pods {
		in.Pods = append(in.Pods, autoscaler.PodInput{Name: pod, Phase: cluster.Running, Started: before(time.Hour), Ready: cluster.ReadyTrue,
			Containers: []autoscaler.ContainerInput{{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 100, Set: true}}}}})
		if err == nil {
			reading.Samples = append(reading.Samples, autoscaler.PodSample{Pod: pod, Milli: 80, At: before(4 * time.Second), Window: 15 * time.Second})
		}
	}
	return decisionreport.New(autoscaler.Decide(in), decisionreport.Context{Kind: kind, Mode: mode, Input: in, Verdict: func(int, string) (decisionreport.PodVerdict, bool) {
		return decisionreport.PodVerdict{Reason: "NodeTimeout", Message: "node n2 did not answer in time", Advice: "Check whether the node is overloaded. `weir explain node n2` shows more."}, err != nil
	}})
}
