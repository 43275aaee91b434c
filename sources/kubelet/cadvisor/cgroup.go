package cadvisor

import (
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// role is the kind of a cgroup.
type role uint8

const (
	roleOther     role = iota // a system container, or the node
	rolePod                   // a pod's cgroup
	roleSandbox               // a pod's sandbox: only its network counters are used
	roleContainer             // a container of a pod
)

// pathNode is a path in the cgroup hierarchy, with the number of processes that this payload
// reports for it.
type pathNode struct {
	parent       *pathNode
	round        uint32 // the last round in which it, or a path below it, occurred
	hasProcesses bool   // this payload reports processes
	own, below   int32  // processes in the cgroup itself and below it
}

// begin prepares pl and its ancestors for the payload of the current round.
func (p *pathNode) begin(round uint32) {
	for ; p != nil && p.round != round; p = p.parent {
		*p = pathNode{parent: p.parent, round: round}
	}
}

// cgroup is a cgroup of the node under one set of labels, with the values that this payload reports
// for it. A restarted kubelet may report a path before it knows the pod. The same path with the
// pod's labels is then another cgroup here.
type cgroup struct {
	subject
	*pathNode
	role     role
	instance metric.Instance

	round         uint32
	quota, period float64
	start         int64
	interfaces    int      // in this payload, without lo
	eth0          bool     // whether one of them is eth0
	onlyInterface *subject // the last interface
}

// begin prepares c for the payload of the current round.
func (c *cgroup) begin(round uint32) {
	if c.round == round {
		return
	}
	c.pathNode.begin(round)
	c.round = round
	c.quota, c.period, c.start = 0, 0, 0
	c.interfaces, c.eth0, c.onlyInterface = 0, false, nil
}

// newCgroup returns the cgroup that labels describe, without its pathNode.
func newCgroup(l *labels) *cgroup {
	c := &cgroup{instance: metric.Instance{Path: metric.CgroupPath(l.id), Processes: -1}}
	c.cgroup = c
	if l.pod == "" {
		c.role = roleOther
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
		c.role = roleSandbox
		c.instance.ID = containerID(l.id)
	case l.container == "":
		c.role = rolePod
	default:
		c.role = roleContainer
		c.entity.Kind, c.entity.Name = metric.Container, l.container
		c.instance.ID = containerID(l.id)
	}
	return c
}

// podUID returns the UID in the cgroup path of a pod or container, in the form of the API server.
// It is empty if the path has none. The form in the path depends on the cgroup driver:
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

// countProcesses adds up the processes below each path. A pod's own cgroup has no processes; they
// are in the cgroups of its containers.
func (p *Parser) countProcesses() {
	for _, pl := range p.withProcesses {
		for above := pl.parent; above != nil; above = above.parent {
			above.below += pl.own
		}
	}
}
