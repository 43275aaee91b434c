package controller

import (
	"context"
	"time"

	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// Kubernetes' controller decides every period, for it must ask others for each
// number. Here they are at hand, so between two decisions about an Autoscaler its
// pods' numbers are looked at, with the target's scale as it was left. Where that
// gives another count than the last decision did, the next one is made at once: a
// new number, or a window that is over, waits for no period. A look is forgotten; it
// is the decision that reads the scale again, is remembered, and writes.

// peekShare bounds what looking costs: one part in so many of a core.
const peekShare = 20

// peeks has decisions made at once, as they become due, until ctx ends.
func (c *Controller) peeks(ctx context.Context, due func(key)) {
	timer := time.NewTimer(c.opts.Peek)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		for k, t := range c.lastOfAutoscalers() {
			if c.turned(ctx, k, t) {
				due(k)
			}
		}
		timer.Reset(max(c.opts.Peek, peekShare*time.Since(began)))
	}
}

// lastOfAutoscalers returns the last decision about each.
func (c *Controller) lastOfAutoscalers() map[key]*told {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := make(map[key]*told, len(c.mu.entries))
	for k, e := range c.mu.entries {
		if t := e.last.Load(); t != nil && k.kind == v1alpha1.Kind {
			last[k] = t
		}
	}
	return last
}

// turned reports whether a decision made now would be another than the last one.
func (c *Controller) turned(ctx context.Context, k key, t *told) (turned bool) {
	defer func() {
		if v := recover(); v != nil { // as in survive
			turned = false
			c.metrics.failed(failedPanic)
			c.opts.Logger.Error("looking at an autoscaler's numbers panicked", zap.Stringer("autoscaler", k), zap.Any("panic", v), zap.Stack("stack"))
		}
	}()
	in := *t.context.Input
	if in.ScaleErr != nil || !atHand(in.Spec) {
		return false
	}
	selector, err := target.Selector(in.Scale.Selector)
	if err != nil {
		return false
	}
	in.Now, in.Memory, in.Scale.Spec = time.Now(), t.memory, t.count
	in.Pods, in.PodsErr = c.opts.Metrics.Pods(k.namespace, selector)
	in.Read = c.opts.Metrics.Readings(ctx, in.Now, k.namespace, selector, in.Spec, in.Pods)
	d := autoscaler.Decide(&in)
	return d.Rescale && d.Desired != t.decision.Desired
}

// atHand reports whether nobody has to be asked for a specification's metrics.
func atHand(spec *autoscalingv2.HorizontalPodAutoscalerSpec) bool {
	for i := range spec.Metrics {
		if spec.Metrics[i].Type == autoscalingv2.ExternalMetricSourceType {
			return false
		}
	}
	return true
}
