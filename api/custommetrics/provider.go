package custommetrics

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	storage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/custom_metrics"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// SampleReader is one immutable state of samples and verdicts.
type SampleReader interface {
	explain.SnapshotReader
	// At returns when the newest number was read.
	At() time.Time
	// Each calls do for the sample of every entity of a kind, parts included, until do returns
	// false. The sample is valid until do returns.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// PastValues returns the values of a metric of an entity since a time, oldest first, as far as
	// there is a history.
	PastValues(e metric.Entity, id metric.ID, since time.Time) []float64
}

// Options describe what a Provider reads.
type Options struct {
	// View returns the newest state, or nil before there is one. Required.
	View func() SampleReader
	// Facts returns the cluster facts. Required.
	Facts func() *cluster.Facts
	// Sources returns the state of the sources, for reasons. Required.
	Sources func() []explain.SourceState
	// Rules has the metrics that rules define. Default: none.
	Rules RuleMetrics
	// Objects lists the objects of rules that are neither pods nor nodes. Without it, such lists have
	// no label selector.
	Objects *ClusterObjects
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

// Provider answers requests for custom metrics. It is safe for concurrent use.
type Provider struct {
	options Options
	all     []provider.CustomMetricInfo
}

var (
	_ provider.CustomMetricsProvider = (*Provider)(nil)
	_ podmetrics.RuleExplainer       = (*Provider)(nil)
)

// New returns a Provider.
func New(o Options) *Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Provider{options: o, all: catalogue()}
}

// Install serves custom.metrics.k8s.io from p with s.
func Install(s *genericserver.GenericAPIServer, p provider.CustomMetricsProvider) error {
	return metricsgroup.Install(s, custom_metrics.GroupName, p, installer.MetricsAPIGroupVersion{
		DynamicStorage: storage.NewREST(p), ResourceLister: provider.NewCustomMetricResourceLister(p), Handlers: &installer.CMHandlers{},
	})
}

// OnListChange is part of metricsgroup.Changing.
func (p *Provider) OnListChange(do func()) {
	if p.options.Rules != nil {
		p.options.Rules.OnListChange(do)
	}
}

// ListAllMetrics returns every pair of resource and metric: first those of the catalogue, in its order
// (pods, nodes, namespaces), then those that only rules define.
func (p *Provider) ListAllMetrics() []provider.CustomMetricInfo {
	if p.options.Rules == nil {
		return slices.Clone(p.all)
	}
	return metricsgroup.WithoutRepeated(slices.Concat(p.all, p.options.Rules.ListObjectMetrics()))
}

// GetMetricByName returns the metric of one object. If the sum of a namespace lacks pods, the
// answer has a warning.
func (p *Provider) GetMetricByName(ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo, selector labels.Selector) (*custom_metrics.MetricValue, error) {
	if m, err := p.ruleMetric(ctx, name, info, selector); m != nil || err != nil {
		return ruleValue(ctx, m, name, info, err)
	}
	q, err := p.newRequest(info, name.Namespace, selector)
	if err != nil {
		return nil, err
	}
	e := q.entity(name.Namespace, name.Name)
	if q.kind == metric.Pod && name.Namespace == "" {
		return nil, metricsgroup.BadRequest("a pod is named with its namespace: namespaces/NAMESPACE/pods/%s/%s", name.Name, info.Metric)
	}
	r, ok := q.measure(e)
	if !ok {
		return nil, q.notFound(e)
	}
	if q.kind == metric.Namespaced {
		q.warnOfGaps(ctx, e.Namespace)
	}
	v := q.value(e, r)
	return &v, nil
}

// GetMetricBySelector returns the metric of the objects with matching labels, sorted by namespace
// and name. A warning counts the objects without a number. It is an error if no object has a
// number.
func (p *Provider) GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValueList, error) {
	if m, err := p.ruleMetric(ctx, types.NamespacedName{Namespace: namespace}, info, metricSelector); m != nil || err != nil {
		return p.ruleValues(ctx, m, namespace, selector, info, err)
	}
	q, err := p.newRequest(info, namespace, metricSelector)
	if err != nil {
		return nil, err
	}
	entities, err := q.selectEntities(namespace, selector)
	if err != nil {
		return nil, err
	}
	list := &custom_metrics.MetricValueList{Items: make([]custom_metrics.MetricValue, 0, len(entities))}
	var missing []metric.Entity
	for _, e := range entities {
		if r, ok := q.measure(e); ok {
			list.Items = append(list.Items, q.value(e, r))
		} else {
			missing = append(missing, e)
		}
	}
	if len(list.Items) == 0 {
		return nil, q.noneFound(namespace, selector, missing)
	}
	q.warn(ctx, missing, len(entities))
	return list, nil
}
