package podmetrics

import (
	"context"
	"sync"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Verdicts returns a function that explains why a pod has no sample of the metric spec.Metrics[i], in
// the words of package explain. It returns false if that is not known. Readers of an earlier time
// know no reasons. All reasons are for the time of the first call. The function is safe for
// concurrent use.
func (r *Reader) Verdicts(namespace string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) func(i int, pod string) (decisionreport.PodVerdict, bool) {
	now := sync.OnceValue(func() *explain.Explainer { return r.options.Explainer() })
	return func(i int, pod string) (decisionreport.PodVerdict, bool) {
		if r.options.Explainer == nil || !r.at.IsZero() || i < 0 || i >= len(spec.Metrics) {
			return decisionreport.PodVerdict{}, false
		}
		explainer := now()
		p := explainer.Facts.Pod(metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(pod)})
		if p == nil {
			return decisionreport.PodVerdict{}, false
		}
		switch m := &spec.Metrics[i]; {
		case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
			return findingVerdict(explainer.Why(p))
		case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
			if v, missing := findingVerdict(explainer.Why(p)); missing {
				return v, true
			}
			return containerVerdict(explainer, p, m.ContainerResource)
		case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
			if v, missing := r.seriesVerdict(p.PodRef, m.Pods); missing {
				return v, true
			}
			return metricVerdict(explainer, p, m.Pods.Metric.Name)
		}
		return decisionreport.PodVerdict{}, false
	}
}

// findingVerdict returns why an entity is not served; false if it is served. The autoscaler does
// not use numbers that are Ambiguous.
func findingVerdict(f explain.Finding) (decisionreport.PodVerdict, bool) {
	if f.Served && f.Reason != metric.Ambiguous.String() {
		return decisionreport.PodVerdict{}, false
	}
	return decisionreport.PodVerdict{Reason: f.Reason, Message: f.Message, Advice: f.Advice}, true
}

// containerVerdict returns why a container of a served pod is not served.
func containerVerdict(fixture *explain.Explainer, p *cluster.Pod, m *autoscalingv2.ContainerResourceMetricSource) (decisionreport.PodVerdict, bool) {
	if p.Container(m.Container) == nil {
		return decisionreport.PodVerdict{Reason: metric.NotReported.String(), Message: "the pod has no container " + m.Container}, true
	}
	e, known := fixture.Container(p.PodRef, m.Container)
	if !known {
		return decisionreport.PodVerdict{}, false
	}
	group := metric.CPU
	if m.Name == corev1.ResourceMemory {
		group = metric.Memory
	}
	for _, f := range e.Findings {
		if f.Group == group.String() {
			return findingVerdict(f)
		}
	}
	return decisionreport.PodVerdict{}, false
}

// seriesExplainer explains why a pod has no series of a custom metric that a rule defines.
type seriesExplainer interface {
	WhyNoSeries(ctx context.Context, pod metric.PodRef, name string, selector labels.Selector) (explain.Finding, bool)
}

// seriesVerdict returns why a pod has no value for a metric that a rule defines.
func (r *Reader) seriesVerdict(pod metric.PodRef, m *autoscalingv2.PodsMetricSource) (decisionreport.PodVerdict, bool) {
	rules, ok := r.options.Custom.(seriesExplainer)
	if !ok {
		return decisionreport.PodVerdict{}, false
	}
	selector, err := metricSelector(m.Metric.Selector)
	if err != nil {
		return decisionreport.PodVerdict{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.options.Timeout)
	defer cancel()
	f, missing := rules.WhyNoSeries(ctx, pod, m.Metric.Name, selector)
	if !missing {
		return decisionreport.PodVerdict{}, false
	}
	return findingVerdict(f)
}

// metricVerdict returns why a pod has no value for a metric of the catalogue.
func metricVerdict(fixture *explain.Explainer, p *cluster.Pod, name string) (decisionreport.PodVerdict, bool) {
	id, ok := metric.ByName(name)
	if !ok {
		return decisionreport.PodVerdict{}, false
	}
	outcome := fixture.SurveyOf(id).Pod(p)
	if outcome.Served {
		return decisionreport.PodVerdict{}, false
	}
	reason := outcome.Reason.String()
	message := outcome.Message()
	return decisionreport.PodVerdict{Reason: reason, Message: message, Advice: fixture.Advice(p, &outcome)}, true
}
