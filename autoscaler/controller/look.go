package controller

import (
	"context"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/target"
)

// look is what is found of an object's target at a moment.
type look struct {
	autoscaler.Input
	handle *target.Handle
}

// look finds out what a decision is made of, all but the memory.
func (c *Controller) look(ctx context.Context, o *object, status *autoscalingv2.HorizontalPodAutoscalerStatus) *look {
	l := &look{Input: autoscaler.Input{Settings: c.opts.Settings, Object: o.named(), Spec: o.spec, Status: status}}
	l.Scale, l.handle, l.ScaleErr = c.opts.Scales.Get(ctx, o.namespace, o.spec.ScaleTargetRef)
	l.Now = time.Now()
	if l.ScaleErr != nil {
		if target.Final(l.ScaleErr) {
			c.rivals.drop(o.key) // the pods that its target had may be another's now
		}
		return l
	}
	selector, err := target.Selector(l.Scale.Selector)
	if err != nil {
		c.rivals.drop(o.key)
		l.PodsErr = err
		l.Read = func(int) autoscaler.Reading { return autoscaler.Reading{Err: err} }
		return l
	}
	l.Selector = selector
	c.rivals.put(o.key, l.handle.ID, l.Scale.Selector, selector)
	l.Pods, l.PodsErr = c.opts.Metrics.Pods(o.namespace, selector)
	l.Rivals = c.rivals.of(o.key, l.Pods,
		func(s labels.Selector) ([]autoscaler.Pod, error) { return c.opts.Metrics.Pods(o.namespace, s) }, c.harmless)
	l.Read = c.opts.Metrics.Readings(ctx, l.Now, o.namespace, selector, o.spec, l.Pods)
	return l
}

// harmless reports whether an object never changes anything, so that its selector
// may match whatever it likes.
func (c *Controller) harmless(k key) bool {
	o := c.catalog.peek(k)
	return o == nil || !o.owns()
}

// told returns d with what it takes to tell it.
func (c *Controller) told(o *object, l *look, d *autoscaler.Decision) *told {
	t := &told{decision: d, note: o.note, context: decisionreport.Context{Kind: o.kind, Mode: o.mode, Target: o.spec.ScaleTargetRef.Kind + "/" + o.spec.ScaleTargetRef.Name, Max: o.spec.MaxReplicas, Min: 1}}
	if o.spec.MinReplicas != nil {
		t.context.Min = *o.spec.MinReplicas
	}
	in := l.Input
	in.Read = nil // it holds on to a state of memory
	t.context.Input = &in
	t.context.Verdict = c.opts.Metrics.Verdicts(o.namespace, o.spec)
	return t
}
