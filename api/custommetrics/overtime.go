package custommetrics

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// overTime returns the metric over time that a rule defines, or nil.
func (p *Provider) overTime(info provider.CustomMetricInfo) *metricsgroup.OverTime {
	if p.options.Rules == nil {
		return nil
	}
	return p.options.Rules.OverTime(info.GroupResource, info.Metric)
}

// readOverTime returns the function of the values in the window that ends with the newest one, which is
// the reading r of s. It leaves out the values of an earlier pod of the same name.
func (m *metricRequest) readOverTime(s *metric.Sample, r reading) reading {
	from := time.Unix(0, r.at).Add(-m.rule.Window)
	if p := m.facts.Pod(s.Entity.PodRef()); p != nil && p.Started.After(from) {
		from = p.Started
	}
	values := m.view.PastValues(s.Entity, m.descriptor.ID, from.Add(time.Nanosecond))
	if len(values) == 0 {
		values = append(values, r.value)
	}
	r.value, r.window = m.rule.Of(values), m.rule.Window
	return r
}

// whyNotMeasured returns why a pod has no value of a metric over time. It returns false if it has one.
func (p *Provider) whyNotMeasured(ref metric.PodRef, info provider.CustomMetricInfo, selector labels.Selector) (explain.Finding, bool) {
	q, err := p.newRequest(info, string(ref.Namespace), selector)
	if err != nil || q.facts.Pod(ref) == nil {
		return explain.Finding{}, false
	}
	pod := q.facts.Pod(ref)
	e := q.explanation()
	outcome := e.SurveyOf(q.descriptor.ID).Pod(pod)
	if outcome.Served {
		return explain.Finding{}, false
	}
	return explain.Finding{Reason: outcome.Reason.String(), Message: outcome.Message(), Advice: e.Advice(pod, &outcome)}, true
}
