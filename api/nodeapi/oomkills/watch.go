package oomkills

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/metric"
)

// Watch is the feature of an agent that watches what the kernel kills.
type Watch struct {
	// Node, Look and Interval are set before Open. Look returns what was killed since it was last called;
	// nil: this machine cannot be watched, and Open opens nothing.
	Node     metric.NodeName
	Look     func(time.Time) ([]endlog.Kill, error)
	Interval time.Duration
	// Close frees what Look uses; it may be nil.
	Close func() error

	ends    *endlog.Log // nil unless open
	facts   func() *cluster.Facts
	since   time.Time
	metrics *collector
	failing bool
	log     *zap.Logger
}

// Open opens the watch, if there are a cluster, which names the pods, and a machine.
func (w *Watch) Open(_ context.Context, h *feature.Host) error {
	if w.Look == nil || h.Cluster == nil || h.Cluster.Options.Ends == nil {
		return nil
	}
	w.ends, w.facts, w.since, w.log = h.Cluster.Options.Ends, h.Facts, time.Now(), h.Log
	w.metrics = newCollector(w.ends.Kills)
	h.Registry.MustRegister(w.metrics)
	h.Add(feature.Part{Name: "kernel kills", Run: w.run, Close: w.Close})
	return nil
}

// Report returns the function that reports on the node, or nil if the watch is not open.
func (w *Watch) Report() func() *endlog.KillReport {
	if w.ends == nil {
		return nil
	}
	return func() *endlog.KillReport {
		return &endlog.KillReport{Since: w.since.UTC(), Kills: w.ends.Kills()}
	}
}

func (w *Watch) run(ctx context.Context) error {
	ticker := time.NewTicker(w.Interval)
	defer ticker.Stop()
	for {
		w.look(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look records what the kernel killed.
func (w *Watch) look(now time.Time) {
	kills, err := w.Look(now)
	if failing := err != nil; failing != w.failing {
		if w.failing = failing; failing {
			w.log.Warn("some kills by the kernel may be missed", zap.Error(err))
		}
	}
	if len(kills) == 0 {
		return
	}
	facts := w.facts()
	pods := facts.PodsByUID(w.Node)
	for i := range kills {
		k := &kills[i]
		k.After, k.At = k.After.UTC(), k.At.UTC()
		var owner cluster.Owner
		if p := pods[k.UID]; p != nil {
			owner = p.Workload()
			k.Namespace, k.Pod = p.Namespace, p.Name
			if c := p.ContainerByID(k.ContainerID); c != nil {
				k.Container = c.Name
			}
		}
		w.metrics.count(k, owner)
	}
	w.ends.AddKills(w.Node, kills, pods, endlog.StateOf(facts, w.Node))
}
