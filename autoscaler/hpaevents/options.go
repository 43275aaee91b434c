package hpaevents

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/client-go/kubernetes"

	core "github.com/weir-metrics/weir/autoscaler"
	scale "github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/explain"
)

// Scales tells the pods of workloads. Those of package target do, and tests'
// stand-ins.
type Scales interface {
	// Get reads the scale of what ref names, whose selector tells the pods.
	Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (core.Scale, *scale.Handle, error)
}

// Options configure an Announcer.
type Options struct {
	// Client lists and watches HorizontalPodAutoscalers of all namespaces, and
	// creates and patches Events (events.k8s.io). Required.
	Client kubernetes.Interface
	// Scales tells which pods a workload scales. Required; target.New makes one.
	Scales Scales
	// World returns what answers are made of now. Required.
	World func() *explain.World
	// IsLeader reports whether this replica is the one that speaks. All watch, so
	// that any can take over. Default: it always is.
	IsLeader func() bool
	// Instance names this process in Events. Default: "weir".
	Instance string

	// Interval is the time between two looks at the pods. Default: 15s.
	Interval time.Duration
	// Grace is how long a pod must lack numbers before that is said, for
	// reasons that stay until somebody does something. Default: 30s.
	Grace time.Duration
	// Patience is the same for reasons that pass by themselves, such as a pod
	// that has just started; longer than Grace. Default: 2m.
	Patience time.Duration
	// Repeat is the least time between two Events on one autoscaler while the
	// reasons are the same. Default: 5m.
	Repeat time.Duration
	// Change is the least time between two Events on one autoscaler. Default: 1m.
	Change time.Duration
	// Burst is how many Events may be written at once, of all autoscalers, and
	// Every the time in which one more may be. Default: 25, and one in 2s.
	Burst int
	Every time.Duration
	// Refresh is after how long a workload is asked again for its pods; one
	// that was not known is asked at once. Default: 30m.
	Refresh time.Duration
	// Gap is the least time between two such questions. Default: 200ms.
	Gap time.Duration

	// Registerer takes the weir_hpa_ metrics. Default: none.
	Registerer prometheus.Registerer
	// Logger is told what cannot be read or written. Default: nobody is.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Client == nil || o.Scales == nil || o.World == nil {
		return o, errors.New("announcing needs a client, scales and a world")
	}
	if o.IsLeader == nil {
		o.IsLeader = func() bool { return true }
	}
	if o.Instance == "" {
		o.Instance = "weir"
	}
	if o.Burst == 0 {
		o.Burst = 25
	}
	for _, d := range []struct {
		set *time.Duration
		to  time.Duration
	}{
		{&o.Interval, 15 * time.Second}, {&o.Grace, 30 * time.Second}, {&o.Patience, 2 * time.Minute},
		{&o.Repeat, 5 * time.Minute}, {&o.Change, time.Minute}, {&o.Every, 2 * time.Second},
		{&o.Refresh, 30 * time.Minute}, {&o.Gap, 200 * time.Millisecond},
	} {
		if *d.set == 0 {
			*d.set = d.to
		}
	}
	if o.Patience < o.Grace {
		o.Patience = o.Grace
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, nil
}
