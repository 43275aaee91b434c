package oomkills

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

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
	// KernelLog is the flag: the file of the kernel's log, from which Look has the names of processes.
	KernelLog string
	// Events is the flag: an Event is written on the pod for each kill.
	Events bool

	ends    *endlog.Log // nil unless open
	facts   func() *cluster.Facts
	since   time.Time
	metrics *collector
	events  *eventWriter // nil unless Events are written
	failing bool
	log     *zap.Logger
}

// Flags adds the flags.
func (w *Watch) Flags(f *pflag.FlagSet) {
	f.StringVar(&w.KernelLog, "kernel-log", "", "`FILE` of the kernel's log, /dev/kmsg: weir explain death then names the processes that the kernel killed (default: it is not read)")
	f.BoolVar(&w.Events, "oom-events", false, "write an Event on the pod when the kernel kills in it for memory: ten of a namespace and 50 in all at once, then one and ten a minute")
}

// Check checks the flags.
func (w *Watch) Check(in *feature.Setting) error {
	if w.Events && !in.HasCluster {
		return feature.NeedsCluster("--oom-events", "in which it writes Events")
	}
	if w.KernelLog != "" && !in.HasCluster {
		return feature.NeedsCluster("--kernel-log", "which names the pods of the processes")
	}
	return nil
}

// Open opens the watch, if there are a cluster, which names the pods, and a machine.
func (w *Watch) Open(_ context.Context, h *feature.Host) error {
	if w.Look == nil || h.Cluster == nil || h.Cluster.Options.Ends == nil {
		return nil
	}
	w.ends, w.facts, w.since, w.log = h.Cluster.Options.Ends, h.Facts, time.Now(), h.Log
	w.metrics = newCollector(w.ends.Kills)
	h.Registry.MustRegister(w.metrics)
	if w.Events {
		var err error
		if w.events, err = newEventWriter(h, w.Node); err != nil {
			return err
		}
	}
	h.Add(feature.Part{Name: "kernel kills", Run: w.run, Close: w.close})
	return nil
}

func (w *Watch) close() error {
	w.events.close()
	if w.Close == nil {
		return nil
	}
	return w.Close()
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
	wait.NonSlidingUntilWithContext(ctx, func(context.Context) { w.look(time.Now()) }, w.Interval)
	return nil
}

// look records what the kernel killed.
func (w *Watch) look(now time.Time) {
	kills, err := w.Look(now)
	if err != nil && !w.failing {
		w.log.Warn("some kills by the kernel, or the names of processes, may be missed", zap.Error(err))
	}
	w.failing = err != nil
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
			attributeToOnlyContainer(k, p)
			if c := p.ContainerByID(k.ContainerID); c != nil {
				k.Container = c.Name
			}
		}
		w.metrics.count(k, owner)
		w.events.write(k, pods[k.UID])
	}
	w.ends.AddKills(w.Node, kills, pods, endlog.StateOf(facts, w.Node))
}

// attributeToOnlyContainer replaces the limit of the pod by that of its only container. The kubelet gives the cgroup of a
// pod without a limit of its own the sum of its containers' limits. The pod's sandbox counts there, too, so
// that it is reached first. So do ephemeral containers, which have no limit, and files in memory that earlier runs left.
func attributeToOnlyContainer(k *endlog.Kill, p *cluster.Pod) {
	if _, own := p.Spec.Get(metric.MemoryLimit); own || k.Limit != endlog.InPod || k.Files {
		return
	}
	users := 0 // containers that may have used the memory
	for i := range p.Containers {
		c := &p.Containers[i]
		gone := !c.EndedAt().IsZero() && c.EndedAt().Before(k.After.Truncate(time.Second))
		if c.Role == cluster.Regular || c.Role == cluster.Sidecar || c.Role == cluster.Ephemeral && !gone {
			users++
		}
	}
	if users <= 1 {
		k.SetLimit(endlog.InContainer, "")
	}
}
