package custommetrics

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// RuleMetrics answers for the metrics that rules define.
type RuleMetrics interface {
	// ListObjectMetrics returns the metrics, in the order of the rules.
	ListObjectMetrics() []provider.CustomMetricInfo
	// HasObjectMetric reports whether a rule has a query for a metric.
	HasObjectMetric(resource schema.GroupResource, name string) bool
	// OverTime returns the metric over time that a rule defines, or nil.
	OverTime(resource schema.GroupResource, name string) *metricsgroup.OverTime
	// Mistake returns what is wrong with a rule of that name, or nothing.
	Mistake(name string) string
	// GetObjectMetric returns the values of a metric for the objects in a namespace, or for those in no
	// namespace. It returns nil if no rule has a query for the metric.
	GetObjectMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo) (metricsgroup.ObjectMetric, error)
	metricsgroup.Changing
}

// unknownMetric returns the error for a metric that neither weir measures nor a rule defines.
func (p *Provider) unknownMetric(info provider.CustomMetricInfo) error {
	rules := p.options.Rules
	measured := p.requestFor(info.GroupResource, "") != nil
	switch {
	case rules != nil && rules.Mistake(info.Metric) != "":
		return metricsgroup.NotFound("the rule of %s has a mistake: %s", info.Metric, rules.Mistake(info.Metric))
	case rules != nil:
		return metricsgroup.NotFound("%s have no metric %s: no rule defines it; GET /apis/%s/v1beta2 lists those there are", info.GroupResource, info.Metric, custom_metrics.GroupName)
	case measured:
		return metricsgroup.NotFound("%s have no metric %s: GET /apis/%s/v1beta2 lists those there are", info.GroupResource, info.Metric, custom_metrics.GroupName)
	}
	return metricsgroup.NotFound("weir has metrics of pods, nodes and namespaces, not of %s", info.GroupResource)
}

// maxNamed is the number of objects that a warning names.
const maxNamed = 5

// ruleMetric returns the metric of a rule with a query, or nil if there is none.
func (p *Provider) ruleMetric(ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo, selector labels.Selector) (metricsgroup.ObjectMetric, error) {
	if p.options.Rules == nil {
		return nil, nil
	}
	namespace := name.Namespace
	if namespace == "" && info.GroupResource == (schema.GroupResource{Resource: "namespaces"}) {
		namespace = name.Name
	}
	return p.options.Rules.GetObjectMetric(ctx, namespace, selector, info)
}

// ruleValue returns the value of one object, or the error with which the metric was read.
func ruleValue(ctx context.Context, m metricsgroup.ObjectMetric, name types.NamespacedName, info provider.CustomMetricInfo, err error) (*custom_metrics.MetricValue, error) {
	if err != nil {
		return nil, err
	}
	v, err := m.Value(name.Name)
	if v == nil && err == nil {
		return nil, missingObjectError(ctx, m, info, name.Namespace, name.Name)
	}
	return v, err
}

// missingObjectError returns the error that explains why an object has no series.
func missingObjectError(ctx context.Context, m metricsgroup.ObjectMetric, info provider.CustomMetricInfo, namespace, name string) error {
	object := strings.Trim(namespace+"/"+name, "/")
	return metricsgroup.NotFound("%s %s has no %s: %s", info.GroupResource, object, info.Metric, m.WhyMissing(ctx, name).Message)
}

// ruleValues returns the values of the objects with matching labels, or the error with which the metric
// was read. A warning names the objects without a series. It is an error if no object has one.
func (p *Provider) ruleValues(ctx context.Context, m metricsgroup.ObjectMetric, namespace string, selector labels.Selector, info provider.CustomMetricInfo, err error) (*custom_metrics.MetricValueList, error) {
	if err != nil {
		return nil, err
	}
	names, err := p.objectNames(ctx, m, namespace, selector, info)
	if err != nil {
		return nil, err
	}
	list := &custom_metrics.MetricValueList{Items: make([]custom_metrics.MetricValue, 0, len(names))}
	var missing []string
	for _, name := range names {
		switch v, err := m.Value(name); {
		case err != nil:
			return nil, err
		case v != nil:
			list.Items = append(list.Items, *v)
		default:
			missing = append(missing, name)
		}
	}
	switch {
	case len(list.Items) == 0:
		return nil, missingObjectError(ctx, m, info, namespace, missing[0])
	case len(missing) > 0:
		metricsgroup.Warn(ctx, "weir", fmt.Sprintf("%d of %d %s have no series of %s: %s", len(missing), len(names), info.GroupResource, info.Metric, humanize.List(missing, maxNamed)))
	}
	return list, nil
}

// objectNames returns the names of the objects with matching labels, sorted.
func (p *Provider) objectNames(ctx context.Context, m metricsgroup.ObjectMetric, namespace string, selector labels.Selector, info provider.CustomMetricInfo) ([]string, error) {
	q := p.requestFor(info.GroupResource, namespace)
	if q == nil || q.kind == metric.Namespaced {
		return p.otherObjectNames(ctx, m, namespace, selector, info)
	}
	entities, err := q.selectEntities(namespace, selector)
	if err != nil {
		return nil, err
	}
	if len(entities) == 0 {
		return nil, q.noneFound(namespace, selector, nil)
	}
	names := make([]string, len(entities))
	for i, e := range entities {
		if names[i] = string(e.Pod); q.kind == metric.Node {
			names[i] = string(e.Node)
		}
	}
	return names, nil
}

// HasRule reports whether a rule has a query for a metric, so that its values are not in weir's memory.
func (p *Provider) HasRule(resource schema.GroupResource, name string) bool {
	return p.options.Rules != nil && p.options.Rules.HasObjectMetric(resource, name)
}

// WhyNoSeries returns why a pod has no value of a metric that a rule defines. It returns false if no
// rule defines the metric, if the pod has a value, or if Prometheus does not answer.
func (p *Provider) WhyNoSeries(ctx context.Context, pod metric.PodRef, name string, selector labels.Selector) (explain.Finding, bool) {
	info := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: name}
	if p.overTime(info) != nil {
		return p.whyNotMeasured(pod, info, selector)
	}
	m, err := p.ruleMetric(ctx, types.NamespacedName{Namespace: string(pod.Namespace), Name: string(pod.Name)}, info, selector)
	if m == nil || err != nil {
		return explain.Finding{}, false
	}
	if v, err := m.Value(string(pod.Name)); v != nil || err != nil {
		return explain.Finding{}, false
	}
	return m.WhyMissing(ctx, string(pod.Name)), true
}
