package cadvisor

import (
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// role is what a cgroup is.
type role uint8

const (
	other   role = iota // a system container, or the node
	pod                 // a pod's cgroup
	sandbox             // a pod's sandbox, whose only numbers are the network's
	member              // a container of a pod
)

// place is a path in the hierarchy, and the processes reported there in this
// payload.
type place struct {
	parent     *place
	round      uint32 // when it was last spoken of, or one below it
	listed     bool   // processes were reported
	own, below int32
}

// begin readies pl and those above it for the payload of this round.
func (pl *place) begin(round uint32) {
	for ; pl != nil && pl.round != round; pl = pl.parent {
		*pl = place{parent: pl.parent, round: round}
	}
}

// cgroup is one the node speaks of under certain labels, and what it said of it
// in this payload. A kubelet that has restarted may know a path without knowing
// whose it is; later it does, and that is another cgroup here.
type cgroup struct {
	subject
	*place
	role     role
	instance metric.Instance

	round         uint32
	quota, period float64
	start         int64
	interfaces    int      // but for lo, in this payload
	eth0          bool     // one of them is eth0
	onlyInterface *subject // the last of them
}

// begin readies c for the payload of this round.
func (c *cgroup) begin(round uint32) {
	if c.round == round {
		return
	}
	c.place.begin(round)
	c.round = round
	c.quota, c.period, c.start = 0, 0, 0
	c.interfaces, c.eth0, c.onlyInterface = 0, false, nil
}

// newCgroup returns the cgroup that labels describe.
func newCgroup(l *labels, at *place) *cgroup {
	c := &cgroup{place: at, instance: metric.Instance{Path: metric.CgroupPath(l.id), Processes: -1}}
	c.cgroup = c
	if l.pod == "" {
		c.role = other
		c.entity = metric.Entity{Kind: metric.System, Name: l.id}
		if l.id == "/" {
			c.entity = metric.Entity{Kind: metric.Node}
		}
		return c
	}
	c.entity = metric.Entity{Kind: metric.Pod, Namespace: metric.Namespace(l.namespace), Pod: metric.PodName(l.pod)}
	c.instance.UID = podUID(l.id)
	switch {
	case l.container == "POD" || l.container == "" && l.name != "":
		c.role = sandbox
		c.instance.ID = containerID(l.id)
	case l.container == "":
		c.role = pod
	default:
		c.role = member
		c.entity.Kind, c.entity.Name = metric.Container, l.container
		c.instance.ID = containerID(l.id)
	}
	return c
}

// podUID returns the UID in a pod's or container's cgroup path, as the API
// server writes it; empty if there is none. The drivers spell it differently:
//
//	/kubepods/burstable/pod80cd749e-fe99-4226-bfc9-fe1dcb4e4831/...
//	/kubepods.slice/kubepods-pod80cd749e_fe99_4226_bfc9_fe1dcb4e4831.slice/...
func podUID(path string) metric.PodUID {
	for element := range strings.SplitSeq(path, "/") {
		element, slice := strings.CutSuffix(element, ".slice")
		if slice {
			i := strings.LastIndex(element, "-pod")
			if i < 0 {
				continue
			}
			element = element[i+1:]
		}
		if uid, ok := strings.CutPrefix(element, "pod"); ok && len(uid) >= 32 {
			return metric.PodUID(strings.ToLower(strings.ReplaceAll(uid, "_", "-")))
		}
	}
	return ""
}

// containerID returns the ID in the last element of a container's cgroup path:
//
//	.../2e7965ef0c97
//	.../cri-containerd-2e7965ef0c97.scope
//	.../system.slice:docker:2e7965ef0c97
func containerID(path string) metric.ContainerID {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if id, ok := strings.CutSuffix(last, ".scope"); ok {
		last = id[strings.LastIndexByte(id, '-')+1:]
	}
	return metric.ContainerID(last[strings.LastIndexByte(last, ':')+1:])
}

// countProcesses adds up the processes below each place. A pod's own cgroup
// never holds any: they are in those of its containers.
func (p *Parser) countProcesses() {
	for _, pl := range p.listed {
		for above := pl.parent; above != nil; above = above.parent {
			above.below += pl.own
		}
	}
}
