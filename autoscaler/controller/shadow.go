package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
)

// glance is what a decision about a shadowed object was made of.
type glance struct {
	spec     *autoscalingv2.HorizontalPodAutoscalerSpec
	pods     []autoscaler.Pod
	readings []autoscaler.Reading // of each metric; those that were not asked for have an error
}

// before is a change of the controller's, and what was seen and remembered before
// it.
type before struct {
	change
	memory autoscaler.Memory
	glance glance
}

// shadow decides about a HorizontalPodAutoscaler, and compares that with what its
// controller did. It changes nothing.
func (c *Controller) shadow(ctx context.Context, o *object, e *entry, changes []change) {
	l := c.look(ctx, o, o.status)
	if ctx.Err() == context.Canceled {
		return // the process ends
	}
	c.record(o, e, l, true)
	reach := c.opts.Period + c.opts.Resolution
	if e.judge == nil {
		e.judge = &judge{reach: reach}
	}
	e.pending = append(e.pending, changes...)
	var found []comparison
	if l.ScaleErr == nil {
		if l.Now.Sub(e.looked) > reach {
			found = e.judge.lost(l.Now.Add(c.memorable(o)))
		}
		e.looked = l.Now
		for _, b := range e.open {
			found = append(found, e.judge.again(b.change, c.imagine(ctx, o, l, b))...)
		}
		for _, ch := range e.pending {
			b := before{ch, e.memory, e.glance}
			found = append(found, e.judge.changed(ch, c.imagine(ctx, o, l, b))...)
			e.open = append(e.open, b)
			if ch.From != ch.To {
				e.memory = e.memory.Scaled(o.spec.Behavior, ch.From, ch.To, ch.At)
			}
		}
		e.pending = nil
		e.glance = l.glance()
	}
	l.Memory = e.memory
	d := autoscaler.Decide(&l.Input)
	e.memory = d.Memory
	if l.ScaleErr == nil {
		found = append(found, e.judge.saw(sightOf(o, d, false))...)
	}
	waiting := e.judge.waiting()
	e.open = slices.DeleteFunc(e.open, func(b before) bool { return !slices.Contains(waiting, b.change) })

	t := c.told(o, l, d)
	t.context.Other = e.other(o)
	t.compared, t.memory = slices.Clone(e.judge.last), e.memory
	e.last.Store(t)
	c.metrics.decided(o.kind, l, d, nil, false)
	c.metrics.compared(found, e.judge.held())
	for _, f := range found {
		if f.Verdict == differed && c.opts.IsLeader() {
			c.opts.Logger.Info("weir would have scaled otherwise", zap.String("hpa", o.namespace+"/"+o.name), zap.String("reason", f.Reason),
				zap.Time("at", f.At), zap.Int32("from", f.From), zap.Int32("to", f.To), zap.Int32("weir", f.Ours), zap.String("why", f.Why))
		}
	}
}

// memorable returns how long must be watched to remember all that matters.
func (c *Controller) memorable(o *object) time.Duration {
	d := window(o.spec, c.opts.Settings)
	if b := o.spec.Behavior; b != nil {
		d = max(d, period(b.ScaleUp), period(b.ScaleDown))
	}
	return d
}

// glance has what is read for the coming decision kept.
func (l *look) glance() glance {
	g := glance{spec: l.Spec, pods: l.Pods, readings: make([]autoscaler.Reading, len(l.Spec.Metrics))}
	for i := range g.readings {
		g.readings[i].Err = errors.New("nobody asked for it")
	}
	if read := l.Read; read != nil {
		l.Read = func(i int) autoscaler.Reading {
			g.readings[i] = read(i)
			return g.readings[i]
		}
	}
	return g
}

// imagine decides as if the target still were as it was before a change: with that
// count, with what was remembered then, and with the pods that were there. Where
// the change is not what comes of their metrics of now, it is that of their metrics
// when last looked at before the change: pods that the change ended have no later
// ones, and what is left of them uses more.
func (c *Controller) imagine(ctx context.Context, o *object, l *look, b before) sight {
	in := l.Input
	in.Scale.Spec, in.Scale.Status = b.From, b.From
	in.Memory = b.memory
	in.Pods = asBefore(l.Pods, b.glance.pods, b.At)
	if l.Selector != nil {
		in.Read = c.opts.Metrics.Readings(ctx, l.Now, o.namespace, l.Selector, o.spec, in.Pods)
	}
	now := sightOf(o, autoscaler.Decide(&in), true)
	if now.Decided && now.Desired == b.To || !equality.Semantic.DeepEqual(b.glance.spec, o.spec) {
		return now
	}
	in.Pods = b.glance.pods
	in.Read = func(i int) autoscaler.Reading { return b.glance.readings[i] }
	if then := sightOf(o, autoscaler.Decide(&in), true); then.Decided && then.Desired == b.To {
		return then
	}
	return now
}

// asBefore returns the pods without what a change at a time did to them: those that
// have come since are not there, and those that are being deleted only since are
// not. earlier are the pods when last looked at, by name as well.
func asBefore(now, earlier []autoscaler.Pod, at time.Time) []autoscaler.Pod {
	was := func(name string) *autoscaler.Pod {
		i, ok := slices.BinarySearchFunc(earlier, name, func(p autoscaler.Pod, name string) int { return strings.Compare(p.Name, name) })
		if !ok {
			return nil
		}
		return &earlier[i]
	}
	kept := make([]autoscaler.Pod, 0, len(now))
	for _, p := range now {
		old := was(p.Name)
		if old == nil && (p.Started.IsZero() || p.Started.After(at)) {
			continue
		}
		if old != nil {
			p.Terminating = old.Terminating
		}
		kept = append(kept, p)
	}
	return kept
}

// active reports whether the controller of a shadowed object says that it has
// metrics.
func active(o *object) bool {
	return slices.ContainsFunc(o.status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionTrue
	})
}

// sightOf returns what matters of a decision when it is compared. It is told in
// words if that is wanted, or something is to be done.
func sightOf(o *object, d *autoscaler.Decision, tell bool) sight {
	s := sight{At: d.At, Current: d.Current, Desired: d.Desired, Decided: len(d.Steps) > 0}
	s.Alone = !s.Decided && active(o)
	if !tell && s.stance() == still {
		return s
	}
	s.Targets = targetsText(o.spec, withheld(d).Status.CurrentMetrics)
	s.Why = clip(decisionreport.Of(d, decisionreport.Context{Kind: o.kind, Mode: o.mode}).Summary, maxPodSentence)
	return s
}

// other returns what is known of the controller that acts on a shadowed object.
func (e *entry) other(o *object) *decisionreport.Other {
	r := &decisionreport.Other{Desired: o.status.DesiredReplicas, Agrees: true}
	if o.status.LastScaleTime != nil {
		r.At = o.status.LastScaleTime.Time
	}
	if n := len(e.judge.last); n > 0 && e.judge.last[n-1].Verdict == differed {
		r.Agrees, r.Why = false, e.judge.last[n-1].String()
	}
	return r
}
