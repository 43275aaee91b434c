package explain

import (
	"iter"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// SnapshotReader is one immutable state of what was measured.
type SnapshotReader interface {
	// Lookup returns what is served of one entity; a pod's or container's node
	// may be left empty.
	Lookup(e metric.Entity) (*metric.Sample, bool)
	// Pod returns what is served of a pod and of its containers.
	Pod(ref metric.PodRef) (pod *metric.Sample, containers []*metric.Sample)
	// Samples yields what is served of the entities of a kind.
	Samples(kind metric.Kind) iter.Seq[*metric.Sample]
	// EachOn calls do with what is served of the entities of a kind on one node,
	// each good until do returns, until it returns false.
	EachOn(node metric.NodeName, kind metric.Kind, do func(*metric.Sample) bool)
	// Verdicts yields the verdicts on numbers that are missing or doubtful, with the
	// time since when each holds. VerdictsOn yields those of one node.
	Verdicts() iter.Seq2[metric.Verdict, time.Time]
	VerdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time]
}

// SourceState is the state of one source.
type SourceState struct {
	Name                  string
	Node                  metric.NodeName // empty for a source of many
	Interval              time.Duration
	LastRead, LastSuccess time.Time // when the last read began or ended, and the last without an error; zero if there was none
	Due                   time.Time // when it is read next; in the past while it is
	Unread                error     // why it is left out on purpose; nil for one that is read
	Err                   error     // of the last read
}

// Explainer is everything an answer is made of, as of one moment.
type Explainer struct {
	Now time.Time
	// View is nil before the first round.
	View SnapshotReader
	// Facts are nil without a cluster.
	Facts   *cluster.Facts
	Sources []SourceState
	// Autoscalers returns the HorizontalPodAutoscalers that scale by a pod, as
	// namespace/name; nil if they are not watched.
	Autoscalers func(*cluster.Pod) []string
}
