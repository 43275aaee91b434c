// Package aggregate says what each pod and node uses as a whole, and why a
// number that should be there is not.
//
// A pod is served whole or not at all: its CPU and memory are the sums over its
// containers if every required one is measured; otherwise it is Incomplete, and
// the verdict names the container and its reason. What the API server (or, on a
// bare host, the node's own last reports) says should be there and the batch
// does not hold gets one verdict, the outermost reason that is true.
//
// aggregate is the last step. It makes the ratios too, for only here are all
// uses known.
//
// pods.go gathers a batch's samples by pod, judge.go
// decides what is required and who is to blame, absence.go names the reasons of
// what is not there, totals.go and exact.go add up, node.go speaks for the node,
// ratios.go divides, and verdicts.go keeps one verdict for each thing. Pods and verdicts are
// found by slot.
package aggregate

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Aggregator aggregates the batches of one source. It is not safe for
// concurrent use.
type Aggregator struct {
	slots       metric.SlotTable // used if no step before has one
	pods        []*pod           // by the pod's slot; nil where there is none
	known       int              // pods that there are
	currentPods []*pod           // the pods of this round: reported, or expected
	unmetPods   []*pod           // pods that were not met
	// rejected are the containers of which a sample in this batch was rejected, by their
	// pods; nil if there are none, as of nearly every batch.
	rejected map[*pod][]rejectedContainer

	round uint32 // counts batches
	reads uint32 // counts those that were read without error
	// warm is set once a batch has held something: until then weir is only
	// getting to know the node, and its first samples are nobody's fault.
	warm bool
	next int64 // when the next batch is due, by our clock; 0 if unknown

	// gives marks the groups this source has ever given for a container. A pod
	// is not held to what its source never tells.
	gives [metric.NumGroups]bool
	// nodeSpeaks is set once the source has reported the node itself.
	nodeSpeaks bool

	readFailure readFailure
	cut         float64 // the bound at which the source cut this report; 0 if it did not
	sums        [len(summedMetrics)]exactSum
	verdicts    verdicts
}

// New returns an Aggregator for one source.
func New() *Aggregator {
	return &Aggregator{}
}

// wholeGroups are the groups in which pods are served whole.
var wholeGroups = [...]metric.Group{metric.CPU, metric.Memory}

// Process adds the pods' and the node's sums and the ratios to b's samples, and
// the verdicts of what is missing. It believes what identity and rate have said
// of each sample: rejected ones are never counted.
func (a *Aggregator) Process(facts *cluster.Facts, b *metric.Batch, now time.Time) {
	b.AssignSlots(&a.slots)
	a.pods = metric.BySlot(b.Slots, a.pods)
	a.round++
	if b.Err == nil {
		a.reads++
	}
	if a.next = 0; b.Interval > 0 {
		a.next = now.Add(b.Interval).UnixNano()
	}
	a.readFailure = readFailureOf(facts, b)
	if a.readFailure.reason != metric.Unjudged {
		a.readFailure.evidence.Due = a.next
	}
	a.verdicts.begin(b)
	a.gather(b)
	if !a.warm && len(b.Samples) > 0 {
		a.warm = true
		a.markWarmingUp(b)
	}
	a.cut = a.cutAt(b)
	a.expect(facts, b)
	for _, p := range a.currentPods {
		a.judge(p, b)
	}
	a.judgeNode(facts, b)
	for _, g := range wholeGroups {
		if !a.wanted(g) {
			a.explainUnsupported(g, b)
		}
	}
	a.verdicts.removeObsolete()
	setRatios(b)
	a.verdicts.end()
}

// wanted reports whether a pod needs group g of its containers to be whole.
func (a *Aggregator) wanted(g metric.Group) bool {
	return a.gives[g] || !a.gives[metric.CPU] && !a.gives[metric.Memory]
}
