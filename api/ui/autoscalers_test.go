package ui_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/samplecluster"
)

// decision is the decision about one autoscaler.
type decision struct {
	*autoscaler.Decision
	decisionreport.Context
}

// decisions returns the decisions about three autoscalers: an HPA with two pods, one of them
// without a number; an HPA without any number; and an Autoscaler that does not scale.
func decisions() []decision {
	of := func(kind, mode, name string, replicas int32, pods []string, samples []autoscaler.PodSample, err error) decision {
		percent := int32(50)
		settings := autoscaler.DefaultSettings()
		in := &autoscaler.Input{
			Now: samplecluster.Noon.Add(-4 * time.Second), Settings: &settings, Object: types.NamespacedName{Namespace: "shop", Name: name},
			Spec: &autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: 10,
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}},
			},
			Memory: autoscaler.Memory{Recommendations: []autoscaler.ReplicaRecommendation{{Replicas: replicas, At: samplecluster.Noon.Add(-time.Hour)}}},
			Scale:  autoscaler.Scale{SpecReplicas: replicas, StatusReplicas: replicas, Selector: "app=" + name},
			ReadMetric: func(int) autoscaler.Reading {
				return autoscaler.Reading{Samples: samples, At: samplecluster.Noon, Err: err}
			},
		}
		autoscaler.Default(in.Spec)
		for _, pod := range pods {
			in.Pods = append(in.Pods, autoscaler.PodInput{Name: pod, Phase: cluster.Running, Started: samplecluster.Noon.Add(-time.Hour), Ready: cluster.ReadyTrue,
				Containers: []autoscaler.ContainerInput{{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 100, Set: true}}}}})
		}
		return decision{autoscaler.Decide(in), decisionreport.Context{Kind: kind, Mode: mode, Input: in, Verdict: func(_ int, pod string) (decisionreport.PodVerdict, bool) {
			return decisionreport.PodVerdict{Reason: "NodeTimeout", Message: "node n3 did not answer in time", Advice: "Check whether the node is overloaded. `weir explain node n3` shows more."}, pod == "web-4"
		}}}
	}
	sample := func(pod string, milli int64) autoscaler.PodSample {
		return autoscaler.PodSample{Pod: pod, Milli: milli, At: samplecluster.Noon.Add(-10 * time.Second), Window: 15 * time.Second}
	}
	web := of("HorizontalPodAutoscaler", decisionreport.Shadow, "web", 2, []string{"web-1", "web-4"}, []autoscaler.PodSample{sample("web-1", 250)}, nil)
	web.OtherController = &decisionreport.OtherController{Desired: 2, Difference: "it read the metrics 14 s earlier"}
	return []decision{
		of("Autoscaler", decisionreport.Active, "still", 1, []string{"web-1"}, []autoscaler.PodSample{sample("web-1", 50)}, nil),
		web,
		of("HorizontalPodAutoscaler", decisionreport.Shadow, "lost", 1, []string{"web-4"}, nil, errors.New("no metrics returned from resource metrics API")),
	}
}

// scaled returns the page of a cluster with autoscalers.
func scaled(w *samplecluster.Cluster, all []decision) *ui.Handler {
	return ui.New(ui.Options{Explainer: w.Explainer,
		Autoscalers: func() (briefs []decisionreport.DecisionSummary) {
			for _, d := range all {
				briefs = append(briefs, decisionreport.Summarize(d.Decision, d.Context))
			}
			return briefs
		},
		Autoscaler: func(kind, namespace, name string) (*decisionreport.DecisionReport, bool) {
			for _, d := range all {
				if d.Kind == kind && d.Object == (types.NamespacedName{Namespace: namespace, Name: name}) {
					return decisionreport.New(d.Decision, d.Context), true
				}
			}
			return nil, false
		},
	})
}

// All links of an autoscaler's page lead to pages.
func TestAutoscalersLead(t *testing.T) {
	h := scaled(samplecluster.Failing(t), decisions())
	for _, query := range []string{"?autoscalers", "?hpa=shop/web", "?autoscaler=shop/still"} {
		_, _, body := get(t, h, query)
		for _, part := range strings.Split(body, `href="?`)[1:] {
			link, _, _ := strings.Cut(part, `"`)
			link = "?" + strings.ReplaceAll(link, "&amp;", "&")
			if status, _, _ := get(t, h, link); status != http.StatusOK {
				t.Errorf("%s links to %s: %d", query, link, status)
			}
		}
	}
}

// Pods without a number and with the same reason share a row, with their count. A pod that was measured before
// has that time.
func TestPodsWithoutANumberShareARow(t *testing.T) {
	w := samplecluster.Failing(t)
	const reason = "NodeTimeout: node n3 did not answer in time"
	m := decisionreport.MetricReport{Name: "cpu", Type: "Resource", Error: "no metrics", Pods: []decisionreport.PodReport{
		{Name: "web-1", Class: "Counted", Usage: "250m", Request: "100m", MeasuredAt: samplecluster.Noon.Add(-10 * time.Second)},
		{Name: "web-4", Class: "Missing", Request: "100m", Reason: reason},
	}}
	for i := range 27 {
		m.Pods = append(m.Pods, decisionreport.PodReport{Name: fmt.Sprintf("lost-%02d", i), Class: "Missing", Request: "100m", Reason: reason})
	}
	h := ui.New(ui.Options{Explainer: w.Explainer, Points: w.Points, Autoscaler: func(string, string, string) (*decisionreport.DecisionReport, bool) {
		return &decisionreport.DecisionReport{Metrics: []decisionreport.MetricReport{m}}, true
	}})
	_, _, body := get(t, h, "?hpa=shop/web")
	got, err := text(body)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, reason); n != 1 {
		t.Errorf("the reason stands %d times on the page, want once", n)
	}
	for _, want := range []string{
		"| [web-4](?pod=shop/web-4) and 27 more | missing | – | 100m | 4m7s ago", "| [web-1](?pod=shop/web-1) | counted | 250m | 100m | 10s ago",
		"their names [lost-00](?pod=shop/lost-00)", "[lost-11](?pod=shop/lost-11) …",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not have %q:\n%s", want, got)
		}
	}
}
