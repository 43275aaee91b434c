package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/notify"
)

// memoryLevel relates the polls of a memory signal to the last round. A poll reads only the working
// set. The amount that is available at a poll is the amount in the round, minus the growth of the
// working set since the round. A constant difference between the two ways to read does not matter.
type memoryLevel struct {
	signal    eviction.Signal
	available int64 // in the round
	// The working set in the round is between these two values of Options.WorkingSet. One was read
	// right before the round read the node, the other right after.
	leastWorkingSet, mostWorkingSet int64
}

// polledSignals are the signals that Options.WorkingSet reads.
var polledSignals = append(eviction.OwnSignals(), eviction.MemoryAvailable, eviction.AllocatableMemoryAvailable)

// readWorkingSets returns the levels of the polled signals that have a threshold, without what is
// available, and the errors of the others.
func (g *Guard) readWorkingSets() (levels []memoryLevel, err error) {
	if g.opts.WorkingSet == nil {
		return nil, nil
	}
	for _, s := range polledSignals {
		if !g.hasThreshold(s) {
			continue
		}
		n, readErr := g.opts.WorkingSet(s)
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("poll %s: %w", s, readErr))
			continue
		}
		levels = append(levels, memoryLevel{signal: s, leastWorkingSet: n, mostWorkingSet: n})
	}
	return levels, err
}

// readWorkingSetsAgain extends the bounds of levels after the round read the node. It ignores errors
// and leaves the first reads then: the next polls fail too, and the next round reports why.
func (g *Guard) readWorkingSetsAgain(levels []memoryLevel) {
	for i := range levels {
		l := &levels[i]
		if n, err := g.opts.WorkingSet(l.signal); err == nil {
			l.leastWorkingSet, l.mostWorkingSet = min(l.leastWorkingSet, n), max(l.mostWorkingSet, n)
		}
	}
}

// availableNow returns what is available of the signal, if the round read the node when the working
// set was at the bound that makes a poll find a crossing early, not late. A false crossing
// costs one round.
func (l *memoryLevel) availableNow(workingSet int64, met bool) int64 {
	if met {
		return l.available + l.mostWorkingSet - workingSet
	}
	return l.available + l.leastWorkingSet - workingSet
}

func (g *Guard) hasThreshold(s eviction.Signal) bool {
	return slices.ContainsFunc(g.opts.Settings.Thresholds, func(t eviction.Threshold) bool { return t.Signal == s })
}

// withAvailable sets what is available in levels, and drops those that the decision has no figure
// of.
func withAvailable(levels []memoryLevel, d *eviction.Decision) []memoryLevel {
	kept := levels[:0]
	for _, l := range levels {
		for i := range d.Observations {
			if o := &d.Observations[i]; o.Signal == l.signal && o.Doubt == "" {
				l.available = o.Available
				kept = append(kept, l)
			}
		}
	}
	return kept
}

// processors returns the number of processors of the machine. Pods fill memory with all of them, also
// with those that weir may not use.
func processors() int {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return maxProcessors
	}
	stat, err := proc.Stat()
	if err != nil {
		return maxProcessors
	}
	return len(stat.CPU)
}

// nearTime is the time in which memory reaches a threshold, at its present speed, that counts as near.
const nearTime = 10 * time.Second

// pollMemory calls found when a memory threshold becomes met, or a hard one ends. It reads the
// working sets at the pace of what could cross a threshold next, until ctx ends.
func (g *Guard) pollMemory(ctx context.Context, found func(notify.NoticeSource)) {
	p := newPace(processors())
	timer := time.NewTimer(0)
	defer timer.Stop()
	var reported *Round // the round after which a crossing was found
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause := maxRest // until there is a round
		if last := g.last.Load(); last != nil {
			var crossing *notify.NoticeSource
			if crossing, pause = g.pollThresholds(last, p); crossing != nil && reported != last {
				reported = last
				found(*crossing)
			}
		}
		timer.Reset(pause)
	}
}

// notifyCrossing starts a round for a crossing. A wait for a pod with the grace period of a soft
// threshold checks whether it must end.
func (g *Guard) notifyCrossing(n *notify.Notifier, s notify.NoticeSource) {
	n.Notify(s)
	wake(g.crossed)
}

// wake adds an element to a channel, unless it has one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pollThresholds compares the working sets with the thresholds of the last round. It returns a
// threshold that became met, or else a hard one that ended, or nil, and the time until the next
// poll. The end of a soft threshold is left to the timer: it is then looked for at the kubelet's
// interval, and a shorter break does not begin the grace period again. It ignores errors, because
// rounds report them.
func (g *Guard) pollThresholds(last *Round, p *pace) (crossing *notify.NoticeSource, pause time.Duration) {
	pause = maxPause
	for i := range last.memory {
		level := &last.memory[i]
		began := time.Now()
		workingSet, err := g.opts.WorkingSet(level.signal)
		if err != nil {
			continue
		}
		g.metrics.polls.Inc()
		grows := p.observe(level.signal, began, time.Now(), workingSet)
		for k := range last.Decision.Thresholds {
			t := &last.Decision.Thresholds[k]
			if t.Threshold.Signal != level.signal || t.Observation == nil {
				continue
			}
			if t.Met && !t.Threshold.Hard() {
				continue
			}
			limit, available := t.Limit.Value(), level.availableNow(workingSet, t.Met)
			pause = min(pause, p.pause(available-limit, grows))
			if t.Threshold.Hard() && float64(available-limit) < max(nearShare*float64(t.Observation.Capacity), grows.lately*nearTime.Seconds()) {
				wake(g.near)
			}
			if met := available < limit; met != t.Met && (crossing == nil || met) {
				capacity := t.Observation.Capacity
				crossing = &notify.NoticeSource{
					Watch:    memoryPoll(&t.Threshold, last),
					Crossing: &notify.Crossing{WorkingSet: capacity - available, Figure: capacity - limit},
				}
			}
		}
	}
	return crossing, pause
}

// memoryPoll returns the watch of a threshold.
func memoryPoll(t *eviction.Threshold, r *Round) notify.MemoryPoll {
	name := t.String()
	for _, w := range r.Watching {
		if m, ok := w.(notify.MemoryPoll); ok && m.Name == name {
			return m
		}
	}
	return notify.MemoryPoll{Signal: t.Signal, Name: name}
}
