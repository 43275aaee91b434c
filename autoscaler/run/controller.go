// Package run has the features about autoscalers: the controller, which decides about autoscalers and
// scales workloads if a flag asks for that, and the reporter of Events on autoscalers. Both share
// clients without a rate limit and one watcher.
//
//	flags.go        Flags and Check of the controller: from flags to a Plan
//	controller.go   Controller: Open, evaluations, explanations
//	hpaevents.go    HPAEvents: Events on autoscalers that have pods without metrics
//	clients.go      Clients: what all of them share
//	settings.go     the settings of decisions, with the cluster's feature gates
package run

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/controller"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/recording"
)

// Controller is the feature that decides about autoscalers. It changes the scale of workloads only
// with --autoscalers.
type Controller struct {
	Plan
	toZero *pflag.Flag

	// Clients are open before the controller.
	Clients *Clients
	// Metrics are the pods and metrics for decisions. It is set before Open.
	Metrics *podmetrics.Reader
	// RecordTarget records the scale of an autoscaler's target. It may be nil.
	RecordTarget func(*recording.ScaleTarget, time.Time)

	settings *clusterSettings       // nil unless open
	running  *controller.Controller // nil unless autoscalers are decided about
}

// NewController returns a controller with the defaults of its flags.
func NewController(c *Clients) *Controller {
	return &Controller{Plan: Plan{Period: 15 * time.Second, Workers: 5, Settings: autoscaler.DefaultSettings()}, Clients: c}
}

// ActsWith returns the flag that lets the feature act for all replicas, or "".
func (c *Controller) ActsWith() string {
	if c.Act {
		return "--autoscalers"
	}
	return ""
}

// Open opens the controller. Without a whole cluster there is none.
func (c *Controller) Open(_ context.Context, h *feature.Host) (err error) {
	if !h.HasWholeCluster() {
		return nil
	}
	c.settings = newClusterSettings(&c.Plan, c.Clients.Kube.Discovery().RESTClient(), h.Log)
	h.Add(feature.Part{Name: "the cluster's feature gates", Run: c.settings.run})
	if !c.Act && !c.Shadow {
		return nil
	}
	if c.Act && h.Leader == nil {
		h.Log.Info("there is no leader election (--lease, --secure-port), so this weir acts on Autoscalers: run no second weir with --autoscalers")
	}
	watcher, err := c.Clients.Watcher(h)
	if err != nil {
		return err
	}
	c.running, err = controller.New(controller.Options{
		Watcher: watcher, Client: c.Clients.Kube, Autoscalers: c.Clients.Autoscalers, Scales: c.Clients.Scales, Act: c.Act, Shadow: c.Shadow,
		Metrics: c.Metrics, IsLeader: h.IsLeader, Settings: c.settings.now,
		Period: c.Period, PeekInterval: time.Second, Workers: c.Workers, Resolution: h.Resolution,
		RecordTarget: c.RecordTarget, Registerer: h.Registry, Logger: h.Log,
	})
	if err != nil {
		return fmt.Errorf("decide about autoscalers: %w", err)
	}
	// It ends before the election, so no other replica acts while this one does.
	h.Add(feature.Part{Name: "autoscaler controller", Ends: feature.EndsFirst, Run: func(ctx context.Context) error {
		if !c.settings.awaitAnswer(ctx) {
			return nil
		}
		return c.running.Run(ctx)
	}})
	return nil
}

// IsOpen reports whether autoscalers can be evaluated.
func (c *Controller) IsOpen() bool { return c.settings != nil }

// Running returns the controller, or nil if it decides about no autoscaler by itself.
func (c *Controller) Running() *controller.Controller { return c.running }

// Evaluator returns what decides about a manifest on request. The controller must be open.
func (c *Controller) Evaluator() *evaluate.Evaluator {
	return &evaluate.Evaluator{
		PodMetrics: c.Metrics, Scales: c.Clients.Scales, Settings: c.settings.now,
		PodMetricsAt: func(at time.Time) (evaluate.PodMetrics, error) { return c.Metrics.At(at) },
	}
}

// AutoscalersOf returns the autoscalers that scale a pod's workload, of those that are decided about.
func (c *Controller) AutoscalersOf(p *cluster.Pod) []string {
	if c.running == nil {
		return nil
	}
	return c.running.Autoscalers(p)
}
