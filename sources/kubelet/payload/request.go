package payload

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// DefaultMaxSamples bounds the samples of one read. A kubelet with 500 pods of
// ten containers stays far below it.
const DefaultMaxSamples = 50_000

// Request says which read a payload is the answer to.
type Request struct {
	// Node is the node the samples are of.
	Node metric.NodeName
	// Expect is what a payload that names its node must say; empty accepts any
	// name, for targets whose name was only guessed.
	Expect metric.NodeName
	// Received stands in for times the node did not give: the middle of the
	// request, in nanoseconds since the Unix epoch.
	Received int64
	// MaxSamples bounds the samples; 0 means DefaultMaxSamples.
	MaxSamples int
}

// Middle returns the moment halfway between two others, in nanoseconds since
// the Unix epoch.
func Middle(began, ended time.Time) int64 {
	return began.Add(ended.Sub(began) / 2).UnixNano()
}

// Limit returns the bound on samples in force.
func (r *Request) Limit() int {
	if r.MaxSamples > 0 {
		return r.MaxSamples
	}
	return DefaultMaxSamples
}

// Add appends a sample of e to b and returns its index in b.Samples. Beyond the
// bound it returns -1 and leaves a verdict on group g of e instead; the node
// itself is never turned away. As many verdicts are kept as samples.
func (r *Request) Add(b *metric.Batch, e metric.Entity, g metric.Group) int32 {
	limit := r.Limit()
	if len(b.Samples) < limit || e.Kind == metric.Node && e.Part == "" {
		b.Add(e)
		return int32(len(b.Samples) - 1)
	}
	if len(b.Verdicts) < limit {
		b.Verdicts = append(b.Verdicts, metric.Verdict{
			Entity: e, Group: g, Reason: metric.OverLimit,
			Evidence: metric.Evidence{Limit: float64(limit)},
		})
	}
	return -1
}

// Stamp gives group g of s the node's time t, in nanoseconds since the Unix
// epoch. If t is not positive the node gave none, and the middle of the request stands in
// until the node gives one. The first time the node gives for a group is kept.
func (r *Request) Stamp(s *metric.Sample, g metric.Group, t int64) {
	switch bit := uint16(1) << g; {
	case t > 0 && (s.Times[g] == 0 || s.Received&bit != 0):
		s.Times[g] = t
		s.Received &^= bit
	case t <= 0 && s.Times[g] == 0:
		s.Times[g] = r.Received
		s.Received |= bit
	}
}

// Set stores a value in s and stamps its group.
func (r *Request) Set(s *metric.Sample, id metric.ID, value float64, t int64) {
	s.Values.Set(id, value)
	r.Stamp(s, id.Describe().Group, t)
}
