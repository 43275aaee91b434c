package endlog

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
)

// runOf returns the last run of a container that ended; ok is false if none has.
func runOf(c *cluster.Container) (r Run, ok bool) {
	if c == nil || c.Previous == nil || c.EndedAt().IsZero() && !c.EndUnknown() {
		return Run{}, false
	}
	p := c.Previous
	r = Run{ID: p.LastID, Started: c.LastStartedAt(), Ended: p.EndedAt, Reason: p.EndReason, Message: p.EndMessage, ExitCode: p.ExitCode, Signal: p.Signal}
	if c.State == cluster.StateTerminated {
		r.ID = c.ID
	}
	return r, true
}

// runs reports whether a container of the pod runs.
func runs(p *cluster.Pod) bool {
	for i := range p.Containers {
		if p.Containers[i].State == cluster.StateRunning {
			return true
		}
	}
	return false
}

// isBeingStopped reports whether the pod is stopped as a whole: the ends of its containers are that of the pod.
// A kubelet that stops a pod reports Succeeded if all containers ended without an error when they were asked to.
func isBeingStopped(p *cluster.Pod) bool {
	return !p.Deleted.IsZero() || p.Stop != nil && (p.Phase == cluster.Failed || p.Phase == cluster.Succeeded && p.Stop.Disruption == cluster.ByKubelet)
}

// endedByItself reports whether the pod had ended before it was deleted. The API server removes such a pod at once, and
// marks any other one as deleted before its kubelet ends it.
func endedByItself(p *cluster.Pod) bool {
	return !isBeingStopped(p) && (p.Phase == cluster.Failed || p.Phase == cluster.Succeeded)
}

// Ends returns the ends that the change of a pod from before to after shows. before is nil for a pod
// that was not known. after is nil for a pod that is gone; final is then its last state, or nil if that
// was not seen. Ends longer ago than age, before now, are left out.
func Ends(before, after, final *cluster.Pod, now time.Time, age time.Duration) []End {
	// Fast path: nearly every change is of a pod that goes on, without a new end.
	if after != nil && !mayEnd(before, after) {
		return nil
	}
	gone, last := after == nil, after
	if gone {
		last = cmp.Or(final, before)
	}
	if last == nil {
		return nil
	}
	var ends []End
	switch {
	case wasAlive(before, last) && (gone && !endedByItself(last) || isBeingStopped(last) && !runs(last)):
		if !last.Mirror { // the kubelet makes it again when it starts, and the static pod goes on
			ends = []End{{Pod: last, At: endOf(last, gone, now), Seen: now, Gone: gone, Unwatched: gone && final == nil}}
		}
	case !isBeingStopped(last):
		ends = containerEnds(before, last, now)
	}
	return slices.DeleteFunc(ends, func(e End) bool { return now.Sub(e.At) > age })
}

// mayEnd reports whether the change can show an end: a container has another ended run, or the pod is
// stopped.
func mayEnd(before, after *cluster.Pod) bool {
	if before == nil || isBeingStopped(after) {
		return true
	}
	for i := range after.Containers {
		c := &after.Containers[i]
		if c.Previous == nil {
			continue
		}
		if i >= len(before.Containers) || before.Containers[i].Name != c.Name || before.Containers[i].Previous == nil || *before.Containers[i].Previous != *c.Previous {
			return true
		}
	}
	return false
}

// wasAlive reports whether a container of the pod ran: in its state before, in its last state, or in between, if weir
// got several changes at once. If the state before is unknown, a pod was alive that started and has a time of its end.
func wasAlive(before, last *cluster.Pod) bool {
	switch {
	case runs(last) || before != nil && runs(before):
		return true
	case !isBeingStopped(last):
		return false
	case before == nil:
		return !last.Started.IsZero() && !endOf(last, false, time.Time{}).IsZero()
	}
	for i := range last.Containers {
		if _, ok := newRun(before, &last.Containers[i]); ok {
			return true
		}
	}
	return false
}

// endOf returns when a pod ended: when the last of its containers did or, if that is unknown and the
// pod failed, when it ceased to be ready; otherwise now.
func endOf(p *cluster.Pod, gone bool, now time.Time) (at time.Time) {
	for i := range p.Containers {
		if c := &p.Containers[i]; c.State != cluster.StateRunning && c.EndedAt().After(at) {
			at = c.EndedAt()
		}
	}
	if at.IsZero() && p.Ready == cluster.ReadyFalse && !gone {
		at = p.ReadySince
	}
	if at.IsZero() || gone && runs(p) {
		return now
	}
	return at
}

// newRun returns the run of a container that ended and that before did not have. The end of an init container that is
// done does not count.
func newRun(before *cluster.Pod, c *cluster.Container) (r Run, ok bool) {
	r, ok = runOf(c)
	if !ok || r.ExitCode == 0 && (c.Role == cluster.Init || c.Role == cluster.Ephemeral) {
		return Run{}, false
	}
	earlier, known := runOf(before.Container(c.Name))
	return r, !known || earlier.ID != r.ID || !earlier.Started.Equal(r.Started)
}

// missed returns how many runs of a container ended since before, without the last one: a status has no other.
func missed(before *cluster.Pod, c *cluster.Container) int {
	earlier := before.Container(c.Name)
	if earlier == nil {
		return 0
	}
	return max(0, endedRuns(c)-endedRuns(earlier)-1)
}

// endedRuns returns how many runs of a container have ended. Its restarts are counted when it starts again.
func endedRuns(c *cluster.Container) int {
	n := int(c.Restarts)
	if _, ok := runOf(c); ok && c.State != cluster.StateRunning {
		n++
	}
	return n
}

// containerEnds returns the ends of runs that before did not have.
func containerEnds(before, after *cluster.Pod, now time.Time) (ends []End) {
	for i := range after.Containers {
		c := &after.Containers[i]
		run, ok := newRun(before, c)
		if !ok {
			continue
		}
		at := run.Ended
		if at.IsZero() {
			if before == nil { // it may have ended days ago
				continue
			}
			at = now
		}
		e := End{Pod: after, Container: c.Name, Run: run, At: at, Seen: now, Resize: after.Resize, Missed: missed(before, c)}
		if before != nil && before.Resize != nil { // after has nothing about a container that does not run
			e.Resize = before.Resize
		}
		ends = append(ends, e)
	}
	return ends
}
