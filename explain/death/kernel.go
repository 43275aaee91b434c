package death

import (
	"fmt"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// killedByKernel decides if the agent of the node read from the kernel's counters whose limit it was.
func killedByKernel(d *decision) bool {
	if !d.End.GoesOn() && !d.killed() {
		return false // the run went on until it exited: see outlivedKill
	}
	k := d.End.Kill
	if k == nil || d.container == nil {
		return false
	}
	l := d.limits()
	d.describeLimits(&l)
	cause, reached := l.reached(k.Limit, k.Slice)
	d.fact(fromAgent, "%s, between %s and %s: %s", killed(k), humanize.Clock(k.After, d.End.At), humanize.Clock(k.At, d.End.At), reached)
	if k.Process != nil {
		d.fact(fromKernel, "%s", named(k))
	}
	switch {
	case k.Scope == endlog.Child && k.Limit == "":
		return d.conclude(ChildKilled, Certain, "")
	case k.Scope == endlog.Child:
		return d.conclude(ChildKilled, Certain, "goes on, but the kernel killed %s in it: %s", humanize.Count(k.Processes, "process"), reached)
	case k.Limit == "":
		return d.conclude(MemoryKill, Undecided, "killed by the kernel: its own limit, or that of another container, and its pod's were reached within a second")
	}
	return d.conclude(cause, Certain, "killed by the kernel: %s", reached)
}

// killed holds what the kernel did.
func killed(k *endlog.Kill) string {
	where, how := "the container", ""
	if k.ContainerID == "" {
		where = "the pod"
	}
	if k.Whole {
		how = " together (memory.oom.group)"
	}
	return fmt.Sprintf("the kernel killed %s of %s%s", humanize.Count(k.Processes, "process"), where, how)
}

// named holds which process the kernel killed.
func named(k *endlog.Kill) string {
	text := fmt.Sprintf("the kernel killed process %s (pid %d)", humanize.Excerpt(k.Process.Name, 100), k.Process.PID)
	if k.Process.RSS > 0 {
		text += " with " + humanize.Bytes(float64(k.Process.RSS)) + " resident"
	}
	if k.Processes > 1 {
		text += ", the largest that its log names"
	}
	return text
}

// concludeLimit sets the answer that the kernel probably killed because a limit was reached. It always returns true.
func (d *decision) concludeLimit(limit endlog.Scope, l *limits) bool {
	cause, reached := l.reached(limit, "")
	return d.conclude(cause, Likely, "killed by the kernel: %s", reached)
}

// reached returns the cause of a kill that ended a run, and which limit it was.
func (l *limits) reached(limit endlog.Scope, slice metric.CgroupPath) (Cause, string) {
	amount := func(limit float64) string {
		if limit == 0 {
			return "" // of a cgroup in the container, or the limit was changed
		}
		return " of " + humanize.Bytes(limit)
	}
	switch limit {
	case endlog.InContainer:
		return ContainerLimit, "it reached its own memory limit" + amount(l.own)
	case endlog.InPod:
		if l.pod == 0 {
			return PodLimit, "its pod reached its memory limit, which is the sum of its containers' limits"
		}
		return PodLimit, "its pod reached the pod's memory limit" + amount(l.pod)
	case endlog.InSlice:
		return SliceLimit, "slice " + humanize.Excerpt(string(slice), 200) + ", which has its pod, reached its memory limit"
	case endlog.InNode:
		return NodeShortage, "its node ran out of memory"
	}
	return MemoryKill, "which limit was reached is not known"
}
