package explain

import (
	"iter"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// SnapshotReader is one immutable snapshot of samples and verdicts.
type SnapshotReader interface {
	// Lookup returns the served sample of one entity. The node of a pod or container may be empty.
	Lookup(e metric.Entity) (*metric.Sample, bool)
	// Pod returns the served samples of a pod and of its containers.
	Pod(ref metric.PodRef) (pod *metric.Sample, containers []*metric.Sample)
	// Samples yields the served samples of the entities of a kind.
	Samples(kind metric.Kind) iter.Seq[*metric.Sample]
	// EachOn calls do with the served samples of the entities of a kind on one node, until do
	// returns false. Each sample is valid until do returns.
	EachOn(node metric.NodeName, kind metric.Kind, do func(*metric.Sample) bool)
	// Verdicts yields the verdicts on missing or doubtful numbers, each with the time since when it
	// is true. VerdictsOn yields those on one node.
	Verdicts() iter.Seq2[metric.Verdict, time.Time]
	VerdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time]
}

// SourceState is the state of one source.
type SourceState struct {
	Name                  string
	Node                  metric.NodeName // empty for a source of many nodes
	Interval              time.Duration
	LastRead, LastSuccess time.Time     // when the last read began or ended, and when the last read without an error did; zero if there was none
	Due                   time.Time     // the next read; in the past during a read
	Took                  time.Duration // how long the last read took, with an error or without
	Bytes                 int           // how many the last read brought; 0 if that is unknown
	// ClockAhead is how far the node's clock was ahead of ours at the last answer, to about a
	// second; 0 if the node does not report its time.
	ClockAhead time.Duration
	Unread     error // why it is not read on purpose; nil for a source that is read
	// FailingSince is when the first of the reads that have failed since the last success began; zero
	// if the last read had no error.
	FailingSince time.Time
	Err          error // of the last read
}

// Explainer has everything that answers are made from, at one moment.
type Explainer struct {
	Now time.Time
	// Started is when weir began; zero if that is unknown.
	Started time.Time
	// View is nil before the first round.
	View SnapshotReader
	// Facts are nil without a cluster.
	Facts   *cluster.Facts
	Sources []SourceState
	// Autoscalers returns the names of the autoscalers that scale a pod's workload, in the form of
	// AutoscalerName. It is nil if none are watched.
	Autoscalers func(*cluster.Pod) []string
	// Deaths reports what ended in a pod in the last hour, and why, in a sentence; empty if nothing did. It
	// is nil without a cluster.
	Deaths func(metric.PodRef) string
	// Receivers are those that accept nothing of what weir sends.
	Receivers []Receiver
	// Adapters are those that do not answer.
	Adapters []Adapter
}
