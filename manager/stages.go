package manager

import (
	"context"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Source reads samples from one place: one kubelet's endpoint, or this host.
type Source interface {
	// Read fills b with one read of the source. b has only Source, Node and Interval. Read sets
	// Resolution, Cores, Bytes and Exhaustive if it knows them. Its error should be a
	// *metric.ReadError; samples read before the error stay in b. Read ends soon after ctx;
	// otherwise it is abandoned a second later, and b with it. Read is never called while an
	// earlier Read or ReadSecond of the same source runs.
	Read(ctx context.Context, b *metric.Batch) error
}

// Spec describes a source that should be read.
type Spec struct {
	// Name is unique among all sources: "kubelet:resource/node-1". Its hash is the source's place
	// in the interval.
	Name string
	// Kind names the configured source: "kubelet:resource". It labels metrics, and is the Source
	// of the batches. Kind and Node identify a source's batches.
	Kind string
	Node metric.NodeName
	// Interval is the time between two reads, by default 15 s. Timeout is the time of one read, by
	// default 10 s or the interval if that is shorter. If Kind, Node, Interval or Timeout change,
	// the old source ends, and then another begins.
	Interval, Timeout time.Duration
	// Open makes the source. It does no I/O, because its error is the error of every round. It is
	// called once, before the first read. If the source is an io.Closer, it is closed when it is
	// no longer wanted and no call of it runs.
	Open func() (Source, error)
	// ReadSecond is Read of a second, costlier endpoint of the node, which names pod UIDs and
	// container IDs, with its own deadline; nil if there is none. If it fails without a sample, the
	// batch gets no CrossCheck.
	ReadSecond func(ctx context.Context, b *metric.Batch) error
	// Unread is why the source is left out on purpose; nil for one that is read. Each of its
	// rounds is a batch that failed with this error, so that the absence has its reason. Open is
	// not called, and the source does not count as failing.
	Unread error
}

// Provider returns which sources there are. One goroutine asks it when facts change, and at least
// every few seconds.
type Provider interface {
	// Sources returns all sources by facts, which may be nil. It does no I/O. The slice is not
	// changed afterwards: if Sources returns the same slice again, nothing has changed.
	Sources(facts *cluster.Facts) []Spec
}

// Processor is one pure step of the pipeline with the state of one source:
// (state, facts, batch, now) → (state, batch, verdicts). It takes no lock, reads no clock and does
// no I/O. It is also called for a failed read (b.Err set, no samples), because a missing number
// needs its reason.
type Processor interface {
	Process(facts *cluster.Facts, b *metric.Batch, now time.Time)
}

// CrossChecker is a Processor that may need the second endpoint's read of the same node. If
// NeedsCrossCheck returns true before Process and the Spec has ReadSecond, the manager reads that
// into b.CrossCheck, which stays nil if no second endpoint answers.
type CrossChecker interface {
	// NeedsCrossCheck is asked once a round, unless the read gave nothing.
	NeedsCrossCheck(facts *cluster.Facts, b *metric.Batch, now time.Time) bool
}

// Sink takes finished batches.
type Sink interface {
	// Write takes what it needs from b. It neither changes nor keeps b. It is called by one
	// goroutine at a time, and ends soon after ctx.
	Write(ctx context.Context, b *metric.Batch) error
}

// Recorder takes batches as their sources filled them, before any processor: enough for a replay.
type Recorder interface {
	// Record takes what it needs from b, which has the cross-check of this round, and from the
	// facts and the time that the processors got. It is called as Sink.Write is.
	Record(ctx context.Context, b *metric.Batch, facts *cluster.Facts, now time.Time) error
}

// Player gives rounds that were recorded.
type Player interface {
	// Next waits until the next round is due, fills b, which is empty, and returns the facts and the
	// time that the processors got. gone are the sources that were gone between the round before and
	// this one. The error is io.EOF at the end, and ctx's if that ended first. After an error there is
	// no next round.
	Next(ctx context.Context, b *metric.Batch) (facts *cluster.Facts, now time.Time, gone []metric.SourceKey, err error)
}

// Forgetter is a Sink or Recorder that keeps state for each source and wants to know when
// one is gone. The end of weir does not count: another weir may read the same source.
type Forgetter interface {
	// Forget is called after the last Write of a batch with this Source and Node, and never during
	// a Write. A source of that name may begin afterwards.
	Forget(source string, node metric.NodeName)
}
