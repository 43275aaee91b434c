package model

import (
	"iter"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// View is one immutable state of what was measured, and of what stands against
// numbers that are missing.
type View interface {
	explain.View
	// Each calls do for every entity of a kind, and its parts, that has a
	// number to serve, in the order of metric.Entity.Compare, until do returns
	// false. The sample holds only what is served, is good until do returns,
	// and must not be changed.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// Points yields what is remembered of a metric of an entity, in the
	// catalogue's unit, from one time to another, both included and by the
	// node's clock, oldest first. A metric that is not remembered has none.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
}
