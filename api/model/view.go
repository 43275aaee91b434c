package model

import (
	"iter"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// View is one immutable state of what was measured.
type View interface {
	// Each calls do for every entity of a kind, and its parts, that has a
	// number to serve, in the order of metric.Entity.Compare, until do returns
	// false. The sample holds only what is served, is good until do returns,
	// and must not be changed.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// Lookup returns what is served of one entity, and whether anything is. The
	// node of a pod or container may be left empty.
	Lookup(e metric.Entity) (*metric.Sample, bool)
	// Pod returns what is served of a pod, nil if nothing is, and of its
	// containers, by name, without parts.
	Pod(ref metric.PodRef) (pod *metric.Sample, containers []*metric.Sample)
	// Points yields what is remembered of a metric of an entity, in the
	// catalogue's unit, from one time to another, both included and by the
	// node's clock, oldest first. A metric that is not remembered has none.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
	// Verdicts yields what stands against numbers that are missing, each with
	// the time since which it has stood.
	Verdicts() iter.Seq2[metric.Verdict, time.Time]
}
