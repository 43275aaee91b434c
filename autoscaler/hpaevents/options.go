package hpaevents

import (
	"cmp"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/explain"
)

// Options configure a Reporter.
type Options struct {
	// Watcher watches HorizontalPodAutoscalers. New registers the Reporter with it; the
	// caller runs it. Required.
	Watcher *watcher.Watcher
	// Client creates and patches Events (events.k8s.io). Required.
	Client kubernetes.Interface
	// Scales reads the selectors of workloads. Required.
	Scales scaleclient.Reader
	// World returns what answers are made of now. Required.
	World func() *explain.World
	// IsLeader reports whether this replica writes Events. All replicas watch, so that any can take
	// over. Default: always.
	IsLeader func() bool
	// Instance names this process in Events. Default: "weir".
	Instance string

	// Interval is the time between two checks of the pods. Default: 15s.
	Interval time.Duration
	// Grace is how long a pod must be without numbers before an Event, for reasons that stay
	// until somebody acts. Default: 30s.
	Grace time.Duration
	// TemporaryGrace is the same for temporary reasons, such as a pod that has just started;
	// longer than Grace. Default: 2m.
	TemporaryGrace time.Duration
	// RepeatInterval is the least time between two Events on one autoscaler with the same
	// reasons. Default: 5m.
	RepeatInterval time.Duration
	// MinInterval is the least time between two Events on one autoscaler. Default: 1m.
	MinInterval time.Duration
	// Burst is how many Events may be written at once for all autoscalers. Every is the time
	// until one more may be written. Default: 25, and one in 2s.
	Burst int
	Every time.Duration
	// Refresh is after how long the selector of a workload is read again; a new workload is read
	// at once. Default: 30m.
	Refresh time.Duration
	// LookupGap is the least time between two such reads. Default: 200ms.
	LookupGap time.Duration

	// Registerer takes the weir_hpa_ metrics. Default: none.
	Registerer prometheus.Registerer
	// Logger gets what cannot be read or written. Default: no log.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Watcher == nil || o.Client == nil || o.Scales == nil || o.World == nil {
		return o, errors.New("the Events on autoscalers need a watcher, a client, scales and the state to explain")
	}
	if o.IsLeader == nil {
		o.IsLeader = func() bool { return true }
	}
	o.Instance = cmp.Or(o.Instance, "weir")
	o.Burst = cmp.Or(o.Burst, 25)
	o.Interval = cmp.Or(o.Interval, 15*time.Second)
	o.Grace = cmp.Or(o.Grace, 30*time.Second)
	o.TemporaryGrace = max(cmp.Or(o.TemporaryGrace, 2*time.Minute), o.Grace)
	o.RepeatInterval = cmp.Or(o.RepeatInterval, 5*time.Minute)
	o.MinInterval = cmp.Or(o.MinInterval, time.Minute)
	o.Every = cmp.Or(o.Every, 2*time.Second)
	o.Refresh = cmp.Or(o.Refresh, 30*time.Minute)
	o.LookupGap = cmp.Or(o.LookupGap, 200*time.Millisecond)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, nil
}
