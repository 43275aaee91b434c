// Package aggregate computes the usage of each pod and node, and gives the reason for each
// missing number.
//
// A pod is served completely or not at all: its CPU and memory are the sums over its containers
// if every required one is measured; otherwise it is Incomplete, and the verdict names the
// container and its reason. If the source reads the pods' cgroups itself (the host), a pod's memory
// is that of its cgroup. An entity that should be in the batch and is not gets one verdict, the
// outermost reason that is true. The API server shows which entities should be there, or, on a host
// without a cluster, the node's last reports.
//
// aggregate is the last step. It also computes the ratios, because only here all usage is
// known.
//
// pods.go groups a batch's samples by pod. judge.go decides which containers are required and
// which one prevents its pod from being served. absence.go gives the reasons for missing
// entities, totals.go and exact.go add up, node.go judges the node, ratios.go computes ratios,
// and verdicts.go keeps one verdict for each entity and group. Pods and verdicts are found by
// slot.
package aggregate

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Aggregator aggregates the batches of one source. It is not safe for
// concurrent use.
type Aggregator struct {
	slots       metric.SlotTable // used if no earlier step assigned slots
	pods        []*pod           // by the pod's slot; nil if there is none
	known       int              // number of pods in the field pods
	currentPods []*pod           // the pods of this round, reported or expected
	unmetPods   []*pod           // pods that are not in this round
	// rejected lists, by pod, the containers with a rejected sample in this batch. It is nil if
	// there are none, which is so for nearly every batch.
	rejected map[*pod][]rejectedContainer

	round uint32 // counts batches
	reads uint32 // counts batches that were read without error
	// warm is set once a batch had a sample. Until then weir has only begun to read the node,
	// and FirstSample is WarmingUp.
	warm bool
	next int64 // when the next batch is due, by our clock; 0 if unknown

	// supplied marks the groups that this source has ever reported for a container. A pod does not
	// need a group that its source never reports.
	supplied [metric.NumGroups]bool
	// nodeSpeaks is set once the source has reported the node itself.
	nodeSpeaks bool

	readFailure readFailure
	cut         float64 // the limit at which the source cut this report; 0 if it did not
	sums        [len(summedMetrics)]exactSum
	verdicts    verdicts
}

// New returns an Aggregator for one source.
func New() *Aggregator {
	return &Aggregator{}
}

// wholeGroups are the groups in which a pod is served completely or not at all.
var wholeGroups = [...]metric.Group{metric.CPU, metric.Memory}

// Process adds the sums of pods and the node and the ratios to b's samples, and the verdicts of
// missing entities. It uses the reasons of identity and rate: rejected samples never count.
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

// wanted reports whether a pod needs group g of each of its required containers.
func (a *Aggregator) wanted(g metric.Group) bool {
	return a.supplied[g] || !a.supplied[metric.CPU] && !a.supplied[metric.Memory]
}
