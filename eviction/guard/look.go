package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
)

// refreshEvery is how often disks are looked at anew on request, at most: what a pod uses
// of them is then older by no more, and the kubelet's figures are of the last minute.
const refreshEvery = 30 * time.Second

// nearDisk is the share of a disk's capacity within which its threshold is near.
const nearDisk = 0.02

// The kernel keeps pages in stock for each processor, which count as used until it gives
// them back. So right after a crossing the usage may be found below the figure once more,
// and once it is above for good the kernel does not say so again. It is looked at again
// swayLooks times, swayPause apart, and then as often swayLater apart.
const (
	swayLooks = 5
	swayPause = time.Millisecond
	swayLater = 100 * time.Millisecond
)

// swayed says whether the kernel told of a threshold that is crossed upwards and the
// decision found it not met.
func swayed(r *Round) bool {
	for i := range r.Notice.Sources {
		s := &r.Notice.Sources[i]
		w, ok := s.Watch.(notify.Threshold)
		if !ok || s.Crossing == nil || !s.Crossing.Above() {
			continue
		}
		for k := range r.Decision.Thresholds {
			t := &r.Decision.Thresholds[k]
			if t.Threshold.String() == w.Name && t.Observation != nil && !t.Met {
				return true
			}
		}
	}
	return false
}

// look reads the node and decides.
func (g *Guard) look(ctx context.Context, notice notify.Notice) *Round {
	r := &Round{Notice: notice, Watching: g.watching, Unwatched: g.unwatched}
	g.decide(ctx, r)
	for range swayLooks {
		if !swayed(r) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(swayPause):
		}
		g.decide(ctx, r)
	}
	switch {
	case g.opts.Refresh == nil || ctx.Err() != nil || g.opts.Now().Sub(g.refreshed) < refreshEvery:
	case choosesByDisk(r.Decision):
		// Who goes hangs on figures that may be a minute old.
		g.opts.Refresh(ctx)
		g.refreshed = g.opts.Now()
		g.decide(ctx, r)
	case nearsDisk(r.Decision):
		g.refreshed = g.opts.Now()
		g.refreshes.Go(func() { g.opts.Refresh(ctx) })
	}
	g.say("the node was not read in full", words(r.ReadErr))
	g.say("nothing can be decided", words(r.Decision.Err))
	return r
}

// decide fills in the round's input and decision.
func (g *Guard) decide(ctx context.Context, r *Round) {
	in := &eviction.Input{Settings: g.opts.Settings, Self: g.opts.Self, Blocked: g.blocks(g.opts.Now()), Evicted: g.evicted, State: g.state}
	if !g.state.LayoutKnown {
		in.Layout.DedicatedImageFs, in.Layout.DedicatedContainerFs, in.ImageFsErr = g.opts.Layout(ctx)
	}
	var podsErr error
	in.Pods, podsErr = g.pods()
	began := time.Now()
	var readErr error
	in.Summary, readErr = g.read(ctx)
	g.metrics.reads.Observe(time.Since(began).Seconds())
	if in.Summary == nil {
		in.SummaryErr, readErr = readErr, nil
	}
	in.Now = g.opts.Now()
	r.Input, r.Read, r.ReadErr = in, in.Now, errors.Join(readErr, podsErr)
	r.Decision = eviction.Decide(in)
	r.Decided = g.opts.Now()
}

// read reads the node. The summary is nil only with an error; with both, the error says what the
// summary lacks.
func (g *Guard) read(ctx context.Context) (*stats.Summary, error) {
	s, err := g.opts.Read(ctx)
	if s == nil && err == nil {
		err = errors.New("the reader returned nothing")
	}
	return s, err
}

// pods are the node's that have not ended.
func (g *Guard) pods() ([]*corev1.Pod, error) {
	list, err := g.opts.Pods()
	if err != nil {
		return nil, fmt.Errorf("list the node's pods: %w", err)
	}
	active := make([]*corev1.Pod, 0, len(list))
	for _, p := range list {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			active = append(active, p)
		}
	}
	return active, nil
}

// blocked is a pod that is passed over until some time.
type blocked struct {
	eviction.Blocked
	until time.Time
}

// blocks are the pods to pass over now.
func (g *Guard) blocks(now time.Time) map[types.UID]eviction.Blocked {
	list := make(map[types.UID]eviction.Blocked, len(g.blocked))
	for uid, b := range g.blocked {
		if !b.until.After(now) {
			delete(g.blocked, uid)
			continue
		}
		list[uid] = b.Blocked
	}
	return list
}

// choosesByDisk says whether pods' use of disks decides who goes.
func choosesByDisk(d *eviction.Decision) bool {
	return d.Outcome == eviction.OutcomeLocalLimit || d.Acting >= 0 && ofDisk(d.Thresholds[d.Acting].Threshold.Signal)
}

// nearsDisk says whether a threshold of a disk is met or near.
func nearsDisk(d *eviction.Decision) bool {
	for i := range d.Thresholds {
		t := &d.Thresholds[i]
		if distance, ok := t.Distance(); ok && ofDisk(t.Threshold.Signal) && distance < nearDisk*float64(t.Observation.Capacity) {
			return true
		}
	}
	return false
}

func ofDisk(s eviction.Signal) bool { return s.Condition() == corev1.NodeDiskPressure }

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
