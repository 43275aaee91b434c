package inspect

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// newContainer returns a container's cgroup with a judgement and its reason.
func (j *judging) newContainer(c *Cgroup, started time.Time, judgement Judgement, why string) ContainerReport {
	d := j.describeCgroup(c, started)
	d.Judgement, d.Reasons = judgement, append([]string{why}, d.Reasons...)
	return ContainerReport{CgroupReport: d, ID: c.ID, Runtime: c.Runtime}
}

// judgeContainers judges the containers' cgroups in the cgroup of a known pod.
func (j *judging) judgeContainers(pod *Cgroup, facts *cluster.Pod) (out []ContainerReport) {
	sandbox := findSandbox(pod, facts)
	for _, c := range pod.Containers {
		out = append(out, j.judgeContainer(c, facts, sandbox))
	}
	return out
}

// judgeContainer judges one of them. Sandbox is the cgroup of the pod's sandbox, or
// nil where it is not known.
func (j *judging) judgeContainer(c *Cgroup, facts *cluster.Pod, sandbox *Cgroup) ContainerReport {
	state, ended := statusOf(facts, c.ID)
	var one ContainerReport
	switch {
	case state != nil && !ended && c.IsEmpty():
		one = j.newContainer(c, state.StartedAt, Empty, "nothing runs in it, although the pod's status says that container "+state.Name+" does")
	case state != nil && !ended:
		one = j.newContainer(c, state.StartedAt, Live, "the pod's status names it as container "+state.Name)
	case state != nil:
		one = j.newContainer(c, time.Time{}, OldContainer, fmt.Sprintf("the pod's status names it as a run of container %s that has ended", state.Name))
	case c == sandbox:
		one = j.newContainer(c, time.Time{}, Live, "no container's status names it: it is the pod's sandbox")
	case c.IsEmpty():
		one = j.newContainer(c, time.Time{}, Empty, "nothing runs in it, and no container's status names it")
	case j.justStarted(c):
		one = j.newContainer(c, time.Time{}, Live, "no container's status names it, but it is less than a minute old: the status may follow")
	default:
		one = j.newContainer(c, time.Time{}, OldContainer, "no container's status names it, and it is not the pod's sandbox")
	}
	if state != nil {
		one.Name = state.Name
	}
	return one
}

// statusOf returns the container whose status names id, and whether it names it as
// a run that has ended; nil if none does.
func statusOf(facts *cluster.Pod, id metric.ContainerID) (c *cluster.Container, ended bool) {
	for i := range facts.Containers {
		switch c := &facts.Containers[i]; id {
		case c.ID:
			return c, c.State != cluster.StateRunning
		case c.LastID():
			return c, true
		}
	}
	return nil, false
}

// pauseCommand is the command that runs in a sandbox, of every runtime that has one.
const pauseCommand = "pause"

// findSandbox returns the cgroup of a pod's sandbox: of those that no status
// names and something runs in, the one that runs pause, or else the oldest, since
// a sandbox is there before its containers.
func findSandbox(pod *Cgroup, facts *cluster.Pod) (oldest *Cgroup) {
	for _, c := range pod.Containers {
		if state, _ := statusOf(facts, c.ID); state != nil || c.IsEmpty() {
			continue
		}
		if len(c.Processes) == 1 && c.Processes[0].Command == pauseCommand {
			return c
		}
		if oldest == nil || c.startedBy().Before(oldest.startedBy()) {
			oldest = c
		}
	}
	return oldest
}

// startedBy returns the latest moment at which c can have begun.
func (c *Cgroup) startedBy() time.Time {
	if len(c.Processes) > 0 && c.Processes[0].Started.Before(c.EarliestModified) {
		return c.Processes[0].Started
	}
	return c.EarliestModified
}

// justStarted reports whether c is so young that a status may not have it yet.
func (j *judging) justStarted(c *Cgroup) bool { return c.startedBy().Add(SettleTime).After(j.pods.At) }

// judgeDuplicateContainers judges the containers' cgroups in a duplicate of their pod's
// cgroup, own.
func (j *judging) judgeDuplicateContainers(c, own *Cgroup, facts *cluster.Pod) (out []ContainerReport) {
	for _, below := range c.Containers {
		why := "its pod's cgroup is a duplicate"
		if own != nil {
			for _, real := range own.Containers {
				if real.ID == below.ID {
					why = "the same container has " + string(real.Path) + ", in its pod's cgroup"
				}
			}
		}
		one := j.newContainer(below, time.Time{}, Duplicate, why)
		if state, _ := statusOf(facts, below.ID); state != nil {
			one.Name = state.Name
		}
		out = append(out, one)
	}
	return out
}
