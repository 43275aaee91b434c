package resourcemetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/served"
)

// View is one immutable state of what was measured, and of what stands against
// numbers that are missing.
type View interface {
	explain.View
	// At returns when the newest number in the view was read; zero if nothing
	// has been.
	At() time.Time
	// Each calls do for the sample of every entity of a kind that has a number
	// to serve, parts included, in the order of metric.Entity.Compare, until it
	// returns false. The sample is good until do returns.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// EachUse calls do for every pod that was measured whole, each once and those of a
	// node together, until it returns false. u is good until do returns.
	EachUse(do func(u *served.PodUse) bool)
	// Use makes u what EachUse says of one pod, in the memory that u has, and
	// reports whether it says anything.
	Use(pod metric.PodRef, u *served.PodUse) bool
	// NodeUse returns what a node uses and over which time; ok is whether it was
	// measured whole.
	NodeUse(node metric.NodeName) (u served.Use, over served.Span, ok bool)
}

// Options says where the answers come from.
type Options struct {
	// View returns the newest state; nil before there is one. Required.
	View func() View
	// Facts returns what the API server says; nil where there is none. Left
	// out: there never is one.
	Facts func() *metric.Facts
	// Sources returns how reading fares, for the reasons of what is missing. Left
	// out: nobody tells.
	Sources func() []explain.Source
	// Registerer takes the metrics of this API. Left out: there are none.
	Registerer prometheus.Registerer
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Facts == nil {
		o.Facts = func() *metric.Facts { return nil }
	}
	if o.Sources == nil {
		o.Sources = func() []explain.Source { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
