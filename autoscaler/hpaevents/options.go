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

// Options configures a Reporter.
type Options struct {
	// Watcher watches HorizontalPodAutoscalers. New registers the Reporter with it; the
	// caller runs it. Required.
	Watcher *watcher.Watcher
	// Client creates and patches Events (events.k8s.io). Required.
	Client kubernetes.Interface
	// Scales reads the selectors of workloads. Required.
	Scales scaleclient.ScaleReader
	// Explainer returns the data for explanations at the current time. Required.
	Explainer func() *explain.Explainer
	// IsLeader reports whether this replica writes Events. All replicas watch, so that any of them can
	// become the writer. Default: it always writes.
	IsLeader func() bool
	// Instance names this process in Events. Default: "weir".
	Instance string

	// Registerer registers the weir_hpa_ metrics. Default: none.
	Registerer prometheus.Registerer
	// Logger gets a line for each failed read or write. Default: no log.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Watcher == nil || o.Client == nil || o.Scales == nil || o.Explainer == nil {
		return o, errors.New("the Events on autoscalers need a watcher, a client, scales and the state to explain")
	}
	if o.IsLeader == nil {
		o.IsLeader = func() bool { return true }
	}
	o.Instance = cmp.Or(o.Instance, "weir")
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	return o, nil
}

const (
	// checkInterval is the time between two checks of the pods.
	checkInterval = 15 * time.Second
	// grace is how long a pod must have no numbers before an Event, if the reason stays until somebody
	// acts. temporaryGrace is the same for temporary reasons, for example for a pod that has just
	// started.
	grace          = 30 * time.Second
	temporaryGrace = 2 * time.Minute
	// repeatInterval is the shortest time between two Events on one autoscaler with the same reasons;
	// minInterval is the shortest time between any two.
	repeatInterval = 5 * time.Minute
	minInterval    = time.Minute
	// burst is the number of Events that may be written at once for all autoscalers. eventInterval is
	// the time until one more may be written.
	burst         = 25
	eventInterval = 2 * time.Second
	// refreshInterval is the time after which the selector of a workload is read again. A new workload
	// is read at once. lookupGap is the shortest time between two such reads.
	refreshInterval = 30 * time.Minute
	lookupGap       = 200 * time.Millisecond
)
