package guard

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
)

// PollInterval is the time between two calls of Options.Poll. It is also the time between two
// checks for hard thresholds while a pod terminates for a soft one.
const PollInterval = time.Second

// poll starts a round when a threshold of disks or process ids becomes met, or ends.
func (g *Guard) poll(ctx context.Context, n *notify.Notifier) {
	everyPoll(ctx, nil, func() {
		if last := g.last.Load(); last != nil && g.thresholdsChanged(ctx, last) {
			n.Notify(notify.NoticeSource{Watch: notify.Poll{}})
		}
	})
}

// everyPoll calls check every PollInterval, and for each element of sooner, until ctx ends.
func everyPoll(ctx context.Context, sooner <-chan struct{}, check func()) {
	ticker := time.NewTicker(PollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			check()
		case <-sooner:
			check()
		}
	}
}

// thresholdsChanged reports whether a threshold of disks or process ids is met now but was not met
// in the last round, or the reverse. It ignores errors, because rounds report them.
func (g *Guard) thresholdsChanged(ctx context.Context, last *Round) bool {
	summary, _ := g.opts.Poll(ctx)
	if summary == nil {
		return false
	}
	now := eviction.Decide(&eviction.Input{
		Now: g.opts.Now(), Settings: g.opts.Settings, Summary: summary, State: last.Decision.State,
	})
	if len(now.Thresholds) != len(last.Decision.Thresholds) {
		return false // the layout of the disks is not known
	}
	for i := range now.Thresholds {
		t, before := &now.Thresholds[i], &last.Decision.Thresholds[i]
		if needsPolling(t.Threshold.Signal) && t.Observation != nil && before.Observation != nil && t.Met != before.Met {
			return true
		}
	}
	return false
}

// needsPolling reports whether Options.Poll must read a signal.
func needsPolling(s eviction.Signal) bool {
	return isDiskSignal(s) || s.Condition() == corev1.NodePIDPressure
}
