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

// nearShare is the distance from a threshold of disks or memory that counts as near, as a share of the
// capacity.
const nearShare = 0.02

// readAndDecide reads the node and decides. It does so again if the memory of pods did not suffice,
// or if a refresh is needed.
func (g *Guard) readAndDecide(ctx context.Context, notice notify.Notice) *Round {
	r := &Round{Notice: notice, Watching: g.watching, Unwatched: g.unwatched}
	if g.opts.ReadMemory == nil || !hasCrossing(notice) || !g.decideByMemory(ctx, r) {
		g.decide(ctx, r, g.opts.Read)
		if g.opts.ReadMemory != nil && g.last.Load() == nil {
			// The code that a crossing needs is then in memory, and the agent locks what it has used. Without
			// it, two of six first crossings on an emulated node took 94 and 108 ms to read.
			g.decideByMemory(ctx, &Round{})
		}
	}
	switch {
	case g.opts.Refresh == nil || ctx.Err() != nil || g.opts.Now().Sub(g.refreshedAt) < refreshInterval:
	case choosesByDiskUsage(r.Decision):
		// The choice of the pod depends on figures that may be a minute old.
		g.opts.Refresh(ctx)
		g.refreshedAt = g.opts.Now()
		g.decide(ctx, r, g.opts.Read)
	case nearDiskThreshold(r.Decision):
		g.refreshedAt = g.opts.Now()
		g.refreshes.Go(func() { g.opts.Refresh(ctx) })
	}
	g.logChange("the node was not read completely", errorText(r.ReadErr))
	g.logChange("no decision is possible", errorText(r.Decision.Err))
	g.logChange("memory is not polled", errorText(r.memoryErr))
	return r
}

// hasCrossing reports whether memory is less than a threshold now.
func hasCrossing(n notify.Notice) bool {
	return slices.ContainsFunc(n.Sources, func(s notify.NoticeSource) bool { return s.Crossing != nil && s.Crossing.Above() })
}

// decideByMemory decides with the memory of the pods alone. It reports whether a read of all would
// not change the decision: it evicts a pod for memory, which goes before all else.
func (g *Guard) decideByMemory(ctx context.Context, r *Round) bool {
	g.decide(ctx, r, g.opts.ReadMemory)
	d := r.Decision
	return len(d.Kills) > 0 && d.Acting >= 0 && d.Thresholds[d.Acting].Threshold.Signal.Condition() == corev1.NodeMemoryPressure
}

// decide sets the round's input and decision.
func (g *Guard) decide(ctx context.Context, r *Round, read func(context.Context) (*stats.Summary, error)) {
	in := &eviction.Input{Settings: g.opts.Settings, Self: g.opts.Self, Blocked: g.blockedNow(g.opts.Now()), Evicted: g.evictedAt, State: g.state}
	if !g.state.LayoutKnown {
		in.Layout.DedicatedImageFs, in.Layout.DedicatedContainerFs, in.LayoutErr = g.opts.Layout(ctx)
	}
	var podsErr error
	in.Pods, podsErr = g.pods()
	r.memory, r.memoryErr = g.readWorkingSets()
	began := time.Now()
	var readErr error
	in.Summary, readErr = readNode(ctx, read)
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

// readNode reads the node. The summary is nil only if there is an error. If both are set, the error
// describes what the summary lacks.
func readNode(ctx context.Context, read func(context.Context) (*stats.Summary, error)) (*stats.Summary, error) {
	s, err := read(ctx)
	if s == nil && err == nil {
		err = errors.New("the reader returned nothing")
	}
	return s, err
}

// pods returns the node's pods that have not ended, with the requests that are allocated to them.
func (g *Guard) pods() ([]*corev1.Pod, error) {
	list, err := g.opts.Pods()
	if err != nil {
		return nil, fmt.Errorf("list the node's pods: %w", err)
	}
	var pods []*corev1.Pod
	for _, p := range list {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			pods = append(pods, withAllocation(p))
		}
	}
	return pods, nil
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
		if distance, ok := t.Distance(); ok && isDiskSignal(t.Threshold.Signal) && distance < nearShare*float64(t.Observation.Capacity) {
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
