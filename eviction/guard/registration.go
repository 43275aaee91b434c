package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
)

// updateWatches updates the notifier after a decision, and sets the round's watches.
func (g *Guard) updateWatches(n *notify.Notifier, r *Round) {
	if r.Input.Summary == nil || !r.Decision.RefreshNotifiers {
		return
	}
	polls, triggers, unwatched := g.watches(r)
	refused := n.Update(triggers...)
	for _, err := range refused {
		if e, ok := errors.AsType[*notify.WatchError](err); ok {
			triggers = slices.DeleteFunc(triggers, func(w notify.Watch) bool { return w == e.Watch })
		}
	}
	g.watching, g.unwatched = slices.Concat(polls, triggers), slices.Concat(unwatched, refused)
	r.Watching, r.Unwatched = g.watching, g.unwatched
	g.logChange("some thresholds are not watched", errorText(errors.Join(g.unwatched...)))
}

// watches returns what the guard polls, and what the kernel should watch, for the thresholds of a
// round, and why some thresholds are not watched.
func (g *Guard) watches(r *Round) (polls, triggers []notify.Watch, unwatched []error) {
	var cgroups eviction.Cgroups
	if g.opts.Cgroups != nil {
		cgroups = g.opts.Cgroups()
	}
	for i := range r.Decision.Thresholds {
		t := &r.Decision.Thresholds[i].Threshold
		polled := slices.ContainsFunc(r.memory, func(l memoryLevel) bool { return l.signal == t.Signal })
		if !polled && !t.Signal.Pressure() {
			continue
		}
		if polled && slices.Contains(eviction.OwnSignals(), t.Signal) { // their figures are not in the summary
			state := &r.Decision.Thresholds[i]
			polls = append(polls, notify.MemoryPoll{Signal: t.Signal, Name: t.String(), Path: "/proc/meminfo", Figure: state.Observation.Capacity - state.Limit.Value()})
			continue
		}
		w, err := notify.WatchFor(t, r.Input.Summary, cgroups)
		switch {
		case err != nil:
			unwatched = append(unwatched, fmt.Errorf("watch %s: %w", t, err))
		case polled:
			polls = append(polls, w)
		case !slices.Contains(triggers, w): // two thresholds may need the same trigger
			triggers = append(triggers, w)
		}
	}
	if r.memoryErr != nil {
		unwatched = append(unwatched, r.memoryErr)
	}
	return polls, triggers, unwatched
}
