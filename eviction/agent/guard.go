// Package agent is the eviction guard as a feature of weir: its flags, and what it opens. The guard
// reads the machine, decides (package eviction) and carries out what it decides (package execute), so
// it can kill pods. Only weir agent has its flags; weir run has a guard that only observes.
//
//	flags.go     Flags and Check: from flags to a Plan
//	guard.go     Guard: Open, and the report
//	evictor.go   the guard and what it needs: the kubelet's settings, Events, conditions
//	machine.go   Machine, which reads the node and its pods
package agent

import (
	"context"
	"time"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/metric"
)

// Guard is the feature that decides which pods must leave this machine, and evicts them if its flags
// ask for that.
type Guard struct {
	flags flags
	plan  *Plan // nil if it is off

	// Node and Machine are set before Open. A nil Machine cannot be read, so Open opens nothing.
	Node    metric.NodeName
	Machine *Machine

	evictor *evictor // nil unless open
}

// New returns a guard with the defaults of its flags.
func New() *Guard {
	return &Guard{flags: flags{
		mode: string(execute.Observe),
		Plan: Plan{Mode: execute.Observe, Events: true, Settings: eviction.Settings{TransitionPeriod: 5 * time.Minute}},
	}}
}

// NewObserver returns a guard without flags for a machine without a cluster, where no pod can be
// evicted.
func NewObserver() *Guard {
	g := New()
	g.plan = &g.flags.Plan
	g.plan.Events = false
	return g
}

// Plan returns what the guard will do, or nil if it is off. It is valid after Check.
func (g *Guard) Plan() *Plan { return g.plan }

// MayEvict reports whether the guard changes anything on the node or in the cluster.
func (g *Guard) MayEvict() bool { return g.plan != nil && g.plan.Mode != execute.Observe }

// Open opens the guard, unless it is off or the machine cannot be read.
func (g *Guard) Open(ctx context.Context, h *feature.Host) (err error) {
	if g.plan == nil || g.Machine == nil {
		return nil
	}
	if g.evictor, err = openEvictor(ctx, g.plan, g.Node, g.Machine, h); err != nil {
		return err
	}
	h.Add(feature.Part{Name: "eviction guard", Run: g.evictor.run, Close: g.evictor.Close})
	return nil
}

// IsOpen reports whether there is a report.
func (g *Guard) IsOpen() bool { return g.evictor != nil }

// Report returns the report on evictions of the node. The guard must be open.
func (g *Guard) Report() *evictionreport.EvictionReport { return g.evictor.report() }
