package controller

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/recording"
)

// Metrics tells what a decision is made of; live.Live does.
type Metrics interface {
	// Pods returns the pods a selector matches, by name.
	Pods(namespace string, sel labels.Selector) ([]autoscaler.Pod, error)
	// Readings returns what reads each of the specification's metrics.
	Readings(ctx context.Context, now time.Time, namespace string, sel labels.Selector, spec *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.Pod) func(i int) autoscaler.Reading
	// Verdicts returns what tells why a pod has no sample of a metric.
	Verdicts(namespace string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) func(i int, pod string) (decisionreport.Verdict, bool)
}

// Scales are the scales of targets; target.APIScales are.
type Scales interface {
	target.Scales
	// ID returns which workload ref names, whether or not it is there.
	ID(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (target.ID, error)
}

// Autoscalers reads and writes Autoscalers; v1alpha1.Client does.
type Autoscalers interface {
	Autoscalers(namespace string) v1alpha1.Interface
}

// Options configure a Controller.
type Options struct {
	// Act says that Autoscalers are acted on, Shadow that HorizontalPodAutoscalers
	// are shadowed. One of them at least.
	Act    bool
	Shadow bool

	// Client lists and watches HorizontalPodAutoscalers and writes Events. Required.
	Client kubernetes.Interface
	// Autoscalers lists and watches Autoscalers and writes their status. Required
	// for Act.
	Autoscalers Autoscalers
	// Scales reads and changes targets. Required.
	Scales Scales
	// Metrics tells pods and metrics. Required.
	Metrics Metrics
	// IsLeader reports whether this replica is the one that writes. Default: it
	// always is.
	IsLeader func() bool
	// Settings are what holds for all decisions. Default: Kubernetes'.
	Settings *autoscaler.Settings

	// Period is the time between two decisions about one object. Default: 15s.
	Period time.Duration
	// Peek is how often an Autoscaler's numbers are looked at between two decisions,
	// of which the next is made at once where they ask for another count. All
	// looking takes at most a twentieth of one core. Default: 0, never.
	Peek time.Duration
	// Workers is how many objects are decided about at once. Default: 5.
	Workers int
	// SyncTimeout bounds one decision, of which most is the reading of the scale.
	// Default: 10s.
	SyncTimeout time.Duration
	// WriteTimeout bounds the writing of a scale. It must be less than the time a
	// Lease leaves between two leaders (its duration less the renew deadline).
	// Default: 4s.
	WriteTimeout time.Duration
	// StatusInterval is the least time between two writes of a status that says
	// nothing new but values and explanations. Default: 1m.
	StatusInterval time.Duration
	// Resolution is how old a metric may be that a controller goes by: two
	// controllers may go by readings that far apart. It is used to compare
	// decisions. Default: 15s.
	Resolution time.Duration

	// Record is told of a target when it is first seen, when its replicas or its
	// autoscaler's specification change, every five minutes (a recording may begin
	// anew in another file), and when it is no longer followed. It is called by
	// several goroutines. Default: nobody is told.
	Record func(*recording.Target, time.Time)
	// Registerer takes the weir_autoscaler_ metrics. Default: none.
	Registerer prometheus.Registerer
	// Logger is told what was scaled, and what cannot be read or written. Default:
	// nobody is.
	Logger *zap.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Client == nil || o.Scales == nil || o.Metrics == nil {
		return o, errors.New("autoscaling needs a client, scales and metrics")
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
		o.Settings = &s
	}
	if o.Workers == 0 {
		o.Workers = 5
	}
	for _, d := range []struct {
		set *time.Duration
		to  time.Duration
	}{
		{&o.Period, 15 * time.Second}, {&o.SyncTimeout, 10 * time.Second}, {&o.WriteTimeout, 4 * time.Second},
		{&o.StatusInterval, time.Minute}, {&o.Resolution, 15 * time.Second},
	} {
		if *d.set == 0 {
			*d.set = d.to
		}
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, nil
}
