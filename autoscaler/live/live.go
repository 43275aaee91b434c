// Package live tells a decision what it is made of at the moment: the target's pods
// from what is known of the cluster, and metrics straight from memory, rounded as
// the metrics APIs round them, so that decisions are those that would have been
// made through the APIs.
//
// # Pods
//
// Pods are what the API server says of them, as the cluster's watch has it. They
// are found by an index of each namespace's labels, which follows the facts change
// by change (index.go), so that ten thousand autoscalers cost no more than their
// own pods do.
//
// # Metrics
//
// Resource and ContainerResource metrics are what metrics.k8s.io would answer for
// the pods at this moment: which pods and containers, by the rule of package
// resourceusage, which the API itself goes by; nanocores and bytes, each
// container's rounded up to thousandths and then added; the pod's timestamp cut to
// the second, for the API's encoding has no more. Pods, Object and External metrics
// are asked of the very providers that serve custom.metrics.k8s.io and
// external.metrics.k8s.io. An error says what Kubernetes' controller would have
// been told.
//
// # Earlier
//
// At answers as of an earlier moment that memory still reaches. Usage is then of the
// history (exact to four millionths, its window the time between two points); pods
// are those known today that had started, with the readiness, requests and phase
// they have today. Pods that have gone since are not in it. Of Pods, Object and
// External metrics nothing is remembered, which is an error.
package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// View is one immutable state of what was measured.
type View interface {
	// At returns when the newest number in the view was read; zero if nothing
	// has been.
	At() time.Time
	// EachOfPods calls do with what is served of some pods: for each, in the order
	// given, the pod's own sample if there is one, then its containers', by name,
	// until do returns false. i is the pod's index; a sample is good until do
	// returns.
	EachOfPods(pods []metric.PodRef, do func(i int, s *metric.Sample) bool)
	// Points yields what is remembered of a metric of an entity, oldest first.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
}

// Custom answers for custom.metrics.k8s.io.
type Custom interface {
	GetMetricByName(ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValue, error)
	GetMetricBySelector(ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo, metricSelector labels.Selector) (*custom_metrics.MetricValueList, error)
}

// External answers for external.metrics.k8s.io.
type External interface {
	GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error)
}

// Options says where the answers come from.
type Options struct {
	// View returns the newest state; nil before there is one. Required.
	View func() View
	// Facts returns what the API server says. Required.
	Facts func() *cluster.Facts
	// Custom and External are asked for metrics of other kinds. Nil: there are none,
	// and a metric of that kind is an error.
	Custom   Custom
	External External
	// Timeout is how long Custom or External may take for one metric; 0 means 30 s.
	Timeout time.Duration
	// World is what reasons are made of. Nil: there are no reasons.
	World func() *explain.World
	// Stands is how long an earlier number stands where nothing newer came; 0 means
	// a minute. It is for At alone: of now the state itself knows.
	Stands time.Duration
	// Reach is how far back memory goes; 0 means 15 minutes, negative that nothing
	// is remembered.
	Reach time.Duration
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

// Live is where decisions get pods and metrics from. It is safe for concurrent use.
type Live struct {
	options Options
	index   *index
	at      time.Time // zero for now
}

// New returns a Live of the moment.
func New(o Options) *Live {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Stands == 0 {
		o.Stands = time.Minute
	}
	if o.Reach == 0 {
		o.Reach = 15 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Live{options: o, index: newIndex()}
}

// At returns a Live that answers as of an earlier time. The error is that of a time
// of which memory has nothing.
func (l *Live) At(t time.Time) (*Live, error) {
	now := l.options.Now()
	switch {
	case l.options.Reach < 0:
		return nil, errors.New("weir keeps no history here: see option history of the sink memory")
	case t.After(now):
		return nil, fmt.Errorf("%s has not come yet", t.UTC().Format(time.RFC3339))
	case now.Sub(t) > l.options.Reach:
		return nil, fmt.Errorf("memory goes back %v, to %s", l.options.Reach, now.Add(-l.options.Reach).UTC().Format(time.RFC3339))
	}
	then := *l
	then.at = t
	return &then, nil
}
