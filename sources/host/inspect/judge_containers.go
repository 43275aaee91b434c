package inspect

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

func (j *judging) newContainer(c *Cgroup, judgement Judgement, reason string) ContainerReport {
	d := j.describeCgroup(c)
	d.Judgement, d.Reasons = judgement, append([]string{reason}, d.Reasons...)
	return ContainerReport{CgroupReport: d, ID: c.ID, Runtime: c.Runtime}
}

// judgeContainer judges the cgroup of one container. sandbox is the cgroup of the pod's sandbox;
// nil if it is not known.
func (j *judging) judgeContainer(c *Cgroup, facts *cluster.Pod, sandbox *Cgroup) ContainerReport {
	state, ended := statusOf(facts, c.ID)
	if state != nil {
		one := j.newContainer(c, Live, "the pod's status names it as container "+state.Name)
		one.Name = state.Name
		switch {
		case ended:
			one.Judgement, one.Reasons[0] = OldContainer, "the pod's status names it as an ended run of container "+state.Name
			return one
		case c.IsEmpty():
			one.Judgement = Empty
			one.Reasons[0] = "nothing runs in it, although container " + state.Name + " is running by the pod's status"
		}
		one.setStarted(state.StartedAt)
		return one
	}
	switch {
	case c == sandbox:
		return j.newContainer(c, Live, "no container's status names it: it is the pod's sandbox")
	case c.IsEmpty():
		return j.newContainer(c, Empty, "nothing runs in it, and no container's status names it")
	case j.justStarted(c):
		return j.newContainer(c, Live, "no container's status names it, but it is less than a minute old: the status may not have it yet")
	}
	return j.newContainer(c, OldContainer, "no container's status names it, and it is not the pod's sandbox")
}

// statusOf returns the container that has id in its status, and whether that run has ended. It
// returns nil if no status has id.
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

// pauseCommand is the command that runs in a sandbox, with every runtime that runs a command there.
const pauseCommand = "pause"

// findSandbox returns the cgroup of a pod's sandbox. A sandbox is in no status and has processes.
// It is the one that runs pause, or else the oldest one, because it starts before the containers.
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

// startedBy returns the latest time at which c can have been created.
func (c *Cgroup) startedBy() time.Time {
	if len(c.Processes) > 0 && c.Processes[0].Started.Before(c.EarliestModified) {
		return c.Processes[0].Started
	}
	return c.EarliestModified
}

// justStarted reports whether c is so new that a status may not have it yet.
func (j *judging) justStarted(c *Cgroup) bool { return c.startedBy().Add(SettleTime).After(j.pods.At) }

// judgeDuplicateContainers judges the cgroups of containers in c, which is a duplicate of own. own
// is nil if it is not known which cgroup the pod uses.
func (j *judging) judgeDuplicateContainers(c, own *Cgroup, facts *cluster.Pod) (out []ContainerReport) {
	for _, below := range c.Containers {
		reason := "its pod's cgroup is a duplicate"
		if own != nil {
			for _, real := range own.Containers {
				if real.ID == below.ID {
					reason = "the same container also has " + string(real.Path) + ", in its pod's cgroup"
				}
			}
		}
		one := j.newContainer(below, Duplicate, reason)
		if state, _ := statusOf(facts, below.ID); state != nil {
			one.Name = state.Name
		}
		out = append(out, one)
	}
	return out
}
