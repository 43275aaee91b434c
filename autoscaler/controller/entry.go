package controller

import (
	"slices"
	"sync/atomic"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// entry is the state of an object between two decisions. Only one worker at a time uses it; other
// goroutines read only lastDecision.
type entry struct {
	uid    types.UID
	memory autoscaler.Memory
	// memoryValid is set if memory belongs to a decision about target, made by this process or another
	// one.
	memoryValid bool
	target      scaleclient.WorkloadID
	// seenReplicas is the requested count of the target at seenAt.
	seenReplicas int32
	seenAt       time.Time
	// wasWriter is set if this replica wrote, or would have written, at the last decision.
	// writeUnknown is set if the result of its last write is not known.
	wasWriter, writeUnknown bool
	// status is the last status that this replica wrote as the leader, and statusAt is the time of the
	// write.
	status              *v1alpha1.AutoscalerStatus
	statusAt            time.Time
	statusFailureLogged bool // whether a failed write of the status was logged
	selectorOwner       selectorOwner
	// recorded is the last value that was passed to Options.RecordTarget.
	recorded recorded

	// These fields are for a shadowed object: the inputs of the last decision, the comparer, and the
	// changes that are not compared yet.
	lastInputs     decisionInputs
	comparer       *comparer
	openChanges    []changeContext
	pendingChanges []controllerChange // not processed yet, because the scale was unknown

	lastDecision atomic.Pointer[decisionRecord]
}

// decisionRecord is the last decision, with what its report needs.
type decisionRecord struct {
	decision    *autoscaler.Decision
	memory      autoscaler.Memory // the memory after the decision
	replicas    int32             // the target's count after the decision
	context     decisionreport.Context
	conflict    string
	note        string // the object's note
	comparisons []comparison
}

// report returns the decision's report.
func (r *decisionRecord) report() *decisionreport.DecisionReport {
	report := decisionreport.New(r.decision, r.context)
	for _, note := range []string{r.conflict, r.note} {
		if note != "" {
			report.Notes = append(report.Notes, note)
		}
	}
	for i := len(r.comparisons) - 1; i >= 0 && i >= len(r.comparisons)-5; i-- {
		report.Notes = append(report.Notes, "Compared: "+r.comparisons[i].String()+".")
	}
	return report
}

// latestStatus returns the newest status of an Autoscaler. It is the one that this replica wrote as
// the leader, because the watch may be late, or one that another leader wrote. Another replica may
// have been the leader for so short a time that this one did not notice.
func (e *entry) latestStatus(o *scalingObject, leads bool) *v1alpha1.AutoscalerStatus {
	if e.status != nil && latestDecisionTime(&o.autoscaler.Status).After(latestDecisionTime(e.status)) {
		leads, e.wasWriter = false, false
	}
	if !leads {
		e.status = nil
	}
	if e.status != nil {
		return e.status
	}
	return &o.autoscaler.Status
}

// latestDecisionTime returns the time of the newest decision in a status.
func latestDecisionTime(s *v1alpha1.AutoscalerStatus) (at time.Time) {
	if len(s.Decisions) > 0 {
		at = s.Decisions[0].Time.Time
	}
	return at
}

// setTarget sets the target. It drops the memory of another target.
func (e *entry) setTarget(id scaleclient.WorkloadID) {
	if e.target != id {
		e.target, e.memoryValid, e.writeUnknown, e.memory = id, false, false, autoscaler.Memory{}
	}
}

// statusForTarget returns the status without its parts about another target.
func statusForTarget(s *v1alpha1.AutoscalerStatus, id scaleclient.WorkloadID) *v1alpha1.AutoscalerStatus {
	if s.Memory != nil && s.Memory.Target == targetName(id) {
		return s
	}
	other := s.HorizontalPodAutoscalerStatus.DeepCopy()
	other.ObservedGeneration = nil
	other.Conditions = autoscaler.RemoveCondition(other.Conditions, autoscalingv2.ScaledToZero)
	return &v1alpha1.AutoscalerStatus{HorizontalPodAutoscalerStatus: *other}
}

// targetName returns a target's name in a status.
func targetName(id scaleclient.WorkloadID) string { return id.Resource.String() + " " + id.Name }

// restoreMemory updates the memory with the changes of the target since the last decision of this
// process or another. acts is set if this replica writes now; conflicted is set if a conflict
// prevents it. There are four cases:
//   - This replica has no memory of the target: it takes that of the status. A count that differs from the
//     status is a change.
//   - No status shows the last count (the result of a write is unknown, no replica writes, or there is no
//     status yet): a count that differs from what this replica saw is a change.
//   - Another replica wrote: the changes are those of its status. If this replica writes from now on, a
//     count that differs from the status is a change, too.
//   - This replica wrote: its memory has the change already.
func (e *entry) restoreMemory(o *scalingObject, status *v1alpha1.AutoscalerStatus, l *targetState, acts, conflicted bool) {
	changed := func(from int32) {
		if from != l.Scale.SpecReplicas {
			e.memory = e.memory.WithChange(o.spec.Behavior, from, l.Scale.SpecReplicas, l.Now)
		}
	}
	statusCount, known := statusReplicas(status)
	switch {
	case !e.memoryValid:
		e.memory = memoryFromStatus(status.Memory, l.Now)
		e.seedRecommendation(l)
		if known {
			changed(statusCount)
		}
	case e.writeUnknown || o.mode == decisionreport.DryRun || conflicted || !e.wasWriter && !known:
		changed(e.seenReplicas) // what this replica saw, because no status shows it
	case !e.wasWriter:
		noted := memoryFromStatus(status.Memory, l.Now)
		e.memory.Ups, e.memory.Downs = noted.Ups, noted.Downs
		if acts {
			changed(statusCount)
		}
	}
	if e.memoryValid && l.Now.Sub(e.seenAt) > autoscaler.LongestWindow(o.spec, l.Settings) {
		e.seedRecommendation(l) // every recommendation in the memory is too old to delay a change
	}
	e.memoryValid, e.writeUnknown, e.seenReplicas, e.seenAt = true, false, l.Scale.SpecReplicas, l.Now
}

// seedRecommendation adds the current count as a recommendation. A controller that did not observe
// the target therefore does not scale it down at once.
func (e *entry) seedRecommendation(l *targetState) {
	e.memory.Recommendations = append(slices.Clip(e.memory.Recommendations), autoscaler.ReplicaRecommendation{Replicas: l.Scale.SpecReplicas, At: l.Now})
}

// statusReplicas returns the target's count after the last decision in a status.
func statusReplicas(s *v1alpha1.AutoscalerStatus) (replicas int32, known bool) {
	if len(s.Decisions) > 0 && s.Decisions[0].Written {
		return s.Decisions[0].Desired, true
	}
	return s.CurrentReplicas, s.ObservedGeneration != nil
}
