package manager

import (
	"context"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Source reads samples from one place: one kubelet's endpoint, or this host.
type Source interface {
	// Read fills b, which is empty but for what the manager knows (Source,
	// Node, Interval), with one read of the source. It sets Clock, Cores,
	// Bytes and Exhaustive where it knows them. It returns what went wrong,
	// preferably as a *metric.ReadError; samples read before that stay in b,
	// for a partial result is a result. It ends soon after ctx does; one that
	// does not is abandoned a second later, and b with it. Read is never called
	// while an earlier Read or ReadSecond of the same source runs.
	Read(ctx context.Context, b *metric.Batch) error
}

// SecondReader is a Source that can read the same node by a second, costlier endpoint, which
// names pod UIDs and container IDs.
type SecondReader interface {
	// ReadSecond fills b as Read does, from the second endpoint, on a deadline of its
	// own and under the same rules. If it fails without a sample, the batch gets no
	// CrossCheck.
	ReadSecond(ctx context.Context, b *metric.Batch) error
}

// Spec describes a source that should be read, as plain data plus the means to
// open it.
type Spec struct {
	// Name is unique among all sources: "kubelet:resource/node-1". Its hash is
	// the source's place in the interval.
	Name string
	// Kind names the configured source it comes from: "kubelet:resource". It
	// labels metrics, and is the Source of the batches; with Node it tells one
	// source's batches from another's.
	Kind string
	Node metric.NodeName
	// Interval is the time between two reads, by default 15 s; Timeout the time
	// one may take, by default 10 s or the interval if that is shorter. A Spec
	// that comes with another Kind, Node, Interval or Timeout than before is
	// another source: the old one ends, then this one begins.
	Interval, Timeout time.Duration
	// Open makes the source. It does no I/O: errors that a retry may heal
	// belong to Read, and an error of Open is the error of every round. It is
	// called once in the life of a Spec of this Name, before the first read.
	// If the source is an io.Closer, it is closed when it is no longer wanted
	// and no call of it runs.
	Open func() (Source, error)
	// Unread is why the place is left out on purpose; nil for one that is read.
	// Each round of a Spec that has it is a batch that failed with this error,
	// so that the absence has its reason. Open is not called, nothing counts as
	// failing, and nobody waits for it.
	Unread error
}

// Provider returns which sources there are. It is asked again whenever facts
// change, and at least every few seconds, by one goroutine.
type Provider interface {
	// Sources returns all sources there are by facts, which may be nil. It does
	// no I/O. Neither the manager nor the provider changes the slice afterwards: the same
	// slice, returned again, means that nothing has changed.
	Sources(facts *cluster.Facts) []Spec
}

// Processor is one pure step of the pipeline with the state of one source:
// (state, facts, batch, now) → (state, batch, verdicts). It takes no lock, reads no
// clock and does no I/O. It is also called for a read that failed (b.Err set,
// no samples), since a missing number needs its reason.
type Processor interface {
	Process(facts *cluster.Facts, b *metric.Batch, now time.Time)
}

// CrossChecker is a Processor that may need the second endpoint's read of the same node. If
// NeedsCrossCheck returns true before Process and the source is a SecondReader, the manager
// reads that into b.CrossCheck, which stays nil if no second endpoint answers.
type CrossChecker interface {
	// NeedsCrossCheck is asked once a round, unless the read gave nothing.
	NeedsCrossCheck(facts *cluster.Facts, b *metric.Batch, now time.Time) bool
}

// Sink takes finished batches.
type Sink interface {
	// Write takes what it needs from b, which it never changes and does not
	// keep. It is called by one goroutine at a time, and ends soon after ctx
	// does.
	Write(ctx context.Context, b *metric.Batch) error
}

// Recorder takes batches as their sources filled them, before any processor has
// changed them: enough to do the same again.
type Recorder interface {
	// Record takes what it needs from b, which has the cross-check of this
	// round, and from facts and now, which the processors were given with
	// it. It is called as Sink.Write is.
	Record(ctx context.Context, b *metric.Batch, facts *cluster.Facts, now time.Time) error
}

// Player gives rounds that were recorded.
type Player interface {
	// Next waits until the next event is due. If that is a round, it fills b with it,
	// which is empty, and returns what the processors were given beside it. If a
	// source is gone, it sets gone and no more of b than Source and Node. The
	// error is io.EOF at the end, and ctx's if that ended first; after one there is no
	// next.
	Next(ctx context.Context, b *metric.Batch) (facts *cluster.Facts, now time.Time, gone bool, err error)
}

// Forgetter is a Sink or Recorder that keeps state for each source and wants to know when
// one is gone.
type Forgetter interface {
	// Forget is called after the last Write of a batch with this Source and
	// Node, and never beside a Write. A source of that name may begin
	// afterwards.
	Forget(source string, node metric.NodeName)
}
