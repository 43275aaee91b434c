package death

import (
	"time"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// nearlyFull is the share of a limit from which on a reading shows that the limit was reached: the last
// reading is up to a round before the end.
const nearlyFull = 0.9

// systemSlack is how far a SystemOOM of the node may be from a kill that it was.
const systemSlack = 15 * time.Second

// limits are the limits on memory that a container has, and how much of them was used, in bytes; 0 if
// there is none, or if that is unknown.
type limits struct {
	own, pod, podUsed, node, nodeUsed float64
	used                              *endlog.Trend // by the container; nil if it was not measured
}

func (l *limits) ownReached() bool { return l.used != nil && isNearlyFull(l.used.Highest.Value, l.own) }
func (l *limits) podReached() bool { return isNearlyFull(l.podUsed, l.pod) }

func isNearlyFull(used, limit float64) bool { return limit > 0 && used >= nearlyFull*limit }

// limits returns them.
func (d *decision) limits() (l limits) {
	l.own, _ = d.container.Spec.Get(metric.MemoryLimit)
	l.pod, _ = d.pod.Spec.Get(metric.MemoryLimit)
	l.node = d.End.Node.Memory
	for i := range d.End.Before.Memory {
		t := &d.End.Before.Memory[i]
		switch {
		case t.Kind == metric.Node.String():
			l.nodeUsed = t.Highest.Value
		case t.Name == d.End.Container:
			l.used = t
			l.podUsed += t.Highest.Value
		default:
			l.podUsed += t.Last.Value
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

// killedForMemory decides which limit, if the runtime reports that the kernel killed for memory. The
// kernel counts kills by the killed process' cgroup, whichever limit was reached.
func killedForMemory(d *decision) bool {
	if d.run.Reason != "OOMKilled" || d.container == nil || !d.killed() {
		return false
	}
	l := d.limits()
	d.describeLimits(&l)
	shortage := d.systemOOM()
	if shortage != nil {
		d.fact(fromEvents, "SystemOOM, of the kubelet of node %s, %s", d.pod.Node, occurrence(shortage, d.End.At))
	}
	if l.ownReached() || l.podReached() {
		return d.reachedLimit(&l, shortage != nil)
	}
	return d.noReading(&l, shortage != nil)
}

// killed reports whether SIGKILL ended the run.
func (d *decision) killed() bool { s, _ := signalOf(d.run); return s.number == 9 }

// outlivedKill applies if the runtime reports a kill for memory, and the run ended otherwise: the runtime reports
// that of any process of the container, until the run ends.
func outlivedKill(d *decision) bool {
	if d.run.Reason != "OOMKilled" || d.container == nil || d.killed() {
		return false
	}
	l := d.limits()
	d.describeLimits(&l)
	return d.conclude(ChildKilled, Likely, "exited with code %d, after the kernel had killed a process in it for memory", d.run.ExitCode)
}

// reachedLimit decides if a reading shows that a limit was nearly reached.
func (d *decision) reachedLimit(l *limits, shortage bool) bool {
	switch {
	case shortage:
		return d.conclude(MemoryKill, Undecided, "killed by the kernel: a limit was nearly reached, and its node was short of memory, too")
	case l.ownReached() && l.podReached():
		return d.conclude(MemoryKill, Undecided, "killed by the kernel: its own limit and its pod's were both nearly reached")
	case l.ownReached():
		return d.concludeLimit(endlog.InContainer, l, Certain)
	}
	return d.concludeLimit(endlog.InPod, l, Certain)
}

// noReading decides if no reading was near a limit: the memory grew after the last one, or the node was
// short of it.
func (d *decision) noReading(l *limits, shortage bool) bool {
	unlimited := l.own == 0 && l.pod == 0
	switch {
	case shortage && unlimited:
		return d.conclude(NodeShortage, Certain, "")
	case shortage || unlimited:
		return d.conclude(NodeShortage, Likely, "")
	case isNearlyFull(l.nodeUsed, l.node):
		return d.conclude(MemoryKill, Undecided, "killed by the kernel for memory: its node was nearly full, and it has a limit")
	case l.pod == 0:
		return d.concludeLimit(endlog.InContainer, l, Likely)
	case l.own == 0:
		return d.concludeLimit(endlog.InPod, l, Likely)
	}
	return d.conclude(MemoryKill, Undecided, "")
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
		if e.Reason == "SystemOOM" && !e.First.After(d.End.At.Add(systemSlack)) && !e.Last.Before(d.End.At.Add(-systemSlack)) {
			return e
		}
	}
	return nil
}
