package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// decisionInputs are the inputs of a decision about a shadowed object.
type decisionInputs struct {
	spec     *autoscalingv2.HorizontalPodAutoscalerSpec
	pods     []autoscaler.PodInput
	readings []autoscaler.Reading // one for each metric; a metric that was not read has an error
}

// changeContext is a change of the controller, with weir's memory and inputs before it.
type changeContext struct {
	controllerChange
	memory autoscaler.Memory
	inputs decisionInputs
}

// shadowHPA decides about a HorizontalPodAutoscaler and compares the result with that of its
// controller. It changes nothing.
func (c *Controller) shadowHPA(ctx context.Context, o *scalingObject, e *entry, changes []controllerChange) {
	l := c.readTarget(ctx, o, e, o.status)
	l.Settings, l.gates = c.opts.Settings()
	if ctx.Err() == context.Canceled {
		return // the process ends
	}
	c.recordTarget(o, e, l, true)
	lookBack := c.opts.Period + c.opts.Resolution
	if e.comparer == nil {
		e.comparer = &comparer{maxSkew: lookBack}
	}
	oldest := l.Now.Add(-lookBack - memoryLength(o, l.Settings)) // no window and no comparison reads an older change
	e.pendingChanges = slices.DeleteFunc(append(e.pendingChanges, changes...), func(ch controllerChange) bool { return ch.At.Before(oldest) })
	var found []comparison
	if l.ScaleErr == nil {
		if l.Now.Sub(e.seenAt) > lookBack {
			found = e.comparer.addGap(l.Now.Add(memoryLength(o, l.Settings)))
		}
		e.seenAt = l.Now
		for _, b := range e.openChanges {
			found = append(found, e.comparer.recheckChange(b.controllerChange, c.decideAsBefore(ctx, o, l, b))...)
		}
		for _, ch := range e.pendingChanges {
			b := changeContext{ch, e.memory, e.lastInputs}
			found = append(found, e.comparer.addChange(ch, c.decideAsBefore(ctx, o, l, b))...)
			e.openChanges = append(e.openChanges, b)
			if ch.From != ch.To {
				e.memory = e.memory.WithChange(o.spec.Behavior, ch.From, ch.To, ch.At)
			}
		}
		e.pendingChanges = nil
		e.lastInputs = l.keepReadings()
	}
	l.Memory = e.memory
	d := autoscaler.Decide(&l.Input)
	e.memory = d.Memory
	if l.ScaleErr == nil {
		found = append(found, e.comparer.addDecision(newOwnDecision(o, d, false))...)
	}
	waiting := e.comparer.unmatchedChanges()
	e.openChanges = slices.DeleteFunc(e.openChanges, func(b changeContext) bool { return !slices.Contains(waiting, b.controllerChange) })

	t := c.newDecisionRecord(o, l, d)
	t.context.OtherController = e.otherController(o)
	t.comparisons, t.memory = slices.Clone(e.comparer.comparisons), e.memory
	e.lastDecision.Store(t)
	c.metrics.countDecision(o.kind, l, d, nil, false)
	c.metrics.countComparisons(found, e.comparer.takeHolds())
	for _, f := range found {
		if f.Result == differed && c.opts.IsLeader() {
			c.opts.Logger.Info("weir would have scaled otherwise", zap.String("hpa", o.namespace+"/"+o.name), zap.String("reason", f.Reason),
				zap.Time("at", f.At), zap.Int32("from", f.From), zap.Int32("to", f.To), zap.Int32("weir", f.WeirReplicas), zap.String("why", f.Explanation))
		}
	}
}

// memoryLength returns how long weir must observe a target until its memory is as long as the
// controller's.
func memoryLength(o *scalingObject, s *autoscaler.Settings) time.Duration {
	d := autoscaler.LongestWindow(o.spec, s)
	if b := o.spec.Behavior; b != nil {
		d = max(d, longestPeriod(b.ScaleUp), longestPeriod(b.ScaleDown))
	}
	return d
}

// keepReadings makes the coming decision keep its inputs, and returns them.
func (t *targetState) keepReadings() decisionInputs {
	g := decisionInputs{spec: t.Spec, pods: t.Pods, readings: make([]autoscaler.Reading, len(t.Spec.Metrics))}
	for i := range g.readings {
		g.readings[i].Err = errors.New("the metric was not read")
	}
	if read := t.ReadMetric; read != nil {
		t.ReadMetric = func(i int) autoscaler.Reading {
			g.readings[i] = read(i)
			return g.readings[i]
		}
	}
	return g
}

// decideAsBefore decides as if the target were still in its state before a change: with that count,
// that memory and the pods of that time. If the pods' current metrics do not give the controller's
// change, it decides on the last metrics before the change. Pods that the change removed have no
// later metrics, and the remaining pods use more.
func (c *Controller) decideAsBefore(ctx context.Context, o *scalingObject, l *targetState, b changeContext) ownDecision {
	in := l.Input
	in.Scale.SpecReplicas, in.Scale.StatusReplicas = b.From, b.From
	in.Memory = b.memory
	in.Pods = podsBefore(l.Pods, b.inputs.pods, b.At)
	if l.Selector != nil {
		in.ReadMetric = c.opts.Metrics.Readings(ctx, o.namespace, l.Selector, o.spec, in.Pods)
	}
	now := newOwnDecision(o, autoscaler.Decide(&in), true)
	if now.Decided && now.Desired == b.To || !equality.Semantic.DeepEqual(b.inputs.spec, o.spec) {
		return now
	}
	in.Pods = b.inputs.pods
	in.ReadMetric = func(i int) autoscaler.Reading { return b.inputs.readings[i] }
	if next := newOwnDecision(o, autoscaler.Decide(&in), true); next.Decided && next.Desired == b.To {
		return next
	}
	return now
}

// podsBefore returns the pods as they were before a change: without the pods created since, and
// with their earlier deletion state. earlier are the pods of the last read, by name.
func podsBefore(now, earlier []autoscaler.PodInput, at time.Time) []autoscaler.PodInput {
	kept := make([]autoscaler.PodInput, 0, len(now))
	for _, p := range now {
		i, existed := slices.BinarySearchFunc(earlier, p.Name, func(p autoscaler.PodInput, name string) int { return strings.Compare(p.Name, name) })
		switch {
		case existed:
			p.Terminating = earlier[i].Terminating
		case p.Started.IsZero() || p.Started.After(at):
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// newOwnDecision returns the parts of a decision that are compared. It sets the texts if withText
// is set or if the count would change.
func newOwnDecision(o *scalingObject, d *autoscaler.Decision, withText bool) ownDecision {
	s := ownDecision{At: d.At, Current: d.Current, Desired: d.Desired, Decided: len(d.Steps) > 0}
	s.MetricsMissing = !s.Decided && autoscaler.ConditionTrue(o.status.Conditions, autoscalingv2.ScalingActive)
	if !withText && s.direction() == directionNone {
		return s
	}
	s.Targets = targetsText(o.spec, concludeUnwritten(d).Status.CurrentMetrics)
	s.Summary = truncate(decisionreport.New(d, decisionreport.Context{Kind: o.kind, Mode: o.mode}).Summary, maxPodSentence)
	return s
}

// otherController returns what is known about the controller of a shadowed object.
func (e *entry) otherController(o *scalingObject) *decisionreport.OtherController {
	r := &decisionreport.OtherController{Desired: o.status.DesiredReplicas, Agrees: true}
	if o.status.LastScaleTime != nil {
		r.ChangedAt = o.status.LastScaleTime.Time
	}
	if n := len(e.comparer.comparisons); n > 0 && e.comparer.comparisons[n-1].Result == differed {
		r.Agrees, r.Difference = false, e.comparer.comparisons[n-1].String()
	}
	return r
}
