package kubeletapi

import (
	"context"
	"sync/atomic"

	"github.com/weir-metrics/weir/metric"
)

// Newest keeps the newest round of one source whole: counters that no rate could be
// made of yet included, which is why it stands beside the memory sink, that keeps
// only what is served. It is a sink of the pipeline. Write is for one goroutine; what
// it keeps may be read by any.
type Newest struct {
	source  string
	current atomic.Pointer[round]
}

// NewNewest returns a Newest of a source ("host"). Batches of others are passed over.
func NewNewest(source string) *Newest { return &Newest{source: source} }

// round is one read of the node, without what identity turned away. It is
// immutable.
type round struct {
	node    metric.NodeName
	err     error // why the read gave nothing, if it did
	samples []metric.Sample
}

// Write keeps b in place of what came before. It never fails.
func (n *Newest) Write(_ context.Context, b *metric.Batch) error {
	if b.Source != n.source {
		return nil
	}
	r := &round{node: b.Node}
	if b.Failed() {
		r.err = b.Err
	}
	kept := 0
	for i := range b.Samples {
		if !b.Samples[i].Rejected() {
			kept++
		}
	}
	r.samples = make([]metric.Sample, 0, kept)
	for i := range b.Samples {
		if s := &b.Samples[i]; !s.Rejected() {
			r.samples = append(r.samples, metric.Sample{})
			r.samples[len(r.samples)-1].CopyFrom(s)
		}
	}
	n.current.Store(r)
	return nil
}

// Forget drops what is kept of the source, which is gone.
func (n *Newest) Forget(source string, _ metric.NodeName) {
	if source == n.source {
		n.current.Store(nil)
	}
}
