package resourcemetrics

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/metric"
)

// View is one immutable state of what was measured.
type View interface {
	// At returns when the newest number in the view was read; zero if nothing
	// has been.
	At() time.Time
	// Each calls do for the sample of every entity of a kind that has a number
	// to serve, parts included, in the order of metric.Entity.Compare, until it
	// returns false. The sample is good until do returns.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// Lookup returns what is served of one entity, and whether anything is.
	Lookup(metric.Entity) (*metric.Sample, bool)
	// Pod returns what is served of a pod, nil if nothing is, and of its
	// containers, by name.
	Pod(metric.PodRef) (pod *metric.Sample, containers []*metric.Sample)
	// Verdicts yields what stands against numbers that are missing or doubtful,
	// each with the time since which it has stood.
	Verdicts() iter.Seq2[metric.Verdict, time.Time]
}

// Options says where the answers come from.
type Options struct {
	// View returns the newest state; nil before there is one. Required.
	View func() View
	// Facts returns what the API server says; nil where there is none. Left
	// out: there never is one.
	Facts func() *metric.Facts
	// NodeSelector chooses the nodes that are measured; others are not listed.
	// Left out: all are.
	NodeSelector labels.Selector
	// Registerer takes the metrics of this API. Left out: there are none.
	Registerer prometheus.Registerer
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Facts == nil {
		o.Facts = func() *metric.Facts { return nil }
	}
	if o.NodeSelector == nil {
		o.NodeSelector = labels.Everything()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
