package death

import (
	"cmp"
	"time"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// nearlyFull is the share of a limit from which on a reading shows that the limit was nearly reached: the last
// reading is up to a round before the end.
const nearlyFull = 0.9

// maxReadingAge is how long before the end a reading still shows what was used then.
const maxReadingAge = 2 * time.Minute

// systemSlack is how long before or after a kill the kubelet's Event SystemOOM about it may be: the kubelet reads the
// kernel's log, and writes Events one after the other.
const systemSlack = 15 * time.Second

// limits are the limits on memory in force that a container has, and how much of them was used according to the
// last readings, in bytes; 0 if there is none, or if that is unknown.
type limits struct {
	own, ownUsed, pod, podUsed, node, nodeUsed float64
	spec                                       float64       // the container's limit by its specification
	used                                       *endlog.Trend // by the container; nil if it was not measured
}

func (l *limits) ownReached() bool { return isNearlyFull(l.ownUsed, l.own) }
func (l *limits) podReached() bool { return isNearlyFull(l.podUsed, l.pod) }
func (l *limits) nodeFull() bool   { return isNearlyFull(l.nodeUsed, l.node) }

func isNearlyFull(used, limit float64) bool { return limit > 0 && used >= nearlyFull*limit }

// limits returns the limits in force when the run ended. A reading older than maxReadingAge counts as 0.
func (d *decision) limits() (l limits) {
	l.spec, _ = d.container.Spec.Get(metric.MemoryLimit)
	l.pod, _ = d.pod.Spec.Get(metric.MemoryLimit)
	resize := cmp.Or(d.End.Resize, d.pod.Resize)
	l.own = resize.InForce(d.container.Name, metric.MemoryLimit, l.spec)
	l.pod = resize.InForce("", metric.MemoryLimit, l.pod)
	l.node = d.End.Node.Memory
	for i := range d.End.Before.Memory {
		t := &d.End.Before.Memory[i]
		last := t.Last.Value
		if d.End.At.Sub(t.Last.At) > maxReadingAge {
			last = 0
		}
		switch {
		case t.Kind == metric.Node.String():
			l.nodeUsed = last
		case t.Name == d.End.Container:
			l.used, l.ownUsed = t, last
			fallthrough
		default:
			l.podUsed += last
		}
	}
	return l
}

func (d *decision) nearLimit() bool {
	if d.container == nil {
		return false
	}
	l := d.limits()
	return l.ownReached() || l.podReached()
}

// reportsOldKill reports whether the runtime's OOMKilled is of a kill that did not end the run: it keeps that of
// any process of the container until the run ends. SIGKILL is the kubelet's if that was stopping the container.
// An agent that found the kill of a child would have found another one, unless it cannot see those that end a run.
func (d *decision) reportsOldKill() bool {
	switch {
	case !d.run.EndedBySIGKILL():
		return true
	case d.End.Kill != nil:
		return false
	case d.Child != nil && d.Child.Doubt != endlog.Uncounted && d.End.At.Sub(d.Child.At) > endlog.Cleanup:
		return true
	}
	stop := d.eventOfRun(d.End.Container, "Killing", nil)
	if stop == nil || !stop.Last.Before(d.End.At) {
		return false
	}
	_, sure := d.during(stop)
	return sure
}

// killedForMemory decides which limit, if the runtime reports that the kernel killed for memory. The kernel counts
// kills by the killed process' cgroup, whichever limit was reached, so this is never certain.
func killedForMemory(d *decision) bool {
	if d.run.Reason != "OOMKilled" || d.container == nil || d.reportsOldKill() {
		return false
	}
	l := d.limits()
	d.describeLimits(&l)
	shortage := d.systemOOM()
	if shortage != nil {
		d.fact(fromEvents, "SystemOOM, of the kubelet of node %s, %s", d.pod.Node, occurrence(shortage, d.End.At))
	}
	return d.reachedLimit(&l, shortage != nil)
}

// reachedLimit decides which limit fits what was used, and whether the node had a shortage.
func (d *decision) reachedLimit(l *limits, shortage bool) bool {
	own, pod, full := l.ownReached(), l.podReached(), l.nodeFull()
	switch {
	case (own || pod) && (shortage || full && d.EventsUnread != ""):
		return d.conclude(MemoryKill, Undecided, "killed by the kernel: a limit was nearly reached, and its node was short of memory, too")
	case own && pod:
		return d.conclude(MemoryKill, Undecided, "killed by the kernel: its own limit and its pod's were both nearly reached")
	case own:
		return d.concludeLimit(endlog.InContainer, l)
	case pod:
		return d.concludeLimit(endlog.InPod, l)
	}
	return d.grewOrShort(l, shortage, full)
}

// grewOrShort decides if no reading was near a limit: the memory grew after the last one, or the node was short of it.
func (d *decision) grewOrShort(l *limits, shortage, full bool) bool {
	switch {
	case shortage, l.own == 0 && l.pod == 0: // only the node bounds it
		return d.conclude(NodeShortage, Likely, "")
	case full:
		return d.conclude(MemoryKill, Undecided, "killed by the kernel for memory: its node was nearly full, and it has a limit")
	case l.pod == 0:
		return d.concludeLimit(endlog.InContainer, l)
	case l.own == 0:
		return d.concludeLimit(endlog.InPod, l)
	}
	return d.conclude(MemoryKill, Undecided, "")
}

// outlivedKill applies if the kernel killed a process of the run, and something else ended it.
func outlivedKill(d *decision) bool {
	if d.run.Reason != "OOMKilled" || d.container == nil {
		return false
	}
	l := d.limits()
	d.describeLimits(&l)
	reason := ""
	if k := cmp.Or(d.End.Kill, d.Child); k != nil {
		_, reached, _ := l.reachedBy(k)
		d.describeKill(k, reached)
		if k.Limit != "" {
			reason = ": " + reached
		}
	}
	if d.run.EndedBySIGKILL() {
		return d.conclude(ChildKilled, Undecided, "ended by SIGKILL (the sender is not known), after the kernel had killed a process in it for memory%s", reason)
	}
	return d.conclude(ChildKilled, Likely, "exited with code %d, after the kernel had killed a process in it for memory%s", d.run.ExitCode, reason)
}

// describeLimits adds the limits and what was used of them.
func (d *decision) describeLimits(l *limits) {
	switch {
	case l.own > 0:
		d.fact(fromServer, "the container has a memory limit of %s", humanize.Bytes(l.own))
	case l.pod > 0:
		d.fact(fromServer, "the container has no memory limit, its pod has one of %s", humanize.Bytes(l.pod))
	default:
		d.fact(fromServer, "neither the container nor its pod has a memory limit: only the node's memory bounds it")
	}
	if l.own != l.spec {
		d.fact(fromServer, "its specification has a memory limit of %s, which its node has not applied", humanize.Bytes(l.spec))
	}
	if own := l.used; own != nil {
		d.fact(fromHistory, "it used %s at most, and %s in the last reading, %s before the end", humanize.Bytes(own.Highest.Value), humanize.Bytes(own.Last.Value), humanize.Duration(max(0, d.End.At.Sub(own.Last.At)).Round(time.Second)))
	} else {
		d.fact(fromHistory, "this run was not measured before it ended")
	}
}

// systemOOM returns the Event of the kubelet that its node ran out of memory then; nil if there is none.
func (d *decision) systemOOM() *event.Event {
	for i := range d.NodeEvents {
		e := &d.NodeEvents[i]
		if e.Source == kubelet && e.Reason == "SystemOOM" && !e.First.After(d.End.At.Add(systemSlack)) && !e.Last.Before(d.End.At.Add(-systemSlack)) {
			return e
		}
	}
	return nil
}
