// Package podmetrics provides the pods and metrics of a decision: the target's pods from the
// cluster facts, and metrics from weir's memory. It rounds metrics as the metrics APIs do, so that
// decisions are the same as through the APIs.
//
// The files: podmetrics.go has the Reader; pods.go has the pods; readings.go reads metrics; usage.go
// reads current and past resource metrics; custom.go reads the other types of metrics; verdicts.go
// explains why a sample is missing.
//
// # Pods
//
// Pods come from the watch of package informer, and podindex finds those of an autoscaler. It follows
// each change of the facts, so the cost of an autoscaler depends only on its own pods.
//
// # Metrics
//
// Resource and ContainerResource metrics are what metrics.k8s.io would serve for the pods at this
// time. Package resourceusage has the rule, and the API uses it, too. Nanocores and bytes of each
// container are rounded up to thousandths and then added. Timestamps are truncated to seconds, as
// the encoding of the API does. Pods, Object and External metrics come from the providers that
// serve custom.metrics.k8s.io and external.metrics.k8s.io. Errors of APIs have the words of
// Kubernetes' controller.
//
// # Earlier times
//
// Reader.At reads an earlier time within the history. Usage then comes from the history (exact to
// four millionths; the window is the time between two points). Pods are the currently known pods
// that had started by then, with their current readiness, requests and phase. Pods that were
// deleted since are missing. Pods, Object and External metrics have no history, so they are an
// error.
package podmetrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/podindex"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// UsageReader is one immutable state of the measurements.
type UsageReader interface {
	// At returns the time of the newest read; zero before the first read.
	At() time.Time
	// PodUsage fills u with the usage of a pod that was measured completely. It reuses the memory of
	// u. It returns false if there is none.
	PodUsage(pod metric.PodRef, u *resourceusage.PodUsage) bool
	// Points yields the history of a metric of an entity, oldest first.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
}

// CustomMetrics answers requests for custom.metrics.k8s.io.
type CustomMetrics interface {
	GetMetricByName(ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValue, error)
	GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValueList, error)
}

// RuleExplainer is CustomMetrics that rules may define.
type RuleExplainer interface {
	// HasRule reports whether a metric is read from another server than this weir.
	HasRule(resource schema.GroupResource, name string) bool
	// WhyNoSeries returns why a pod has no value of a metric that a rule defines. It returns false if no rule
	// does, if the pod has a value, or if that is not known.
	WhyNoSeries(ctx context.Context, pod metric.PodRef, name string, selector labels.Selector) (explain.Finding, bool)
}

// Router is CustomMetrics that other adapters may answer. It names who answers a metric: "weir", or
// "adapter NAME".
type Router interface {
	CustomAnsweredBy(namespace, metric string, metricSelector labels.Selector) string
	ExternalAnsweredBy(namespace, metric string, metricSelector labels.Selector) string
}

// ExternalMetrics answers requests for external.metrics.k8s.io.
type ExternalMetrics interface {
	GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error)
}

// Options configures a Reader.
type Options struct {
	// View returns the newest state; nil before the first read. Required.
	View func() UsageReader
	// Facts returns the cluster facts. Required.
	Facts func() *cluster.Facts
	// Custom and External provide metrics of the other types. If one is nil, such a metric is an
	// error.
	Custom   CustomMetrics
	External ExternalMetrics
	// Timeout bounds one request to Custom or External; 0 means 30 s.
	Timeout time.Duration
	// Explainer returns the data for explanations. If it is nil, no reasons are given.
	Explainer func() *explain.Explainer
	// MaxAge is the largest age of the last known value of a metric; 0 means one minute. Only readers
	// of an earlier time use it, because the current state already follows that rule.
	MaxAge time.Duration
	// HistoryLength is the length of the history; 0 means metric.DefaultHistory, a negative value means that
	// there is no history.
	HistoryLength time.Duration
	// Now returns the current time. Default time.Now.
	Now func() time.Time
}

// Reader reads the pods and metrics of decisions. It is safe for concurrent use.
type Reader struct {
	options Options
	index   *podindex.Index
	at      time.Time // zero means now
}

// New returns a Reader of the current state.
func New(o Options) *Reader {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxAge = cmp.Or(o.MaxAge, time.Minute)
	o.HistoryLength = cmp.Or(o.HistoryLength, metric.DefaultHistory)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Reader{options: o, index: podindex.New()}
}

// At returns a Reader of an earlier time. It fails if there is no history of that time.
func (r *Reader) At(t time.Time) (*Reader, error) {
	now := r.options.Now()
	switch {
	case r.options.HistoryLength < 0:
		return nil, errors.New("weir keeps no history here: see option history of the sink memory")
	case t.After(now):
		return nil, fmt.Errorf("%s is in the future", t.UTC().Format(time.RFC3339))
	case now.Sub(t) > r.options.HistoryLength:
		return nil, fmt.Errorf("memory goes back %v, to %s", r.options.HistoryLength, now.Add(-r.options.HistoryLength).UTC().Format(time.RFC3339))
	}
	earlier := *r
	earlier.at = t
	return &earlier, nil
}
