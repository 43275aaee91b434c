package metric

import "strings"

// The names below are all strings of different types, so that none can be passed for another.
type (
	// NodeName is the name of a Node object, or the host name of a machine
	// without a cluster.
	NodeName string
	// Namespace is the name of a namespace.
	Namespace string
	// PodName is a pod's metadata.name. If only a pod's cgroup is known, it is the pod's UID,
	// in no namespace.
	PodName string
	// PodUID is a pod's metadata.uid, in lower case and with dashes as the API server writes
	// it. For static pods a node may report the hash of their manifest instead (annotation
	// kubernetes.io/config.hash).
	PodUID string
	// ContainerID is a runtime's container ID without its scheme ("containerd://").
	ContainerID string
	// CgroupPath is a cgroup's path below the root of its hierarchy. It begins with "/".
	CgroupPath string
)

// Short returns the first characters of an ID, as many as crictl prints.
func (id ContainerID) Short() string { return string(id[:min(len(id), 13)]) }

// Kind is what an Entity is. Its order is the order of output: the largest first.
type Kind uint8

// The kinds of entity.
const (
	Cluster    Kind = iota
	Namespaced      // a namespace: the sum of its pods
	Node
	System // a cgroup that belongs to no pod
	Pod
	Container
	NumKinds int = iota
)

var kindNames = [NumKinds]string{"cluster", "namespace", "node", "system", "pod", "container"}

// String returns the lower-case noun: "cluster", "namespace", "node",
// "system", "pod" or "container".
func (k Kind) String() string {
	if int(k) < NumKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Entity is what a metric is about, by the names that readers use. It is comparable and serves
// as a key. It does not distinguish two runs of a container or two pods of one name: Instance
// does.
//
// Fields that do not apply are empty: a node has only Kind and Node; a namespace only Kind and
// Namespace.
type Entity struct {
	Kind      Kind
	Node      NodeName
	Namespace Namespace
	Pod       PodName
	// Name is a container's name, or its ID if its name is not known. For a system container it
	// is the cgroup path, or the name that a kubelet gives it ("kubelet", "runtime", "pods").
	Name string
	// Part is empty for the entity itself. For a device, network interface, volume or
	// accelerator of the entity it is "device:/dev/vda1", "interface:eth0", "volume:data" or
	// "accelerator:0". Values of parts are never added up to the entity's value: that is
	// reported beside them.
	Part string
}

// PodRef names a pod by namespace and name.
type PodRef struct {
	Namespace Namespace
	Name      PodName
}

// String returns "namespace/name".
func (r PodRef) String() string { return string(r.Namespace) + "/" + string(r.Name) }

// PodRef returns the pod that e is or belongs to. It is the zero PodRef for a
// node, system container, namespace or cluster.
func (e Entity) PodRef() PodRef { return PodRef{e.Namespace, e.Pod} }

// Whole returns e without its part: the entity that a device or interface belongs to.
func (e Entity) Whole() Entity { e.Part = ""; return e }

// OfPod returns the pod a container belongs to, on the same node.
func (e Entity) OfPod() Entity {
	return Entity{Kind: Pod, Node: e.Node, Namespace: e.Namespace, Pod: e.Pod}
}

// String returns a short name for people: "node/n1", "shop/web" for a pod,
// "shop/web/app" for a container, "system/kubelet", "namespace/shop",
// "cluster"; a part follows in brackets.
func (e Entity) String() string {
	var s string
	switch e.Kind {
	case Cluster:
		s = "cluster"
	case Node:
		s = "node/" + string(e.Node)
	case Namespaced:
		s = "namespace/" + string(e.Namespace)
	case System:
		s = "system" + slash(e.Name)
	case Pod:
		s = string(e.Namespace) + "/" + string(e.Pod)
	case Container:
		s = string(e.Namespace) + "/" + string(e.Pod) + "/" + e.Name
	default:
		s = "unknown"
	}
	if e.Part != "" {
		s += "[" + e.Part + "]"
	}
	return s
}

func slash(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// Compare orders entities for output: by kind, then namespace, node, pod, name
// and part. The result is negative, zero or positive.
func (e Entity) Compare(o Entity) int {
	if e.Kind != o.Kind {
		return int(e.Kind) - int(o.Kind)
	}
	for _, c := range [...]int{
		strings.Compare(string(e.Namespace), string(o.Namespace)),
		strings.Compare(string(e.Node), string(o.Node)),
		strings.Compare(string(e.Pod), string(o.Pod)),
		strings.Compare(e.Name, o.Name),
	} {
		if c != 0 {
			return c
		}
	}
	return strings.Compare(e.Part, o.Part)
}

// StartOrigin is how reliable a start time is.
type StartOrigin uint8

// Where a start time comes from.
const (
	StartUnknown StartOrigin = iota
	// StartCgroup is the modification time of a cgroup directory. It moves when a child is made
	// or removed, and differs between hierarchies.
	StartCgroup
	// StartReported is what a kubelet reports without saying where it has it from.
	StartReported
	// StartRuntime is the time that the container runtime recorded, or the kernel's boot time.
	StartRuntime
)

// Instance is one life of an entity's counters: a container run, a sandbox, a pod's cgroup, a
// boot. Counters of two instances are never subtracted. Unknown fields are empty.
type Instance struct {
	UID   PodUID
	ID    ContainerID
	Path  CgroupPath
	Inode uint64 // of the cgroup directory
	// Start is when the instance's counters were zero, in nanoseconds since the Unix epoch; 0
	// if unknown.
	Start  int64
	Origin StartOrigin
	// Processes is the number of processes in the instance's cgroup and below it; negative if
	// the source does not report it.
	Processes int32
	// Sandbox is the ID of the pod's sandbox, which counts its network.
	Sandbox ContainerID
	// Line is set by identity: if nothing else names the instance, reports with the same Line
	// are of one instance. 0 before identity.
	Line uint32
}
