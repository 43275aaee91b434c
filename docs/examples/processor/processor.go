// Package processor is the example processor of docs/extending.md: it removes metrics that need not
// be stored.
package processor

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Options configure a Dropper.
type Options struct {
	// Drop are the metrics to remove.
	Drop []metric.ID
}

// Dropper removes metrics from the batches of one source.
type Dropper struct{ opts Options }

// New returns a Dropper.
func New(o Options) *Dropper { return &Dropper{o} }

// Process removes the metrics from b. A processor is a pure step: it takes the time as an
// argument, takes no lock and does no I/O.
func (d *Dropper) Process(_ *cluster.Facts, b *metric.Batch, _ time.Time) {
	for i := range b.Samples {
		for _, id := range d.opts.Drop {
			b.Samples[i].Values.Delete(id)
		}
	}
}
