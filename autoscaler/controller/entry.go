package controller

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/report"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// entry is what is kept of an object from one decision to the next. One worker at a
// time has it; last alone is read by others.
type entry struct {
	uid    types.UID
	memory autoscaler.Memory
	// begun says that memory is that of a decision, of this process or another.
	begun bool
	// seen is the count the target asked for when last looked at.
	seen int32
	// led says that this replica wrote, or could have, when it last decided.
	led bool
	// status is the last that this replica wrote while it led, and when.
	status   *v1alpha1.AutoscalerStatus
	statusAt time.Time

	// Of a shadowed object: the pods of the last decision, who compares, and the
	// changes that are still compared.
	pods  []autoscaler.Pod
	judge *judge
	open  []before

	last atomic.Pointer[told]
}

// told is the last decision and what it takes to tell it.
type told struct {
	decision *autoscaler.Decision
	memory   autoscaler.Memory // after it
	context  report.Context
	conflict string
	compared []comparison
}

// tell tells it.
func (t *told) tell() *report.Report {
	r := report.Of(t.decision, t.context)
	if t.conflict != "" {
		r.Notes = append(r.Notes, t.conflict)
	}
	for i := len(t.compared) - 1; i >= 0 && i >= len(t.compared)-5; i-- {
		r.Notes = append(r.Notes, "Compared: "+t.compared[i].String()+".")
	}
	return r
}

// known returns the last status there is of an Autoscaler: what this replica wrote,
// if it leads, for the watch may be behind; else what the leader did.
func (e *entry) known(o *object, leads bool) *v1alpha1.AutoscalerStatus {
	if !leads {
		e.status = nil
	}
	if e.status != nil {
		return e.status
	}
	return &o.scaler.Status
}

// recall brings the memory up to date with what happened to the target since the
// last decision: of this process, or of others. acts says that this replica now
// writes, refuses that a conflict keeps it from it.
func (e *entry) recall(o *object, status *v1alpha1.AutoscalerStatus, l *look, acts, refuses bool) {
	behavior, now := o.spec.Behavior, l.Now
	changed := func(from int32) {
		if from != l.Scale.Spec {
			e.memory = e.memory.Scaled(behavior, from, l.Scale.Spec, now)
		}
	}
	stood, known := standing(status)
	switch {
	case !e.begun:
		e.memory = recalled(status.Memory)
		e.memory.Recommendations = append(e.memory.Recommendations, autoscaler.Recommendation{Replicas: l.Scale.Spec, At: now})
		if known {
			changed(stood)
		}
	case o.mode == report.DryRun || refuses:
		changed(e.seen)
	case !e.led:
		noted := recalled(status.Memory)
		e.memory.Ups, e.memory.Downs = noted.Ups, noted.Downs
		if acts && known {
			changed(stood)
		}
	}
	e.begun, e.seen = true, l.Scale.Spec
}

// standing returns the count that the target was left with, as a status says.
func standing(s *v1alpha1.AutoscalerStatus) (replicas int32, known bool) {
	if len(s.Decisions) > 0 && s.Decisions[0].Written {
		return s.Decisions[0].Desired, true
	}
	return s.CurrentReplicas, s.ObservedGeneration != nil
}
