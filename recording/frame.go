package recording

import (
	"encoding/json"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Kind says what a Frame is about.
type Kind uint8

// The kinds of frame. Their numbers are those in the file.
const (
	// Begin: what follows refers to nothing before it.
	Begin Kind = iota + 1
	// Facts: the API server said something new.
	Facts
	// Round: a source was read.
	Round
	// Gone: a source will not be read any more.
	Gone
	// Scale: a scale target is news, or gone.
	Scale
)

var kindNames = [...]string{Begin: "begin", Facts: "facts", Round: "round", Gone: "gone", Scale: "scale"}

// String returns the lower-case name of k.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown"
}

// Frame is one thing that happened.
type Frame struct {
	Kind Kind
	// Now is when, by the recording weir's clock: of a Round the moment that the
	// processors were given, of Facts when they were learnt, of a Scale when it was
	// seen; of Begin and Gone that of the frame before.
	Now time.Time
	// Facts are the facts of the moment: of a Round those that the processors were
	// given. nil where nothing was known of a cluster. They are immutable, as
	// everywhere, and may be kept.
	Facts *cluster.Facts
	// Batch is a Round's: as the source filled it, with the witness it had to ask.
	// It is good until the next frame is read.
	Batch *metric.Batch
	// Source and Node say what is Gone.
	Source string
	Node   metric.NodeName
	// Scale is the target of a Scale frame. It may be kept.
	Scale *Target
	// Fresh says of a Begin that a new run began: whatever was known of sources
	// before it, a pipeline has forgotten. Otherwise the run goes on.
	Fresh bool
	// By says of a Begin who wrote what follows: "weir v1.2.3".
	By string
}

// Target is something whose replicas are, or might be, scaled.
type Target struct {
	// Group and Resource name its kind as in a URL: "apps", "deployments".
	Group, Resource string
	Namespace       metric.Namespace
	Name            string
	// Replicas is spec.replicas of its scale, Current status.replicas.
	Replicas, Current int32
	// Selector is status.selector of its scale.
	Selector string
	// HPA is the name of the HorizontalPodAutoscaler that owns it, and Spec that
	// one's spec as JSON (autoscaling/v2); both empty without one.
	HPA  string
	Spec json.RawMessage
	// Gone says that the target is no longer there, or no longer followed.
	Gone bool
}
