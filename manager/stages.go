package manager

import (
	"context"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Source reads samples from one place: one kubelet's endpoint, or this host.
type Source interface {
	// Read fills b, which is empty but for what the manager knows (Source,
	// Node, Interval), with one read of the source. It sets Clock, Cores,
	// Bytes and Exhaustive where it knows them. It returns what went wrong,
	// preferably as a *metric.ReadError; samples read before that stay in b,
	// for a partial result is a result. It ends soon after ctx does. Read is
	// never called while an earlier Read of the same source runs.
	Read(ctx context.Context, b *metric.Batch) error
}

// Witness is a Source that has a second, costlier view of the same place, which
// names pod UIDs and container IDs.
type Witness interface {
	// Testify fills b as Read does, from the second view.
	Testify(ctx context.Context, b *metric.Batch) error
}

// Spec describes a source that should be read, as plain data plus the means to
// open it.
type Spec struct {
	// Name is unique among all sources: "kubelet:resource/node-1".
	Name string
	// Kind names the configured source it comes from: "kubelet:resource". It
	// labels metrics.
	Kind string
	Node metric.NodeName
	// Interval is the time between two reads; Timeout the time one may take.
	Interval, Timeout time.Duration
	// Open makes the source. It does no I/O: errors that a retry may heal
	// belong to Read. It is called once in the life of a Spec of this Name.
	// If the source is an io.Closer, it is closed when it is no longer wanted.
	Open func() (Source, error)
}

// Provider says which sources there are. It is asked again whenever facts
// change, and at least every few seconds.
type Provider interface {
	Sources(facts *metric.Facts) []Spec
}

// Processor is one pure step of the pipeline with the state of one source:
// (state, facts, batch, now) → (state, batch, verdicts). It takes no lock, reads no
// clock and does no I/O. It is also called for a read that failed (b.Err set,
// no samples), for an absence needs its reason.
type Processor interface {
	Process(facts *metric.Facts, b *metric.Batch, now time.Time)
}

// Doubter is a Processor that may ask for a witness. If Doubts returns true
// before Process and the source is a Witness, the manager lets it testify into
// b.Witness.
type Doubter interface {
	Doubts(facts *metric.Facts, b *metric.Batch, now time.Time) bool
}

// Sink takes finished batches.
type Sink interface {
	// Write takes what it needs from b, which it never changes and does not
	// keep. It is called by one goroutine at a time, and ends soon after ctx
	// does.
	Write(ctx context.Context, b *metric.Batch) error
}

// Forgetter is a Sink that keeps state for each source and wants to know when
// one is gone.
type Forgetter interface {
	Forget(source string, node metric.NodeName)
}
