package controller

import (
	"cmp"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/cluster/gates"
	"github.com/weir-metrics/weir/internal/recording"
)

// PodMetrics provides pods and metrics. *podmetrics.Reader implements it.
type PodMetrics interface {
	evaluate.PodMetrics
	// IsInMemory reports whether a metric is read without a request to another server.
	IsInMemory(m *autoscalingv2.MetricSpec) bool
}

// Options configures a Controller.
type Options struct {
	// Act lets the controller act on Autoscalers. Shadow lets it shadow HorizontalPodAutoscalers. At
	// least one is required.
	Act    bool
	Shadow bool

	// Watcher watches HorizontalPodAutoscalers and, for Act, Autoscalers. New registers the
	// controller with it; the caller runs it. Required.
	Watcher *watcher.Watcher
	// Client writes Events. Required.
	Client kubernetes.Interface
	// Autoscalers reads and writes the status of Autoscalers. Required for Act.
	Autoscalers v1alpha1.Getter
	// Scales reads and writes targets. Required.
	Scales scaleclient.Scales
	// Metrics provides pods and metrics. Required.
	Metrics PodMetrics
	// IsLeader reports whether this replica writes. Default: it always writes.
	IsLeader func() bool
	// Settings returns the settings of a decision, and the feature gates that they follow, for its
	// report. The gates may be nil. What it returns must not change later. Default:
	// autoscaler.DefaultSettings, without gates.
	Settings func() (*autoscaler.Settings, *gates.Gates)

	// Period is the time between two decisions about one object. Default: 15s.
	Period time.Duration
	// PeekInterval is how often an Autoscaler's metrics are checked between two decisions. If they
	// require another count, the next decision is made at once. All checks together use at most a
	// twentieth of a core. Default: 0, which means never.
	PeekInterval time.Duration
	// Workers is the number of decisions that run at once. Default: 5.
	Workers int
	// Resolution is how old the metrics of a controller may be. The metrics of two controllers may
	// differ by that time, and comparisons allow for it. Default: 15s.
	Resolution time.Duration

	// RecordTarget receives a target when it is first seen, when its replicas or its autoscaler's
	// specification change, and when it is no longer followed. It also receives each target every five
	// minutes, because a recording may continue in another file. Several goroutines call it. Default:
	// none.
	RecordTarget func(*recording.ScaleTarget, time.Time)
	// Registerer registers the weir_autoscaler_ metrics. Default: none.
	Registerer prometheus.Registerer
	// Logger gets a line for each rescale, and for each failed read or write. Default: no log.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Watcher == nil || o.Client == nil || o.Scales == nil || o.Metrics == nil {
		return o, errors.New("autoscaling needs a watcher, a client, scales and metrics")
	}
	if !o.Act && !o.Shadow {
		return o, errors.New("autoscaling has nothing to do: neither to act on Autoscalers nor to shadow HorizontalPodAutoscalers")
	}
	if o.Act && o.Autoscalers == nil {
		return o, errors.New("autoscaling needs a client of Autoscalers")
	}
	if o.IsLeader == nil {
		o.IsLeader = func() bool { return true }
	}
	if o.Settings == nil {
		s := autoscaler.DefaultSettings()
		o.Settings = func() (*autoscaler.Settings, *gates.Gates) { return &s, nil }
	}
	o.Workers = cmp.Or(o.Workers, 5)
	o.Period = cmp.Or(o.Period, 15*time.Second)
	o.Resolution = cmp.Or(o.Resolution, 15*time.Second)
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	return o, nil
}

const (
	// syncTimeout bounds the reads of one decision: the scale and the metrics. Writes have writeTimeout. It
	// is longer than the default timeout of a rule (10 s): a query that hangs then fails before the decision
	// gives up, and its failure is kept for other decisions.
	syncTimeout = 12 * time.Second
	// writeTimeout bounds the time of the write of a scale. It must be less than the time that a Lease
	// guarantees between two leaders (its duration less the renew deadline).
	writeTimeout = 4 * time.Second
	// statusInterval is the shortest time between two writes of a status in which only values and
	// explanations changed.
	statusInterval = time.Minute
)
