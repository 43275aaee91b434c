package run

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/autoscaler/hpaevents"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/feature"
)

// HPAEvents is the feature that writes Events on HorizontalPodAutoscalers that have pods without
// metrics.
type HPAEvents struct {
	// On is the flag.
	On bool

	// Clients are open before the reporter.
	Clients *Clients
	// Explainer returns the data for explanations. It is set before Open.
	Explainer func() *explain.Explainer
	// Instance names this process in Events. It may be empty.
	Instance string

	reporter *hpaevents.Reporter // nil unless open
}

// Flags adds the flag.
func (e *HPAEvents) Flags(f *pflag.FlagSet) {
	f.BoolVar(&e.On, "hpa-events", false, "write Events on HorizontalPodAutoscalers whose pods have no metrics, with the reasons, and name those autoscalers in explanations")
}

// Check checks the flag.
func (e *HPAEvents) Check(in *feature.Setting) error {
	if e.On && !in.HasCluster {
		return feature.NeedsCluster("--hpa-events", "whose autoscalers it watches")
	}
	return nil
}

// ActsWith returns the flag that lets the feature act for all replicas, or "".
func (e *HPAEvents) ActsWith() string {
	if e.On {
		return "--hpa-events"
	}
	return ""
}

// Open opens the reporter if the flag is given.
func (e *HPAEvents) Open(_ context.Context, h *feature.Host) error {
	if !e.On {
		return nil
	}
	watcher, err := e.Clients.Watcher(h)
	if err != nil {
		return err
	}
	e.reporter, err = hpaevents.New(hpaevents.Options{
		Watcher: watcher, Client: e.Clients.Kube, Scales: e.Clients.Scales, Explainer: e.Explainer, Instance: e.Instance,
		Registerer: h.Registry, Logger: h.Log, IsLeader: h.IsLeader,
	})
	if err != nil {
		return fmt.Errorf("watch autoscalers: %w", err)
	}
	h.Add(feature.Part{Name: "HPA events", Run: e.reporter.Run})
	return nil
}

// AutoscalersOf returns the autoscalers that scale a pod's workload, of those that are watched.
func (e *HPAEvents) AutoscalersOf(p *cluster.Pod) []string {
	if e.reporter == nil {
		return nil
	}
	return e.reporter.Autoscalers(p)
}
