package guard

import (
	"errors"
	"slices"

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
	podsCgroup := ""
	if g.opts.PodsCgroup != nil {
		podsCgroup = g.opts.PodsCgroup()
	}
	for i := range r.Decision.Thresholds {
		t := &r.Decision.Thresholds[i]
		switch {
		case slices.ContainsFunc(r.memory, func(l memoryLevel) bool { return l.signal == t.Threshold.Signal }):
			polls = append(polls, notify.NewMemoryPoll(t, podsCgroup))
		case t.Threshold.Signal.Pressure():
			if w := notify.NewStallTrigger(&t.Threshold); !slices.Contains(triggers, notify.Watch(w)) { // two thresholds may need the same trigger
				triggers = append(triggers, w)
			}
		}
	}
	if r.memoryErr != nil {
		unwatched = append(unwatched, r.memoryErr)
	}
	return polls, triggers, unwatched
}
