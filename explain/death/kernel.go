package death

import (
	"cmp"
	"fmt"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// kernelDecides reports whether the agent's kill answers the question. It does not if something else than SIGKILL ended
// the run: see outlivedKill. Nor does it if the agent does not know the limit, and the runtime reports OOMKilled: the
// readings decide then, unless the agent knows one that this weir does not.
func (d *decision) kernelDecides(k *endlog.Kill) bool {
	return (d.End.GoesOn() || d.run.EndedBySIGKILL()) && (k.Limit != "" || k.Doubt == "" || k.Doubt == endlog.Unrecognized || d.run.Reason != "OOMKilled")
}

// killedByKernel decides if the agent of the node read from the kernel's counters whose limit it was.
func killedByKernel(d *decision) bool {
	k := d.End.Kill
	if k == nil || d.container == nil || !d.kernelDecides(k) {
		return false
	}
	l := d.limits()
	d.describeLimits(&l)
	cause, reached, advice := l.reachedBy(k)
	d.describeKill(k, reached)
	if k.Process != nil {
		d.fact(fromKernel, "%s", processText(k))
	}
	confidence := Certain
	if doubt := d.doubt(k, &l); doubt != "" {
		d.fact(fromAgent, "%s", doubt)
		confidence = Likely
	}
	switch {
	case k.Scope == endlog.Child && k.Limit == "":
		return d.conclude(ChildKilled, Certain, "")
	case k.Scope == endlog.Child:
		d.conclude(ChildKilled, confidence, "goes on, but the kernel killed %s in it: %s", humanize.Count(k.Processes, "process"), reached)
		if k.Limit != endlog.InContainer {
			advice = cmp.Or(advice, d.fillNames(textsOf(cause).advice))
		}
	case k.Doubt == endlog.Unrecognized:
		return d.conclude(MemoryKill, Undecided, "killed by the kernel for memory: the agent reports a limit that this weir does not know")
	case k.Limit == "" && k.Doubt != "":
		return d.conclude(MemoryKill, Undecided, "killed by the kernel for memory: its counters do not show whose limit was reached")
	case k.Limit == "":
		return d.conclude(MemoryKill, Undecided, "killed by the kernel: its own limit, or that of another container, and its pod's were both reached between two looks of the agent")
	default:
		d.conclude(cause, confidence, "killed by the kernel: %s", reached)
	}
	d.death.Advice = cmp.Or(advice, d.death.Advice)
	return true
}

// reachedBy returns the cause of a kill, which limit it was, and what to do if that is not the cause's advice.
func (l *limits) reachedBy(k *endlog.Kill) (cause Cause, reached, advice string) {
	cause, reached = l.reached(k.Limit, k.Slice)
	switch {
	case k.NUMA:
		return cause, "the NUMA nodes that it may use ran out of memory",
			"The kubelet's Memory Manager, or a program such as numactl, binds it to some NUMA nodes. Give the pods there requests that fit what they use, or let it use more of the nodes."
	case k.Inner:
		return cause, "a cgroup in the container reached a memory limit of its own",
			"Raise the limit where it is set: by a program in the container that makes cgroups, such as Docker or systemd. The limit of the container was not reached."
	}
	return cause, reached, ""
}

var doubts = map[endlog.Doubt]string{
	endlog.Earlier:      "the limit was reached some seconds before the kernel counted the kill: another kill may have been due to it",
	endlog.Late:         "the container had processes for a second after the kill, and SIGKILL ended it within ten seconds",
	endlog.Several:      "several limits were reached, or several runs ended, at that time: this one fits best",
	endlog.Uncounted:    "the kernel of the node does not count whose limit is reached: it does in cgroup version 2, from Linux 5.2 on",
	endlog.Unrecognized: "the agent is newer than this weir, and reports a limit that this weir does not know",
}

// doubt returns why the limit is not certain, and adds what makes it certain; empty if it is. That a node ran out of
// memory is only what the counters do not explain, so that something else has to show it, too.
func (d *decision) doubt(k *endlog.Kill, l *limits) string {
	switch {
	case k.Doubt != "":
		return cmp.Or(doubts[k.Doubt], "the agent is not certain of it")
	case k.Limit != endlog.InNode || k.Logged:
		return ""
	case isNearlyFull(l.nodeUsed, l.node):
		d.fact(fromHistory, "its node used %s of %s", humanize.Bytes(l.nodeUsed), humanize.Bytes(l.node))
		return ""
	}
	if shortage := d.systemOOM(); shortage != nil {
		d.fact(fromEvents, "SystemOOM, of the kubelet of node %s, %s", d.pod.Node, occurrence(shortage, d.End.At))
		return ""
	}
	return "no limit is counted as reached, and nothing else shows that the node had no memory left"
}

// describeKill adds what the agent found, and which limit was reached.
func (d *decision) describeKill(k *endlog.Kill, reached string) {
	d.fact(fromAgent, "%s, between %s and %s: %s", killText(k), humanize.Clock(k.After, d.End.At), humanize.Clock(k.At, d.End.At), reached)
}

// killText returns what the kernel did.
func killText(k *endlog.Kill) string {
	where, together := "the container", ""
	if k.ContainerID == "" {
		where = "the pod"
	}
	if k.Whole {
		together = " together (memory.oom.group)"
	}
	return fmt.Sprintf("the kernel killed %s of %s%s", humanize.Count(k.Processes, "process"), where, together)
}

// processText returns which process the kernel killed.
func processText(k *endlog.Kill) string {
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
