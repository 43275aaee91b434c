// Package processors is the pipeline: the steps that every batch goes through between
// its source and the sinks, in their order. Each step is a package of its own.
//
//	identity   decides which sample is the living instance if an entity is reported twice
//	rate       turns counters into rates, and repeats last known values
//	enrich     adds requests, limits and capacity from the cluster facts
//	aggregate  adds up pods and nodes, and explains why a number is missing
//
// Each step keeps its state of an entity by the entity's slot (metric.SlotTable). The first
// step assigns the slots of a batch for all steps.
package processors

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors/aggregate"
	"github.com/weir-metrics/weir/processors/enrich"
	"github.com/weir-metrics/weir/processors/identity"
	"github.com/weir-metrics/weir/processors/rate"
)

// Options configure a Pipeline. The zero Options is ready to use.
type Options struct {
	Rate rate.Options
}

// Step is one pure step with the state of one source. facts may be nil.
type Step interface {
	Process(facts *cluster.Facts, b *metric.Batch, now time.Time)
}

// Pipeline holds the steps of one source. It is not safe for concurrent use.
type Pipeline struct {
	Identity  *identity.Identifier
	Rate      *rate.Calculator
	Enrich    *enrich.Enricher
	Aggregate *aggregate.Aggregator
}

// New returns the pipeline of one source.
func New(o Options) *Pipeline {
	return &Pipeline{
		Identity:  identity.New(),
		Rate:      rate.New(o.Rate),
		Enrich:    enrich.New(),
		Aggregate: aggregate.New(),
	}
}

// Steps returns the steps in their order, for a caller that times each of them.
func (p *Pipeline) Steps() []Step { return []Step{p.Identity, p.Rate, p.Enrich, p.Aggregate} }

// NeedsCrossCheck reports whether b.CrossCheck is wanted before Process is called.
func (p *Pipeline) NeedsCrossCheck(facts *cluster.Facts, b *metric.Batch, now time.Time) bool {
	return p.Identity.NeedsCrossCheck(facts, b, now)
}

// Process takes b, as its source filled it, through all steps. A batch of a failed read
// goes through them too: they explain why its numbers are missing.
func (p *Pipeline) Process(facts *cluster.Facts, b *metric.Batch, now time.Time) {
	p.Identity.Process(facts, b, now)
	p.Rate.Process(facts, b, now)
	p.Enrich.Process(facts, b, now)
	p.Aggregate.Process(facts, b, now)
}
