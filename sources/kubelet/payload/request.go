package payload

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// DefaultMaxSamples bounds the samples of one read. A kubelet with 500 pods of ten
// containers has far fewer.
const DefaultMaxSamples = 50_000

// Request describes the read that returned the payload.
type Request struct {
	// Node is the node of the samples.
	Node metric.NodeName
	// Expect is the name that the payload must have for its node, if it has one. Empty accepts any
	// name; it is used for targets with a guessed node name.
	Expect metric.NodeName
	// Received is the middle of the request, in nanoseconds since the Unix epoch. It replaces a time
	// that the node did not give.
	Received int64
	// MaxSamples bounds the number of samples; 0 means DefaultMaxSamples.
	MaxSamples int

	refused int // how often Refuse was called
}

// The longest names that Kubernetes allows, in bytes, and the longest path that Linux allows.
const (
	maxLabel = 63  // of namespaces and containers
	maxName  = 253 // of pods and UIDs
	maxPath  = 4096
)

// IsTooLong reports whether a name of e, or its UID, is longer than Kubernetes allows.
func IsTooLong(e *metric.Entity, uid metric.PodUID) bool {
	name := maxPath // a cgroup's path
	if e.Kind == metric.Container {
		name = maxLabel
	}
	return len(e.Namespace) > maxLabel || len(e.Pod) > maxName || len(e.Name) > name || len(e.Part) > maxPath || len(uid) > maxName
}

// Refuse counts a line or an object with a name that is too long.
func (r *Request) Refuse() { r.refused++ }

// Finish ends the parse of a payload. b.Samples[from:] are its samples, which an error removes. failed
// is the gauge of a kubelet that could not read everything, or empty: the samples stay, and the error
// has the reason NodeScrapeError. If Refuse was called, Finish appends a verdict on the node: how often,
// and how long the name of a pod may be.
func (r *Request) Finish(b *metric.Batch, from int, err error, failed string) error {
	if err != nil {
		b.Samples = b.Samples[:from]
		return err
	}
	if r.refused > 0 {
		r.reportRefused(b)
	}
	if failed != "" {
		return metric.ReadErrorf(metric.NodeScrapeError, "the kubelet reports %s 1: it could not read all of its statistics; see the kubelet's log", failed)
	}
	return nil
}

func (r *Request) reportRefused(b *metric.Batch) {
	b.Verdicts = append(b.Verdicts, metric.Verdict{
		Entity: metric.Entity{Kind: metric.Node, Node: r.Node}, Reason: metric.OverLimit,
		Evidence: metric.Evidence{Rule: metric.RuleNames, Got: metric.CounterReading{Value: float64(r.refused)}, Limit: maxName},
	})
}

// Midpoint returns the time in the middle between two times, in nanoseconds since the Unix epoch.
func Midpoint(began, ended time.Time) int64 {
	return began.Add(ended.Sub(began) / 2).UnixNano()
}

// Limit returns the bound on the number of samples.
func (r *Request) Limit() int {
	if r.MaxSamples > 0 {
		return r.MaxSamples
	}
	return DefaultMaxSamples
}

// Add appends a sample of e to b and returns its index in b.Samples. If the bound is reached, it
// appends the verdict OverLimit on group g of e instead and returns -1. The sample of the node
// itself is always added. The number of verdicts has the same bound.
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

// SetTime sets the time of group g of s to t, in nanoseconds since the Unix epoch. If t is not
// positive, the node gave no time: the middle of the request is used until the node gives one. The
// first time that the node gives for a group is kept.
func (r *Request) SetTime(s *metric.Sample, g metric.Group, t int64) {
	switch bit := uint16(1) << g; {
	case t > 0 && (s.Times[g] == 0 || s.Received&bit != 0):
		s.Times[g] = t
		s.Received &^= bit
	case t <= 0 && s.Times[g] == 0:
		s.Times[g] = r.Received
		s.Received |= bit
	}
}

// Set stores a value in s, and the time t of its group. See SetTime.
func (r *Request) Set(s *metric.Sample, id metric.ID, value float64, t int64) {
	s.Values.Set(id, value)
	r.SetTime(s, id.Describe().Group, t)
}
