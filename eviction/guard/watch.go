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

// watch has the notifier follow the decision, and notes in the round what is watched.
func (g *Guard) watch(n *notify.Notifier, r *Round) {
	gone := slices.ContainsFunc(r.Notice.Sources, func(s notify.Source) bool { return s.Gone })
	if r.Input.Summary == nil || !r.Decision.RefreshNotifiers && !gone {
		return
	}
	watches, unwatched := g.watches(r)
	refused := refusals(n.Update(watches...))
	if !g.instead && slices.ContainsFunc(refused, cannot) {
		g.instead = true
		watches, unwatched = g.watches(r)
		refused = refusals(n.Update(watches...))
	}
	for _, err := range refused {
		var e *notify.Error
		if errors.As(err, &e) {
			watches = slices.DeleteFunc(watches, func(w notify.Watch) bool { return w == e.Watch })
		}
	}
	g.watching, g.unwatched = watches, slices.Concat(unwatched, refused)
	r.Watching, r.Unwatched = g.watching, g.unwatched
	g.say("not all is watched", words(errors.Join(g.unwatched...)))
}

// watches are what to watch for a round's thresholds, and why not for some.
func (g *Guard) watches(r *Round) (list []notify.Watch, unwatched []error) {
	add := func(w notify.Watch) {
		if !slices.Contains(list, w) { // two thresholds may want one trigger
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
			g.instead = true
			continue
		}
		w, err := notify.Of(t, r.Input.Summary, cgroups)
		if err != nil {
			unwatched = append(unwatched, fmt.Errorf("watch %s: %w", t, err))
			continue
		}
		add(w)
	}
	if g.instead {
		add(stalls())
		if cgroups.Mount != "" {
			add(notify.Events{Path: filepath.Join(cgroups.Mount, cgroups.Pods, "memory.events")})
		}
	}
	return list, unwatched
}

// stalls is what to watch where the kernel tells of no memory cgroup's usage: a node that runs
// short of memory has its tasks wait for it. 100 ms in 2 s are rare on one that does not.
func stalls() notify.Watch {
	return notify.Trigger{Path: "/proc/pressure/memory", Stall: 100 * time.Millisecond, Window: 2 * time.Second}
}

// cannot says that the kernel gives no notice of a cgroup's usage at all.
func cannot(err error) bool {
	var e *notify.Error
	if !errors.As(err, &e) {
		return false
	}
	_, threshold := e.Watch.(notify.Threshold)
	return threshold && errors.Is(e, notify.ErrUnsupported)
}

// refusals takes a joined error apart.
func refusals(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &joined):
		return []error{err}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, refusals(e)...)
	}
	return list
}
