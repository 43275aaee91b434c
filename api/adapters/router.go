package adapters

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/external_metrics"
	externalv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Router answers requests for custom and external metrics from weir's own providers and from
// adapters. It is safe for concurrent use.
type Router struct {
	options  Options
	adapters []*adapter

	mu struct {
		sync.Mutex
		changed []func() // called after a change of an adapter's list
	}
}

// Options configure a Router.
type Options struct {
	// Adapters are in the order in which they are asked. Required.
	Adapters []Adapter
	// Custom and External answer what no adapter takes. External may be nil. If both are Changing, both
	// lists change together, as those of rules.
	Custom   provider.CustomMetricsProvider
	External provider.ExternalMetricsProvider
	// Logger gets a line when an adapter's list of metrics can no longer be read, and when it can again.
	Logger *zap.Logger
	// Registerer gets the Router's own metrics; nil for none.
	Registerer prometheus.Registerer
}

// telemetry holds the metrics about adapters.
type telemetry struct {
	requests *prometheus.CounterVec   // by adapter and result
	duration *prometheus.HistogramVec // by adapter
	listed   *prometheus.GaugeVec     // by adapter
	up       *prometheus.GaugeVec     // by adapter
}

func newTelemetry(reg prometheus.Registerer) telemetry {
	auto := promauto.With(reg)
	return telemetry{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_adapter_requests_total", Help: "Requests to other adapters of custom and external metrics, by result: ok or error.",
		}, []string{"adapter", "result"}),
		duration: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_adapter_request_duration_seconds", Help: "Time a request to another adapter took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8), // 1 ms to 16 s
		}, []string{"adapter"}),
		listed: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_adapter_metrics", Help: "Metrics that another adapter lists and weir routes to it.",
		}, []string{"adapter"}),
		up: auto.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_adapter_up", Help: "Whether another adapter's list of metrics could be read last time.",
		}, []string{"adapter"}),
	}
}

// New returns a Router. It asks no adapter: Run does.
func New(o Options) *Router {
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	t := newTelemetry(o.Registerer)
	r := &Router{options: o}
	for _, a := range o.Adapters {
		one := &adapter{client: &client{Adapter: a, slots: make(chan struct{}, maxRequests), telemetry: t}}
		one.last.Store(noList)
		r.adapters = append(r.adapters, one)
	}
	return r
}

// Close closes idle connections.
func (r *Router) Close() {
	for _, a := range r.adapters {
		a.close()
	}
}

// requires reports whether a selector requires a label: with it, only objects that have it match.
func requires(selector labels.Selector, label string) bool {
	if label == "" {
		return true
	}
	if selector == nil {
		return false
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In, selection.Exists:
			if r.Key() == label {
				return true
			}
		}
	}
	return false
}

func customPatterns(a *adapter) []string   { return a.Custom }
func externalPatterns(a *adapter) []string { return a.External }

// route returns the first adapter that takes a request for a metric; nil for weir itself.
func (r *Router) route(patterns func(*adapter) []string, namespace, metric string, selector labels.Selector) *adapter {
	for _, a := range r.adapters {
		if takes(patterns(a), metric) && a.takesNamespace(namespace) && requires(selector, a.SelectorLabel) {
			return a
		}
	}
	return nil
}

// CustomAnsweredBy names who answers a request for a custom metric: "weir" or "adapter NAME".
func (r *Router) CustomAnsweredBy(namespace, metric string, metricSelector labels.Selector) string {
	return r.route(customPatterns, namespace, metric, metricSelector).String()
}

// ExternalAnsweredBy names who answers a request for an external metric.
func (r *Router) ExternalAnsweredBy(namespace, metric string, metricSelector labels.Selector) string {
	return r.route(externalPatterns, namespace, metric, metricSelector).String()
}

// GetExternalMetric is part of provider.ExternalMetricsProvider.
func (r *Router) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	a := r.route(externalPatterns, namespace, info.Metric, selector)
	if a == nil {
		if r.options.External == nil {
			return nil, metricsgroup.NotFound("there is no external metric %s: no rule defines it, and no adapter takes it", info.Metric)
		}
		return r.options.External.GetExternalMetric(ctx, namespace, selector, info)
	}
	if a.Scaler != "" {
		return a.scalerValues(ctx, namespace, info.Metric, selector)
	}
	object, err := a.get(ctx, externalv1beta1.SchemeGroupVersion, selectorQuery("labelSelector", selector), "namespaces", namespace, info.Metric)
	if err != nil {
		return nil, err
	}
	list, ok := object.(*external_metrics.ExternalMetricValueList)
	switch {
	case !ok:
		return nil, a.unusable("it answered with %T instead of a list of values", object)
	case len(list.Items) > maxItems:
		return nil, a.unusable("it answered with %d values, and at most %d are taken", len(list.Items), maxItems)
	}
	return list, nil
}

// selectorQuery returns the query of a selector; empty for one that selects everything.
func selectorQuery(key string, selector labels.Selector) url.Values {
	if selector == nil || selector.Empty() {
		return url.Values{}
	}
	return url.Values{key: {selector.String()}}
}

// GetMetricByName is part of provider.CustomMetricsProvider.
func (r *Router) GetMetricByName(ctx context.Context, object types.NamespacedName, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValue, error) {
	a := r.route(customPatterns, object.Namespace, info.Metric, metricSelector)
	if a == nil {
		return r.options.Custom.GetMetricByName(ctx, object, info, metricSelector)
	}
	list, err := a.customMetric(ctx, object, info, selectorQuery("metricLabelSelector", metricSelector))
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, a.unusable("it answered with %d values of one object", len(list.Items))
	}
	return &list.Items[0], nil
}

// GetMetricBySelector is part of provider.CustomMetricsProvider.
func (r *Router) GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValueList, error) {
	a := r.route(customPatterns, namespace, info.Metric, metricSelector)
	if a == nil {
		return r.options.Custom.GetMetricBySelector(ctx, namespace, selector, info, metricSelector)
	}
	query := selectorQuery("metricLabelSelector", metricSelector)
	maps.Copy(query, selectorQuery("labelSelector", selector))
	return a.customMetric(ctx, types.NamespacedName{Namespace: namespace, Name: "*"}, info, query)
}

// customMetric asks for the values of an object, or of several if the name is "*".
func (a *adapter) customMetric(ctx context.Context, object types.NamespacedName, info provider.CustomMetricInfo, query url.Values) (*custom_metrics.MetricValueList, error) {
	path := []string{info.GroupResource.String(), object.Name, info.Metric}
	switch resource := info.GroupResource.String(); {
	case object.Namespace != "":
		path = append([]string{"namespaces", object.Namespace}, path...)
	case resource == "namespaces" && object.Name != "*":
		path = []string{"namespaces", object.Name, "metrics", info.Metric}
	}
	answer, err := a.get(ctx, a.last.Load().version, query, path...)
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*custom_metrics.MetricValueList)
	switch {
	case !ok:
		return nil, a.unusable("it answered with %T instead of a list of values", answer)
	case len(list.Items) > maxItems:
		return nil, a.unusable("it answered with %d values, and at most %d are taken", len(list.Items), maxItems)
	}
	for i := range list.Items {
		if described := &list.Items[i].DescribedObject; object.Namespace != "" && described.Namespace != object.Namespace {
			return nil, a.unusable("it answered with %s of namespace %q", described.Name, described.Namespace)
		}
	}
	return list, nil
}

// ListAllMetrics returns weir's own custom metrics and those that adapters listed last.
func (r *Router) ListAllMetrics() (all []provider.CustomMetricInfo) {
	all = r.options.Custom.ListAllMetrics()
	for _, a := range r.adapters {
		all = append(all, a.last.Load().custom...)
	}
	return metricsgroup.WithoutRepeated(all)
}

// ListAllExternalMetrics returns weir's own external metrics and those that adapters listed last.
func (r *Router) ListAllExternalMetrics() (all []provider.ExternalMetricInfo) {
	if r.options.External != nil {
		all = r.options.External.ListAllExternalMetrics()
	}
	for _, a := range r.adapters {
		all = append(all, a.last.Load().external...)
	}
	return metricsgroup.WithoutRepeated(all)
}

var (
	_ provider.CustomMetricsProvider   = (*Router)(nil)
	_ provider.ExternalMetricsProvider = (*Router)(nil)
	_ metricsgroup.Changing            = (*Router)(nil)
	_ podmetrics.RuleExplainer         = (*Router)(nil)
	_ podmetrics.Router                = (*Router)(nil)
)

// OnListChange is part of metricsgroup.Changing.
func (r *Router) OnListChange(do func()) {
	// The rules that External has change the list of Custom, too.
	own, ok := r.options.External.(metricsgroup.Changing)
	if !ok {
		own, ok = r.options.Custom.(metricsgroup.Changing)
	}
	r.mu.Lock()
	r.mu.changed = append(r.mu.changed, do)
	r.mu.Unlock()
	if ok {
		own.OnListChange(do)
	} else {
		do()
	}
}

// HasRule reports whether a custom metric is read from another server: from an adapter, or by a rule of
// weir's own.
func (r *Router) HasRule(resource schema.GroupResource, name string) bool {
	if slices.ContainsFunc(r.adapters, func(a *adapter) bool { return takes(a.Custom, name) }) {
		return true
	}
	own, ok := r.options.Custom.(podmetrics.RuleExplainer)
	return ok && own.HasRule(resource, name)
}

// WhyNoSeries returns why a pod has no value of a metric that one of weir's own rules defines.
func (r *Router) WhyNoSeries(ctx context.Context, pod metric.PodRef, name string, selector labels.Selector) (explain.Finding, bool) {
	own, ok := r.options.Custom.(podmetrics.RuleExplainer)
	if !ok || r.route(customPatterns, string(pod.Namespace), name, selector) != nil {
		return explain.Finding{}, false
	}
	return own.WhyNoSeries(ctx, pod, name, selector)
}

// Run reads the lists of metrics of all adapters now and each minute until ctx ends.
func (r *Router) Run(ctx context.Context) error {
	defer r.Close()
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		if r.ReadLists(ctx) {
			r.mu.Lock()
			for _, do := range r.mu.changed {
				do()
			}
			r.mu.Unlock()
		}
	}, listInterval)
	return nil
}
