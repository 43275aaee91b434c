package controller

import (
	"slices"
	"sync/atomic"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// entry is what is kept of an object from one decision to the next. One worker at a
// time has it; last alone is read by others.
type entry struct {
	uid    types.UID
	memory autoscaler.Memory
	// begun says that memory is that of a decision about target, of this process or
	// another.
	begun  bool
	target target.ID
	// seen is the count the target asked for when last looked at, at looked.
	seen   int32
	looked time.Time
	// led says that this replica wrote, or could have, when it last decided; unsure
	// that it tried to write, and does not know what came of it.
	led, unsure bool
	// status is the last that this replica wrote while it led, and when.
	status   *v1alpha1.AutoscalerStatus
	statusAt time.Time
	mute     bool // it was said that statuses cannot be written
	// recorded is what was last told to Options.Record.
	recorded recorded

	// Of a shadowed object: what the last decision was made of, who compares, and
	// the changes that are still compared.
	glance  glance
	judge   *judge
	open    []before
	pending []change // not yet looked at, for want of the scale

	last atomic.Pointer[told]
}

// told is the last decision and what it takes to tell it.
type told struct {
	decision *autoscaler.Decision
	memory   autoscaler.Memory // after it
	count    int32             // that the target was left with
	context  decisionreport.Context
	conflict string
	note     string // of the object
	compared []comparison
}

// tell tells it.
func (t *told) tell() *decisionreport.Report {
	r := decisionreport.Of(t.decision, t.context)
	for _, note := range []string{t.conflict, t.note} {
		if note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
	for i := len(t.compared) - 1; i >= 0 && i >= len(t.compared)-5; i-- {
		r.Notes = append(r.Notes, "Compared: "+t.compared[i].String()+".")
	}
	return r
}

// known returns the last status there is of an Autoscaler: what this replica wrote,
// if it leads, for the watch may be behind; else what the leader did. Another may
// have led for so short a time that this one did not notice.
func (e *entry) known(o *object, leads bool) *v1alpha1.AutoscalerStatus {
	if e.status != nil && latest(&o.scaler.Status).After(latest(e.status)) {
		leads, e.led = false, false
	}
	if !leads {
		e.status = nil
	}
	if e.status != nil {
		return e.status
	}
	return &o.scaler.Status
}

// latest returns when the last decision was made that a status keeps.
func latest(s *v1alpha1.AutoscalerStatus) (at time.Time) {
	if len(s.Decisions) > 0 {
		at = s.Decisions[0].Time.Time
	}
	return at
}

// turn notes which target is decided about. What is remembered of another is of no
// use.
func (e *entry) turn(id target.ID) {
	if e.target != id {
		e.target, e.begun, e.unsure, e.memory = id, false, false, autoscaler.Memory{}
	}
}

// about returns a status without what it says of another target than the one it is
// asked about.
func about(s *v1alpha1.AutoscalerStatus, id target.ID) *v1alpha1.AutoscalerStatus {
	if s.Memory != nil && s.Memory.Target == targetName(id) {
		return s
	}
	other := s.HorizontalPodAutoscalerStatus.DeepCopy()
	other.ObservedGeneration = nil
	other.Conditions = unset(other.Conditions, autoscalingv2.ScaledToZero)
	return &v1alpha1.AutoscalerStatus{HorizontalPodAutoscalerStatus: *other}
}

// targetName is how a status names a target.
func targetName(id target.ID) string { return id.Resource.String() + " " + id.Name }

// recall brings the memory up to date with what happened to the target since the
// last decision: of this process, or of others. acts says that this replica now
// writes, refuses that a conflict keeps it from it.
func (e *entry) recall(o *object, status *v1alpha1.AutoscalerStatus, l *look, acts, refuses bool) {
	changed := func(from int32) {
		if from != l.Scale.Spec {
			e.memory = e.memory.Scaled(o.spec.Behavior, from, l.Scale.Spec, l.Now)
		}
	}
	stood, known := standing(status)
	switch {
	case !e.begun:
		e.memory = recalled(status.Memory, l.Now)
		e.seed(l)
		if known {
			changed(stood)
		}
	case e.unsure || o.mode == decisionreport.DryRun || refuses:
		changed(e.seen)
	case !e.led:
		noted := recalled(status.Memory, l.Now)
		e.memory.Ups, e.memory.Downs = noted.Ups, noted.Downs
		if acts && known {
			changed(stood)
		}
	}
	if e.begun && l.Now.Sub(e.looked) > window(o.spec, l.Settings) {
		e.seed(l) // nothing it saw is young enough to hold anything back
	}
	e.begun, e.unsure, e.seen, e.looked = true, false, l.Scale.Spec, l.Now
}

// seed takes the current count for a recommendation: whoever has not looked on must
// not undo what it knows no reason for.
func (e *entry) seed(l *look) {
	e.memory.Recommendations = append(slices.Clip(e.memory.Recommendations), autoscaler.Recommendation{Replicas: l.Scale.Spec, At: l.Now})
}

// standing returns the count that the target was left with, as a status says.
func standing(s *v1alpha1.AutoscalerStatus) (replicas int32, known bool) {
	if len(s.Decisions) > 0 && s.Decisions[0].Written {
		return s.Decisions[0].Desired, true
	}
	return s.CurrentReplicas, s.ObservedGeneration != nil
}
