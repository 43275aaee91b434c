package payload

import "github.com/weir-metrics/weir/metric"

// Order gives the batches of one parser a metric.Layout: the same one as long as the
// samples are of the same entities in the same order. It looks when a sample is added,
// where equal names of one node are mostly one string. The zero Order is ready to use.
type Order struct {
	layout         *metric.Layout
	base           int // of this payload's samples in their batch
	moved, bounded bool
}

// Begin begins a payload, whose samples will be added to b.
func (o *Order) Begin(b *metric.Batch) {
	if o.layout == nil {
		o.layout = &metric.Layout{}
	}
	o.base, o.moved, o.bounded = len(b.Samples), false, false
}

// Add is r.Add.
func (o *Order) Add(r *Request, b *metric.Batch, e *metric.Entity, g metric.Group) int32 {
	i := r.Add(b, *e, g)
	if i < 0 {
		o.bounded = true
		return i
	}
	if at := int(i) - o.base; at >= len(o.layout.Entities) || o.layout.Entities[at] != *e {
		o.moved = true
	}
	return i
}

// End sets b.Layout, unless b held samples before the payload's or there are some
// beyond the bound. It is not called for a payload that is not whole.
func (o *Order) End(b *metric.Batch) {
	if samples := b.Samples[o.base:]; o.moved || len(samples) != len(o.layout.Entities) {
		o.layout = metric.LayoutOf(samples)
	}
	if o.base == 0 && !o.bounded {
		b.Layout = o.layout
	}
}
