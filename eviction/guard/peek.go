package guard

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
)

// PeekEvery is how often Options.Peek is asked; and how often one looks, while a pod leaves for a
// soft threshold, whether there is worse to act on.
const PeekEvery = time.Second

// peek gives notice once a threshold that the kernel gives no notice of
// comes to be met, or ends.
func (g *Guard) peek(ctx context.Context, n *notify.Notifier) {
	eachPeek(ctx, func() {
		if last := g.last.Load(); last != nil && g.crossed(ctx, last) {
			n.Saw(notify.Look{Of: "disks and process ids"})
		}
	})
}

// eachPeek looks every PeekEvery until ctx ends.
func eachPeek(ctx context.Context, look func()) {
	ticker := time.NewTicker(PeekEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			look()
		}
	}
}

// crossed says whether the thresholds of disks and process ids stand otherwise than in a
// round. What could not be read is for the rounds to tell.
func (g *Guard) crossed(ctx context.Context, last *Round) bool {
	summary, _ := g.opts.Peek(ctx)
	if summary == nil {
		return false
	}
	now := eviction.Decide(&eviction.Input{
		Now: g.opts.Now(), Settings: g.opts.Settings, Summary: summary, State: last.Decision.State,
	})
	if len(now.Thresholds) != len(last.Decision.Thresholds) {
		return false // the node could not tell its disks, or not yet
	}
	for i := range now.Thresholds {
		t, was := &now.Thresholds[i], &last.Decision.Thresholds[i]
		if unnoticed(t.Threshold.Signal) && t.Observation != nil && was.Observation != nil && t.Met != was.Met {
			return true
		}
	}
	return false
}

// unnoticed says whether the kernel gives no notice of a signal.
func unnoticed(s eviction.Signal) bool {
	return ofDisk(s) || s.Condition() == corev1.NodePIDPressure
}
