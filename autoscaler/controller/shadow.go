package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/report"
)

// before is a change of the controller's and what was remembered before it.
type before struct {
	change
	memory autoscaler.Memory
}

// shadow decides about a HorizontalPodAutoscaler, and compares that with what its
// controller did. It changes nothing.
func (c *Controller) shadow(ctx context.Context, o *object, e *entry, changes []change) {
	l := c.look(ctx, o, o.status)
	if ctx.Err() == context.Canceled {
		return // the process ends
	}
	if e.judge == nil {
		e.judge = &judge{reach: c.opts.Period + c.opts.Resolution, warm: l.Now.Add(c.memorable(o))}
	}
	var found []comparison
	if l.ScaleErr == nil {
		for _, b := range e.open {
			found = append(found, e.judge.again(b.change, c.imagine(ctx, o, l, e, b))...)
		}
		for _, ch := range changes {
			b := before{ch, e.memory}
			found = append(found, e.judge.changed(ch, c.imagine(ctx, o, l, e, b))...)
			e.open = append(e.open, b)
			if ch.From != ch.To {
				e.memory = e.memory.Scaled(o.spec.Behavior, ch.From, ch.To, ch.At)
			}
		}
	}
	l.Memory = e.memory
	d := autoscaler.Decide(&l.Input)
	e.memory, e.seen, e.pods = d.Memory, l.Scale.Spec, l.Pods
	found = append(found, e.judge.saw(sightOf(o, d))...)
	waiting := e.judge.waiting()
	e.open = slices.DeleteFunc(e.open, func(b before) bool { return !slices.Contains(waiting, b.change) })

	t := c.told(o, l, d)
	t.context.Other = e.other(o)
	t.compared, t.memory = slices.Clone(e.judge.last), e.memory
	e.last.Store(t)
	c.metrics.decided(o.kind, d, nil, false)
	c.metrics.compared(found, e.judge.held())
	for _, f := range found {
		if f.Verdict == differed && c.opts.Leads() {
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

// imagine decides as if the target still were as it was before a change: with that
// count, with what was remembered then, and with the pods that were there.
func (c *Controller) imagine(ctx context.Context, o *object, l *look, e *entry, b before) sight {
	in := l.Input
	in.Scale.Spec, in.Scale.Status = b.From, b.From
	in.Memory = b.memory
	in.Pods = asBefore(l.Pods, e.pods, b.At)
	if l.selector != nil {
		in.Read = c.opts.Metrics.Readings(ctx, l.Now, o.namespace, l.selector, o.spec, in.Pods)
	}
	return sightOf(o, autoscaler.Decide(&in))
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

// sightOf returns what matters of a decision when it is compared.
func sightOf(o *object, d *autoscaler.Decision) sight {
	s := sight{At: d.At, Current: d.Current, Desired: d.Desired, Decided: len(d.Steps) > 0}
	s.Targets = targetsText(o.spec, withheld(d).Status.CurrentMetrics)
	s.Why = clip(report.Of(d, report.Context{Kind: o.kind, Mode: o.mode}).Summary, maxPodSentence)
	return s
}

// other returns what is known of the controller that acts on a shadowed object.
func (e *entry) other(o *object) *report.Other {
	r := &report.Other{Desired: o.status.DesiredReplicas, Agrees: true}
	if o.status.LastScaleTime != nil {
		r.At = o.status.LastScaleTime.Time
	}
	if n := len(e.judge.last); n > 0 && e.judge.last[n-1].Verdict == differed {
		r.Agrees, r.Why = false, e.judge.last[n-1].String()
	}
	return r
}
