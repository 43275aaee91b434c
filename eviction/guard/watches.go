package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
)

// updateWatches updates the notifier after a decision, and sets the round's watches.
func (g *Guard) updateWatches(n *notify.Notifier, r *Round) {
	gone := slices.ContainsFunc(r.Notice.Sources, func(s notify.NoticeSource) bool { return s.Gone })
	if r.Input.Summary == nil || !r.Decision.RefreshNotifiers && !gone {
		return
	}
	watches, unwatched := g.watches(r)
	refused := n.Update(watches...)
	if !g.watchStalls && slices.ContainsFunc(refused, isUnsupported) {
		g.watchStalls = true
		watches, unwatched = g.watches(r)
		refused = n.Update(watches...)
	}
	for _, err := range refused {
		var e *notify.WatchError
		if errors.As(err, &e) {
			watches = slices.DeleteFunc(watches, func(w notify.Watch) bool { return w == e.Watch })
		}
	}
	g.watching, g.unwatched = watches, slices.Concat(unwatched, refused)
	r.Watching, r.Unwatched = g.watching, g.unwatched
	g.logChange("some thresholds are not watched", errorText(errors.Join(g.unwatched...)))
}

// watches returns what to watch for the thresholds of a round, and why some thresholds are not
// watched.
func (g *Guard) watches(r *Round) (list []notify.Watch, unwatched []error) {
	add := func(w notify.Watch) {
		if !slices.Contains(list, w) { // two thresholds may need the same trigger
			list = append(list, w)
		}
	}
	var cgroups eviction.Cgroups
	if g.opts.Cgroups != nil {
		cgroups = g.opts.Cgroups()
	}
	for i := range r.Decision.Thresholds {
		t := &r.Decision.Thresholds[i].Threshold
		memory := t.Signal.Condition() == corev1.NodeMemoryPressure && !t.Signal.Pressure()
		if !memory && !t.Signal.Pressure() {
			continue // the kernel gives no notice of disks and process ids
		}
		if memory && cgroups.Mount == "" {
			g.watchStalls = true
			continue
		}
		w, err := notify.WatchFor(t, r.Input.Summary, cgroups)
		if err != nil {
			unwatched = append(unwatched, fmt.Errorf("watch %s: %w", t, err))
			continue
		}
		add(w)
	}
	if g.watchStalls {
		add(memoryStallTrigger())
		if cgroups.Mount != "" {
			add(notify.EventCounters{Path: filepath.Join(cgroups.Mount, cgroups.Pods, "memory.events")})
		}
	}
	return list, unwatched
}

// memoryStallTrigger returns what to watch if the kernel gives no notice of memory usage. On a node
// that runs short of memory, tasks wait for it. On other nodes 100 ms in 2 s are rare.
func memoryStallTrigger() notify.Watch {
	return notify.StallTrigger{Path: "/proc/pressure/memory", Stall: 100 * time.Millisecond, Window: 2 * time.Second}
}

// isUnsupported reports whether the kernel can never give notice of a cgroup's usage.
func isUnsupported(err error) bool {
	var e *notify.WatchError
	if !errors.As(err, &e) {
		return false
	}
	_, threshold := e.Watch.(notify.UsageThreshold)
	return threshold && errors.Is(e, notify.ErrUnsupported)
}
