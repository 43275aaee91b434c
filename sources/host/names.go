package host

import (
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// runtimeNames is what a container runtime knows of a container.
type runtimeNames struct {
	Namespace metric.Namespace
	Pod       metric.PodName
	UID       metric.PodUID
	Name      string // of the container; empty for a sandbox
	Sandbox   bool
	Created   time.Time // zero if unknown
}

// The labels a kubelet gives to containers, and containerd's CRI plugin.
const (
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
	labelUID       = "io.kubernetes.pod.uid"
	labelName      = "io.kubernetes.container.name"
	labelKind      = "io.cri-containerd.kind"
)

// fromLabels reads a container's labels.
func fromLabels(labels map[string]string, created time.Time) runtimeNames {
	uid, _ := podcgroup.NormalizeUID(labels[labelUID])
	return runtimeNames{
		Namespace: metric.Namespace(labels[labelNamespace]),
		Pod:       metric.PodName(labels[labelPod]),
		UID:       uid,
		Name:      labels[labelName],
		Sandbox:   labels[labelKind] == "sandbox",
		Created:   created,
	}
}

// named is what a cgroup is reported as.
type named struct {
	entity   metric.Entity
	instance metric.Instance // UID and ID
	runtime  runtimeNames
	// hidden cgroups give no sample: a sandbox's, whose pod has its network.
	hidden bool
}

// naming names cgroups, with what the runtime said of containers.
type naming struct {
	node metric.NodeName
	// containers is by ID. pods, derived from it, is by UID.
	containers map[metric.ContainerID]runtimeNames
	pods       map[metric.PodUID]runtimeNames
}

func newNaming(node metric.NodeName, containers map[metric.ContainerID]runtimeNames) naming {
	n := naming{node, containers, make(map[metric.PodUID]runtimeNames, len(containers))}
	for _, c := range containers {
		if c.UID != "" && c.Pod != "" {
			n.pods[c.UID] = c
		}
	}
	return n
}

// name says what p is. ref is podcgroup.Parse(p).
func (n *naming) name(p metric.CgroupPath, ref podcgroup.Ref) named {
	if p == "/" {
		return named{entity: metric.Entity{Kind: metric.Node, Node: n.node}}
	}
	out := named{
		entity:   metric.Entity{Kind: metric.System, Node: n.node, Name: string(p)},
		instance: metric.Instance{UID: ref.UID, ID: ref.ID},
	}
	switch ref.Kind {
	case podcgroup.Inside:
		// Its life is not the container's, and it must not pass for a second
		// view of it.
		out.instance = metric.Instance{}
	case podcgroup.Pod:
		out.entity = n.pod(ref)
		out.entity.Kind = metric.Pod
	case podcgroup.Container:
		out.entity = n.pod(ref)
		out.entity.Kind, out.entity.Name = metric.Container, string(ref.ID)
		if c, ok := n.containers[ref.ID]; ok {
			out.runtime, out.hidden = c, c.Sandbox
			if c.Name != "" {
				out.entity.Name = c.Name
			}
		}
	}
	return out
}

// pod returns an entity with the pod's names: the runtime's, else the UID.
func (n *naming) pod(ref podcgroup.Ref) metric.Entity {
	e := metric.Entity{Node: n.node, Pod: metric.PodName(ref.UID)}
	c, ok := n.containers[ref.ID]
	if !ok || ref.ID == "" || c.Pod == "" {
		c, ok = n.pods[ref.UID]
	}
	if ok && c.Pod != "" {
		e.Namespace, e.Pod = c.Namespace, c.Pod
	}
	return e
}
