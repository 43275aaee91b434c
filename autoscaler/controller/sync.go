package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/cluster/gates"
)

// sync decides about an object and carries the decision out. It returns the time until the next
// decision; 0 means never.
func (c *Controller) sync(ctx context.Context, k objectKey) time.Duration {
	if !c.catalog.kindListed(hpaKind) || k.kind == v1alpha1.Kind && !c.catalog.kindListed(v1alpha1.Kind) {
		return 0 // the catalog enqueues all objects when all kinds are listed
	}
	o, changes := c.catalog.takeChanges(k)
	if o == nil {
		c.deleteEntry(k)
		return 0
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	e := c.getEntry(o)
	if k.kind == hpaKind {
		c.shadowHPA(ctx, o, e, changes)
	} else {
		c.decideAndAct(ctx, o, e)
	}
	c.metrics.duration.WithLabelValues(k.kind).Observe(time.Since(began).Seconds())
	return c.untilNext(k, time.Now())
}

// decideAndAct decides about an Autoscaler and carries the decision out if this replica leads.
func (c *Controller) decideAndAct(ctx context.Context, o *scalingObject, e *entry) {
	leads := c.opts.IsLeader()
	settings, featureGates := c.opts.Settings()
	o = o.withSettings(settings)
	status := e.latestStatus(o, leads)
	l := c.readTarget(ctx, o, e, &status.HorizontalPodAutoscalerStatus)
	l.Settings, l.gates = settings, featureGates
	if ctx.Err() == context.Canceled {
		return // the process is stopping
	}
	conflict := c.findConflict(ctx, o, l.handle)
	acts := leads && o.mode == decisionreport.Active && conflict == "" && l.ScaleErr == nil
	if l.ScaleErr == nil {
		e.setTarget(l.handle.WorkloadID)
		own := statusForTarget(status, l.handle.WorkloadID)
		l.Status = &own.HorizontalPodAutoscalerStatus
		e.restoreMemory(o, own, l, acts, conflict != "")
	}
	l.Memory = e.memory
	c.recordTarget(o, e, l, o.mode == decisionreport.Active && conflict == "")
	d := autoscaler.Decide(&l.Input)
	t := c.newDecisionRecord(o, l, d)
	t.conflict = conflict

	var done autoscaler.Completion
	var wrote bool
	switch {
	case acts && d.Rescale:
		err := c.writeScale(ctx, l.handle, d.Desired)
		wrote, t.context.WriteErr = err == nil, err
		e.writeUnknown = err != nil
		done = d.Conclude(err)
	case o.mode == decisionreport.Active && conflict == "":
		done = d.Conclude(nil)
		if d.Rescale {
			done = concludeUnwritten(d) // only the leader writes
		}
	default:
		done = concludeUnwritten(d)
	}
	e.memory, e.wasWriter, t.memory = done.Memory, acts, done.Memory
	if wrote {
		e.seenReplicas = d.Desired
	}
	t.replicas = e.seenReplicas
	e.lastDecision.Store(t)
	c.metrics.countDecision(o.kind, l, d, t.context.WriteErr, wrote)
	if !leads {
		return
	}
	c.writeEvents(o, d, done, wrote)
	c.publishStatus(ctx, statusUpdate{
		object: o, record: t, completion: done, old: status, entry: e, wrote: wrote, settings: settings, scaleUnknown: l.ScaleErr != nil,
	})
}

// concludeUnwritten concludes a decision that is not carried out. Its status has the count that
// weir would request; the target and the memory of changes do not change.
func concludeUnwritten(d *autoscaler.Decision) autoscaler.Completion {
	still := *d
	still.Rescale = false
	return still.Conclude(nil)
}

// writeScale changes the target. The end of the process does not interrupt it, because its result
// would then be unknown.
func (c *Controller) writeScale(ctx context.Context, h *scaleclient.Handle, replicas int32) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if !c.opts.IsLeader() {
		return fmt.Errorf("change the scale of %s: another replica leads now", h.WorkloadID)
	}
	return c.opts.Scales.Update(ctx, h, replicas)
}

// writeEvents writes the decision to the log and to Events.
func (c *Controller) writeEvents(o *scalingObject, d *autoscaler.Decision, done autoscaler.Completion, wrote bool) {
	for _, ev := range done.Events {
		c.events.Event(o.autoscaler, ev.Type, ev.Reason, truncate(ev.Message, maxSentence))
	}
	if wrote {
		c.opts.Logger.Info("scaled", zap.String("autoscaler", o.namespace+"/"+o.name),
			zap.String("target", o.spec.ScaleTargetRef.Kind+"/"+o.spec.ScaleTargetRef.Name),
			zap.Int32("from", d.Current), zap.Int32("to", d.Desired), zap.String("reason", d.RescaleReason))
	}
	if done.Err != nil {
		c.opts.Logger.Debug("an autoscaler cannot decide or act", zap.String("autoscaler", o.namespace+"/"+o.name), zap.Error(done.Err))
	}
}

// findConflict returns a sentence that names the owner of an Active Autoscaler's target. It returns
// "" if the Autoscaler may scale the target itself. HorizontalPodAutoscalers have priority because
// their controller does not yield; then come older Autoscalers.
func (c *Controller) findConflict(ctx context.Context, o *scalingObject, h *scaleclient.Handle) string {
	if h == nil || o.mode != decisionreport.Active {
		return ""
	}
	var owner *scalingObject // the first of several, so that the sentence stays the same
	for _, other := range c.catalog.othersWithTarget(o.objectKey, o.target()) {
		if other.canOwnTarget() && other.precedes(o) && (owner == nil || other.precedes(owner)) && c.sameTarget(ctx, h.WorkloadID, other) {
			owner = other
		}
	}
	switch {
	case owner == nil:
		return ""
	case owner.kind == hpaKind:
		return fmt.Sprintf("HorizontalPodAutoscaler %s scales %s. Delete it, and this Autoscaler takes over; or set mode: DryRun.", owner.name, h.WorkloadID)
	}
	return fmt.Sprintf("Autoscaler %s, which is older, scales %s. Delete one of the two, or set mode: DryRun in one.", owner.name, h.WorkloadID)
}

// sameTarget reports whether another object's target is the workload id. It returns true if that is
// not known: two autoscalers that scale one target are worse than one that waits.
func (c *Controller) sameTarget(ctx context.Context, id scaleclient.WorkloadID, other *scalingObject) bool {
	theirs, err := c.opts.Scales.WorkloadID(ctx, other.namespace, other.spec.ScaleTargetRef)
	if scaleclient.IsPermanent(err) {
		return false // the cluster does not have the kind
	}
	return err != nil || theirs == id
}

// eventConflict is the reason of the Event when a conflict begins.
const eventConflict = "Conflict"

// publishStatus writes the status if it must be written at once or statusInterval has passed.
func (c *Controller) publishStatus(ctx context.Context, r statusUpdate) {
	o, e := r.object, r.entry
	now := r.record.decision.At
	next, fresh := r.nextStatus()
	if fresh && r.record.conflict != "" && !autoscaler.ConditionTrue(r.old.Conditions, v1alpha1.ConditionConflict) {
		c.events.Event(o.autoscaler, corev1.EventTypeWarning, eventConflict, r.record.conflict)
	}
	if !fresh && (now.Sub(e.statusAt) < statusInterval-c.opts.Period/2 || sameValues(r.old, next)) {
		return
	}
	r.addSentences(next)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := c.writeStatus(ctx, o, next); err != nil {
		c.metrics.countError(failedStatus)
		if !e.statusFailureLogged && c.opts.IsLeader() && !apierrors.IsNotFound(err) { // the watch reports deletions
			e.statusFailureLogged = true
			c.opts.Logger.Warn("an autoscaler's status cannot be written; it is tried again", zap.String("autoscaler", o.namespace+"/"+o.name), zap.Error(err))
		}
		// This replica remembers what it did, and the next status reports it.
		if r.wrote {
			e.status = next
			e.statusAt = time.Time{}
		}
		return
	}
	c.metrics.statusWrites.Inc()
	e.status, e.statusAt, e.statusFailureLogged = next, now, false
}

// targetState is the state of an object's target at one time.
type targetState struct {
	autoscaler.Input
	handle *scaleclient.Handle
	gates  *gates.Gates // of Settings; may be nil
}

// readTarget reads all inputs of a decision, except the memory and the settings.
func (c *Controller) readTarget(ctx context.Context, o *scalingObject, e *entry, status *autoscalingv2.HorizontalPodAutoscalerStatus) *targetState {
	l := &targetState{Input: autoscaler.Input{Object: o.namespacedName(), Spec: o.spec, Status: status}}
	l.Scale, l.handle, l.ScaleErr = c.opts.Scales.Get(ctx, o.namespace, o.spec.ScaleTargetRef)
	l.Now = time.Now()
	if l.ScaleErr != nil {
		if o.kind != hpaKind && scaleclient.IsPermanent(l.ScaleErr) {
			c.selectors.Delete(e.selectorOwner) // its target's former pods may belong to another object now
		}
		return l
	}
	selector, err := scaleclient.Selector(l.Scale.Selector)
	if err != nil {
		if o.kind != hpaKind { // Kubernetes' controller keeps the last selector of an HPA until the HPA is deleted
			c.selectors.Delete(e.selectorOwner)
		}
		l.PodsErr = err // then no metric is read
		return l
	}
	l.Selector = selector
	if owner := (selectorOwner{o.objectKey, l.handle.WorkloadID}); owner != e.selectorOwner {
		c.selectors.Delete(e.selectorOwner)
		e.selectorOwner = owner
	}
	c.selectors.Set(e.selectorOwner, o.namespace, selector)
	l.Pods, l.PodsErr = c.opts.Metrics.Pods(o.namespace, selector)
	l.Overlapping = c.overlapping(e.selectorOwner, l.Pods)
	l.ReadMetric = c.opts.Metrics.Readings(ctx, o.namespace, selector, o.spec, l.Pods)
	return l
}

// selectorOwner is an object that has a target with a selector.
type selectorOwner struct {
	objectKey
	target scaleclient.WorkloadID
}

// overlapping returns the object and the other objects of its kind that have one of its pods, sorted by name. Autoscalers
// of one target are left out: only one of them writes (see findConflict). Of HPAs of one target, Kubernetes' controller
// scales by none.
func (c *Controller) overlapping(own selectorOwner, pods []autoscaler.PodInput) []types.NamespacedName {
	found := map[types.NamespacedName]bool{own.namespacedName(): true}
	for i := range pods {
		for other := range c.selectors.Matching(own.namespace, pods[i].Labels) {
			apart := other.target != own.target || own.kind == hpaKind
			if other.kind == own.kind && apart && !c.neverWrites(other.objectKey) {
				found[other.namespacedName()] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
}

// neverWrites reports whether an object never changes a target. Its selector may then overlap with
// others.
func (c *Controller) neverWrites(k objectKey) bool {
	o := c.catalog.object(k)
	return o == nil || !o.canOwnTarget()
}

// newDecisionRecord returns a decision with what its report needs.
func (c *Controller) newDecisionRecord(o *scalingObject, l *targetState, d *autoscaler.Decision) *decisionRecord {
	in := l.Input
	in.ReadMetric = nil // ReadMetric refers to a state of the memory sink
	return &decisionRecord{decision: d, note: o.note, context: decisionreport.Context{
		Kind: o.kind, Mode: o.mode, Input: &in, Gates: l.gates, Verdict: c.opts.Metrics.Verdicts(o.namespace, o.spec),
	}}
}
