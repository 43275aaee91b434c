package kubeletapi

import (
	"context"
	"sync/atomic"

	"github.com/weir-metrics/weir/metric"
)

// Newest keeps the newest round of one source, including counters without a rate, which the memory
// sink drops. It is a sink of the pipeline. Only one goroutine may call Write; any goroutine may
// read the round.
type Newest struct {
	source  string
	current atomic.Pointer[round]
}

// NewNewest returns a Newest of a source ("host"). It ignores batches of other sources.
func NewNewest(source string) *Newest { return &Newest{source: source} }

// round is one read of the node, without samples that identity rejected. It is immutable.
type round struct {
	node     metric.NodeName
	err      error // of a failed read
	samples  []metric.Sample
	rejected map[metric.CgroupPath]bool // the paths of rejected samples
}

// Write replaces the round with b. It never fails.
func (n *Newest) Write(_ context.Context, b *metric.Batch) error {
	if b.Source != n.source {
		return nil
	}
	r := &round{node: b.Node, rejected: map[metric.CgroupPath]bool{}}
	if b.Failed() {
		r.err = b.Err
	}
	r.samples = make([]metric.Sample, 0, len(b.Samples))
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Rejected() {
			r.rejected[s.Instance.Path] = true
		} else {
			r.samples = append(r.samples, metric.Sample{})
			r.samples[len(r.samples)-1].CopyFrom(s)
		}
	}
	n.current.Store(r)
	return nil
}

// Forget drops the round of a source that was removed.
func (n *Newest) Forget(source string, _ metric.NodeName) {
	if source == n.source {
		n.current.Store(nil)
	}
}
