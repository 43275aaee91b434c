package inspect

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// container returns a container's cgroup with a judgement and its reason.
func (j *judge) container(c *Cgroup, started time.Time, judgement Judgement, why string) Container {
	d := j.judged(c, started)
	d.Judgement, d.Why = judgement, append([]string{why}, d.Why...)
	return Container{Judged: d, ID: c.ID, Runtime: c.Runtime}
}

// containers judges the containers' cgroups in the cgroup of a known pod.
func (j *judge) containers(pod *Cgroup, facts *cluster.Pod) (out []Container) {
	sandbox := findSandbox(pod, facts)
	for _, c := range pod.Containers {
		out = append(out, j.containerOf(c, facts, sandbox))
	}
	return out
}

// containerOf judges one of them. Sandbox is the cgroup of the pod's sandbox, or
// nil where it is not known.
func (j *judge) containerOf(c *Cgroup, facts *cluster.Pod, sandbox *Cgroup) Container {
	state, ended := statusOf(facts, c.ID)
	var one Container
	switch {
	case state != nil && !ended && c.Vacant():
		one = j.container(c, state.StartedAt, Empty, "nothing runs in it, although the pod's status says that container "+state.Name+" does")
	case state != nil && !ended:
		one = j.container(c, state.StartedAt, Live, "the pod's status names it as container "+state.Name)
	case state != nil:
		one = j.container(c, time.Time{}, OldContainer, fmt.Sprintf("the pod's status names it as a run of container %s that has ended", state.Name))
	case c == sandbox:
		one = j.container(c, time.Time{}, Live, "no container's status names it: it is the pod's sandbox")
	case c.Vacant():
		one = j.container(c, time.Time{}, Empty, "nothing runs in it, and no container's status names it")
	case j.justStarted(c):
		one = j.container(c, time.Time{}, Live, "no container's status names it, but it is less than a minute old: the status may follow")
	default:
		one = j.container(c, time.Time{}, OldContainer, "no container's status names it, and it is not the pod's sandbox")
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

// pause is the command that runs in a sandbox, of every runtime that has one.
const pause = "pause"

// findSandbox returns the cgroup of a pod's sandbox: of those that no status
// names and something runs in, the one that runs pause, or else the oldest, since
// a sandbox is there before its containers.
func findSandbox(pod *Cgroup, facts *cluster.Pod) (oldest *Cgroup) {
	for _, c := range pod.Containers {
		if state, _ := statusOf(facts, c.ID); state != nil || c.Vacant() {
			continue
		}
		if len(c.Processes) == 1 && c.Processes[0].Command == pause {
			return c
		}
		if oldest == nil || c.began().Before(oldest.began()) {
			oldest = c
		}
	}
	return oldest
}

// began returns the latest moment at which c can have begun.
func (c *Cgroup) began() time.Time {
	if len(c.Processes) > 0 && c.Processes[0].Started.Before(c.Made) {
		return c.Processes[0].Started
	}
	return c.Made
}

// justStarted reports whether c is so young that a status may not have it yet.
func (j *judge) justStarted(c *Cgroup) bool { return c.began().Add(Settle).After(j.pods.At) }

// duplicateContainers judges the containers' cgroups in a duplicate of their pod's
// cgroup, own.
func (j *judge) duplicateContainers(c, own *Cgroup, facts *cluster.Pod) (out []Container) {
	for _, below := range c.Containers {
		why := "its pod's cgroup is a duplicate"
		if own != nil {
			for _, real := range own.Containers {
				if real.ID == below.ID {
					why = "the same container has " + string(real.Path) + ", in its pod's cgroup"
				}
			}
		}
		one := j.container(below, time.Time{}, Duplicate, why)
		if state, _ := statusOf(facts, below.ID); state != nil {
			one.Name = state.Name
		}
		out = append(out, one)
	}
	return out
}
