package controller

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// Kubernetes' controller decides once in a period because it must request each metric. weir has the
// metrics in memory. Between two decisions about an Autoscaler it therefore checks its pods'
// metrics with the last known scale. If they require another count than the last decision did, the
// next decision is made at once: it does not wait for the end of the period. A check changes
// nothing. Only the decision reads the scale, updates the memory and writes.

// peekShare bounds the CPU time of peeks to 1/peekShare of a core.
const peekShare = 20

// runPeeks enqueues objects if their metrics require another count, until ctx ends.
func (c *Controller) runPeeks(ctx context.Context, due func(objectKey)) {
	timer := time.NewTimer(c.opts.PeekInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		for k, t := range c.lastDecisions() {
			if k.kind == v1alpha1.Kind && c.wouldChange(ctx, k, t) {
				due(k)
			}
		}
		timer.Reset(max(c.opts.PeekInterval, peekShare*time.Since(began)))
	}
}

// wouldChange reports whether a decision made now would differ from the last one.
func (c *Controller) wouldChange(ctx context.Context, k objectKey, t *decisionRecord) (changes bool) {
	defer func() {
		if v := recover(); v != nil { // for the same reason as in syncRecovering
			changes = false
			c.metrics.countError(failedPanic)
			c.opts.Logger.Error("looking at an autoscaler's numbers panicked", zap.Stringer("autoscaler", k), zap.Any("panic", v), zap.Stack("stack"))
		}
	}()
	in := *t.context.Input
	requested := func(m autoscalingv2.MetricSpec) bool { return !c.opts.Metrics.IsInMemory(&m) }
	if in.ScaleErr != nil || slices.ContainsFunc(in.Spec.Metrics, requested) {
		return false // weir does not have all metrics in memory
	}
	selector, err := scaleclient.Selector(in.Scale.Selector)
	if err != nil {
		return false
	}
	in.Now, in.Memory, in.Scale.SpecReplicas = time.Now(), t.memory, t.replicas
	in.Pods, in.PodsErr = c.opts.Metrics.Pods(k.namespace, selector)
	in.ReadMetric = c.opts.Metrics.Readings(ctx, k.namespace, selector, in.Spec, in.Pods)
	d := autoscaler.Decide(&in)
	return d.Rescale && d.Desired != t.decision.Desired
}
