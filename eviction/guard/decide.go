package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
)

// refreshInterval is the shortest time between two calls of Options.Refresh. The kubelet's own
// figures of the disk usage of pods are up to a minute old.
const refreshInterval = 30 * time.Second

// nearDiskShare is the distance from a disk threshold that counts as near, as a share of the disk's
// capacity.
const nearDiskShare = 0.02

// readAndDecide reads the node and decides. It does so again if a refresh is needed.
func (g *Guard) readAndDecide(ctx context.Context, notice notify.Notice) *Round {
	r := &Round{Notice: notice, Watching: g.watching, Unwatched: g.unwatched}
	g.decide(ctx, r)
	switch {
	case g.opts.Refresh == nil || ctx.Err() != nil || g.opts.Now().Sub(g.refreshedAt) < refreshInterval:
	case choosesByDiskUsage(r.Decision):
		// The choice of the pod depends on figures that may be a minute old.
		g.opts.Refresh(ctx)
		g.refreshedAt = g.opts.Now()
		g.decide(ctx, r)
	case nearDiskThreshold(r.Decision):
		g.refreshedAt = g.opts.Now()
		g.refreshes.Go(func() { g.opts.Refresh(ctx) })
	}
	g.logChange("the node was not read completely", errorText(r.ReadErr))
	g.logChange("no decision is possible", errorText(r.Decision.Err))
	g.logChange("memory is not polled", errorText(r.memoryErr))
	return r
}

// decide sets the round's input and decision.
func (g *Guard) decide(ctx context.Context, r *Round) {
	in := &eviction.Input{Settings: g.opts.Settings, Self: g.opts.Self, Blocked: g.blockedNow(g.opts.Now()), Evicted: g.evictedAt, State: g.state}
	if !g.state.LayoutKnown {
		in.Layout.DedicatedImageFs, in.Layout.DedicatedContainerFs, in.LayoutErr = g.opts.Layout(ctx)
	}
	var podsErr error
	in.Pods, podsErr = g.pods()
	r.memory, r.memoryErr = g.readWorkingSets()
	began := time.Now()
	var readErr error
	in.Summary, readErr = g.read(ctx)
	g.metrics.reads.Observe(time.Since(began).Seconds())
	g.readWorkingSetsAgain(r.memory)
	if in.Summary == nil {
		in.SummaryErr, readErr = readErr, nil
	}
	in.MemoryLeft = g.opts.MemoryLeft()
	in.Now = g.opts.Now()
	r.Input, r.ReadAt, r.ReadErr = in, in.Now, errors.Join(readErr, podsErr)
	r.Decision = eviction.Decide(in)
	r.DecidedAt = g.opts.Now()
	r.memory = withAvailable(r.memory, r.Decision)
}

// read reads the node. The summary is nil only if there is an error. If both are set, the error
// says what the summary lacks.
func (g *Guard) read(ctx context.Context) (*stats.Summary, error) {
	s, err := g.opts.Read(ctx)
	if s == nil && err == nil {
		err = errors.New("the reader returned nothing")
	}
	return s, err
}

// pods returns the node's pods that have not ended.
func (g *Guard) pods() ([]*corev1.Pod, error) {
	list, err := g.opts.Pods()
	if err != nil {
		return nil, fmt.Errorf("list the node's pods: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(list), func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	}), nil
}

// blockedUntil is a pod that is skipped until a time.
type blockedUntil struct {
	eviction.BlockedPod
	until time.Time
}

// blockedNow returns the pods that are skipped now.
func (g *Guard) blockedNow(now time.Time) map[types.UID]eviction.BlockedPod {
	list := make(map[types.UID]eviction.BlockedPod, len(g.blocked))
	for uid, b := range g.blocked {
		if !b.until.After(now) {
			delete(g.blocked, uid)
			continue
		}
		list[uid] = b.BlockedPod
	}
	return list
}

// choosesByDiskUsage reports whether the choice of the pod depends on disk usage.
func choosesByDiskUsage(d *eviction.Decision) bool {
	return d.Outcome == eviction.OutcomeLocalLimit || d.Acting >= 0 && isDiskSignal(d.Thresholds[d.Acting].Threshold.Signal)
}

// nearDiskThreshold reports whether a disk threshold is met or near.
func nearDiskThreshold(d *eviction.Decision) bool {
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if distance, ok := t.Distance(); ok && isDiskSignal(t.Threshold.Signal) && distance < nearDiskShare*float64(t.Observation.Capacity) {
			return true
		}
	}
	return false
}

func isDiskSignal(s eviction.Signal) bool { return s.Condition() == corev1.NodeDiskPressure }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
