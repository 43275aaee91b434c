package podmetrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// reasonTimeout bounds the wait for the reasons of a metric that a rule defines. A report has many pods.
const reasonTimeout = 2 * time.Second

// Verdicts returns a function that explains why a pod has no sample of the metric spec.Metrics[i], in
// the words of package explain. It returns false if that is not known. Readers of an earlier time
// know no reasons. All reasons are for the time of the first call, which follows the decision: a pod
// that is served by then has the reason Measured. A metric whose server exceeded reasonTimeout once has no
// further reasons. The function is safe for concurrent use.
func (r *Reader) Verdicts(namespace string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) func(i int, pod string) (decisionreport.PodVerdict, bool) {
	now := sync.OnceValue(func() *explain.Explainer { return r.options.Explainer() })
	hangs := make([]atomic.Bool, len(spec.Metrics))
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
			return findingVerdict(explainer.Why(p), m.Resource.Name)
		case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
			if f := explainer.Why(p); !isUsed(&f) {
				return findingVerdict(f, m.ContainerResource.Name)
			}
			return containerVerdict(explainer, p, m.ContainerResource)
		case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
			if v, missing := r.seriesVerdict(p.PodRef, m.Pods, &hangs[i]); missing {
				return v, true
			}
			return r.metricVerdict(explainer, p, m.Pods)
		}
		return decisionreport.PodVerdict{}, false
	}
}

// servedSince is the verdict on a pod that is served at the time of the explanation.
var servedSince = decisionreport.PodVerdict{
	Reason: metric.Measured.String(), Message: "it had no number when the decision was made, and has one now; the next decision uses it",
}

// isUsed reports whether the autoscaler uses the number of a finding. It does not use one that is
// Ambiguous.
func isUsed(f *explain.Finding) bool { return f.Served && f.Reason != metric.Ambiguous.String() }

// findingVerdict returns why an entity had no number of a resource. It returns false if the entity is
// served, and weir serves no such resource.
func findingVerdict(f explain.Finding, name corev1.ResourceName) (decisionreport.PodVerdict, bool) {
	if isUsed(&f) {
		return servedSince, name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	return decisionreport.PodVerdict{Reason: f.Reason, Message: f.Message, Advice: f.Advice}, true
}

// containerVerdict returns why a container of a served pod is not served.
func containerVerdict(explainer *explain.Explainer, p *cluster.Pod, m *autoscalingv2.ContainerResourceMetricSource) (decisionreport.PodVerdict, bool) {
	if p.Container(m.Container) == nil {
		return decisionreport.PodVerdict{Reason: metric.NotReported.String(), Message: "the pod has no container " + m.Container}, true
	}
	e, known := explainer.Container(p.PodRef, m.Container)
	if !known {
		return decisionreport.PodVerdict{}, false
	}
	group := metric.CPU
	if m.Name == corev1.ResourceMemory {
		group = metric.Memory
	}
	for _, f := range e.Findings {
		if f.Group == group.String() {
			return findingVerdict(f, m.Name)
		}
	}
	return decisionreport.PodVerdict{}, false
}

// seriesVerdict returns why a pod has no value for a metric that a rule defines. It sets hangs if the
// rule's server takes too long, and does not ask it then.
func (r *Reader) seriesVerdict(pod metric.PodRef, m *autoscalingv2.PodsMetricSource, hangs *atomic.Bool) (decisionreport.PodVerdict, bool) {
	rules, ok := r.options.Custom.(RuleExplainer)
	if !ok || hangs.Load() {
		return decisionreport.PodVerdict{}, false
	}
	selector, err := metricSelector(m.Metric.Selector)
	if err != nil {
		return decisionreport.PodVerdict{}, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), reasonTimeout)
	defer cancel()
	f, missing := rules.WhyNoSeries(ctx, pod, m.Metric.Name, selector)
	if ctx.Err() != nil {
		hangs.Store(true)
	}
	if !missing {
		return decisionreport.PodVerdict{}, false
	}
	return findingVerdict(f, "")
}

// metricVerdict returns why a pod had no value for a metric of the catalogue. It returns false if the
// pod is served, and the metric has a selector or nobody answers for it.
func (r *Reader) metricVerdict(explainer *explain.Explainer, p *cluster.Pod, m *autoscalingv2.PodsMetricSource) (decisionreport.PodVerdict, bool) {
	id, ok := metric.ByName(m.Metric.Name)
	if !ok {
		return decisionreport.PodVerdict{}, false
	}
	outcome := explainer.SurveyOf(id).Pod(p)
	if outcome.Served {
		return servedSince, m.Metric.Selector == nil && r.options.Custom != nil
	}
	return decisionreport.PodVerdict{Reason: outcome.Reason.String(), Message: outcome.Message(), Advice: explainer.Advice(p, &outcome)}, true
}
