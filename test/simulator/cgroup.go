package simulator

import "strings"

// qosPath returns the cgroup of a QoS class on the node; an empty class means
// the cgroup of all pods. Guaranteed pods have no cgroup of their class.
func (n *Node) qosPath(qos string) string {
	class := strings.ToLower(qos)
	if qos == "Guaranteed" {
		class = ""
	}
	switch {
	case n.systemd && class == "":
		return "/kubepods.slice"
	case n.systemd:
		return "/kubepods.slice/kubepods-" + class + ".slice"
	case class == "":
		return "/kubepods"
	}
	return "/kubepods/" + class
}

// path returns the pod's cgroup. With second set, it returns a cgroup in
// another QoS class, which remained there.
func (p *Pod) path(second bool) string {
	qos := p.QoS
	if second {
		qos = "BestEffort"
		if p.QoS == "BestEffort" {
			qos = "Burstable"
		}
	}
	parent := p.Node.qosPath(qos)
	if !p.Node.systemd {
		return parent + "/pod" + p.ReportedUID()
	}
	slice := parent[strings.LastIndexByte(parent, '/')+1:]
	return parent + "/" + strings.TrimSuffix(slice, ".slice") + "-pod" + strings.ReplaceAll(p.ReportedUID(), "-", "_") + ".slice"
}

// path returns the path of the cgroup that was read.
func (r *reading) path() string {
	path := r.pod.path(r.second)
	switch {
	case r.run == nil:
		return path
	case r.pod.Node.systemd:
		return path + "/cri-containerd-" + r.run.id() + ".scope"
	}
	return path + "/" + r.run.id()
}
