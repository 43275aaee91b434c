package controller

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// sync decides about an object and does what follows. It returns after how long to
// do so again; 0 if never.
func (c *Controller) sync(ctx context.Context, k key) time.Duration {
	if !c.catalog.listed(hpaKind) || k.kind == v1alpha1.Kind && !c.catalog.listed(v1alpha1.Kind) {
		return 0 // the catalog wakes everybody when all are known
	}
	o, changes := c.catalog.get(k)
	if o == nil {
		c.forget(k)
		return 0
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.opts.SyncTimeout)
	defer cancel()
	e := c.entry(o)
	if k.kind == hpaKind {
		c.shadow(ctx, o, e, changes)
	} else {
		c.act(ctx, o, e)
	}
	c.metrics.took(k.kind, time.Since(began))
	return c.wait(k, time.Now())
}

// act decides about an Autoscaler and carries the decision out, if that is for this
// replica to do.
func (c *Controller) act(ctx context.Context, o *object, e *entry) {
	leads := c.opts.IsLeader()
	status := e.known(o, leads)
	l := c.look(ctx, o, &status.HorizontalPodAutoscalerStatus)
	if ctx.Err() == context.Canceled {
		return // the process ends
	}
	conflict := c.conflict(ctx, o, l.handle)
	acts := leads && o.mode == decisionreport.Active && conflict == "" && l.ScaleErr == nil
	if l.ScaleErr == nil {
		e.turn(l.handle.ID)
		own := about(status, l.handle.ID)
		l.Status = &own.HorizontalPodAutoscalerStatus
		e.recall(o, own, l, acts, conflict != "")
	}
	l.Memory = e.memory
	c.record(o, e, l, o.mode == decisionreport.Active && conflict == "")
	d := autoscaler.Decide(&l.Input)
	t := c.told(o, l, d)
	t.conflict = conflict

	var done autoscaler.Done
	var wrote bool
	switch {
	case acts && d.Rescale:
		err := c.write(ctx, l.handle, d.Desired)
		wrote, t.context.Write = err == nil, err
		e.unsure = err != nil
		done = d.Conclude(err)
	case o.mode == decisionreport.Active && conflict == "":
		done = d.Conclude(nil)
		if d.Rescale {
			done = withheld(d) // the leader writes
		}
	default:
		done = withheld(d)
	}
	e.memory, e.led, t.memory = done.Memory, acts, done.Memory
	if wrote {
		e.seen = d.Desired
	}
	t.count = e.seen
	e.last.Store(t)
	c.metrics.decided(o.kind, l, d, t.context.Write, wrote)
	if !leads {
		return
	}
	c.tell(o, d, done, wrote)
	c.publish(ctx, o, e, round{
		object: o, told: t, done: done, old: status, conflict: conflict, wrote: wrote, settings: c.opts.Settings,
		blind: l.ScaleErr != nil, begun: e.begun, target: e.target,
	})
}

// withheld concludes a decision that is not carried out. Its status says what would
// be asked for; the target stays as it is, and so does the memory of changes.
func withheld(d *autoscaler.Decision) autoscaler.Done {
	still := *d
	still.Rescale = false
	return still.Conclude(nil)
}

// write changes the target. The end of the process does not interrupt it: whether
// it was done would not be known.
func (c *Controller) write(ctx context.Context, h *target.Handle, replicas int32) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.WriteTimeout)
	defer cancel()
	if !c.opts.IsLeader() {
		return fmt.Errorf("change the scale of %s: another replica leads now", h.ID)
	}
	return c.opts.Scales.Update(ctx, h, replicas)
}

// tell says in the log and in Events what was done.
func (c *Controller) tell(o *object, d *autoscaler.Decision, done autoscaler.Done, wrote bool) {
	for _, ev := range done.Events {
		c.events.Event(o.scaler, ev.Type, ev.Reason, clip(ev.Message, maxSentence))
	}
	if wrote {
		c.opts.Logger.Info("scaled", zap.String("autoscaler", o.namespace+"/"+o.name),
			zap.String("target", o.spec.ScaleTargetRef.Kind+"/"+o.spec.ScaleTargetRef.Name),
			zap.Int32("from", d.Current), zap.Int32("to", d.Desired), zap.String("reason", d.Because))
	}
	if done.Err != nil {
		c.opts.Logger.Debug("an autoscaler cannot decide or act", zap.String("autoscaler", o.namespace+"/"+o.name), zap.Error(done.Err))
	}
}

// conflict says whose the target of an Active Autoscaler is, in a sentence; nothing
// if it is its own. HorizontalPodAutoscalers go before Autoscalers, for their
// controller would not give way, and older Autoscalers before younger.
func (c *Controller) conflict(ctx context.Context, o *object, h *target.Handle) string {
	if h == nil || o.mode != decisionreport.Active {
		return ""
	}
	var owner *object // of several the first, so that the sentence stays the same
	for _, other := range c.catalog.others(o.key, o.target()) {
		if other.owns() && other.before(o) && (owner == nil || other.before(owner)) && c.same(ctx, h.ID, other) {
			owner = other
		}
	}
	switch {
	case owner == nil:
		return ""
	case owner.kind == hpaKind:
		return fmt.Sprintf("HorizontalPodAutoscaler %s scales %s. Delete it, and this Autoscaler takes over; or set mode: DryRun.", owner.name, h.ID)
	}
	return fmt.Sprintf("Autoscaler %s, which is older, scales %s. Delete one of the two, or set mode: DryRun in one.", owner.name, h.ID)
}

// same reports whether another object's target is the one with an ID. If that
// cannot be found out it is taken to be: two who scale one target are worse than
// one who waits.
func (c *Controller) same(ctx context.Context, id target.ID, other *object) bool {
	theirs, err := c.opts.Scales.ID(ctx, other.namespace, other.spec.ScaleTargetRef)
	if target.Final(err) {
		return false // of a kind that is not there
	}
	return err != nil || theirs == id
}

// eventConflict is the reason of the Event that tells a conflict's beginning.
const eventConflict = "Conflict"

// publish writes the status, if it says something new or it is time.
func (c *Controller) publish(ctx context.Context, o *object, e *entry, r round) {
	now := r.told.decision.At
	next, fresh := r.status()
	if fresh && r.conflict != "" && !holds(r.old, v1alpha1.ConditionConflict) {
		c.events.Event(o.scaler, corev1.EventTypeWarning, eventConflict, r.conflict)
	}
	if !fresh && (now.Sub(e.statusAt) < c.opts.StatusInterval-c.opts.Period/2 || sameValues(r.old, next)) {
		return
	}
	r.explain(next)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.WriteTimeout)
	defer cancel()
	if err := c.writeStatus(ctx, o, next); err != nil {
		c.metrics.failed(failedStatus)
		if !e.mute && c.opts.IsLeader() && !apierrors.IsNotFound(err) { // of what was deleted the watch will tell
			e.mute = true
			c.opts.Logger.Warn("an autoscaler's status cannot be written; it is tried again", zap.String("autoscaler", o.namespace+"/"+o.name), zap.Error(err))
		}
		// What was done stays known here, and the next status says it.
		if r.wrote {
			e.status = next
			e.statusAt = time.Time{}
		}
		return
	}
	c.metrics.statusWrites.Inc()
	e.status, e.statusAt, e.mute = next, now, false
}
