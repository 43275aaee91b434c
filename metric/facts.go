package metric

import "time"

// Facts is what the API server says of nodes and pods, as weir knew it at one
// moment. It is immutable; readers need no lock. The zero Facts and a nil
// *Facts know nothing, as on a machine without a cluster.
type Facts struct {
	// Synced reports whether nodes and pods have been listed whole at least
	// once. Until then a pod's absence proves nothing.
	Synced bool
	// At is when these facts were learnt, by our clock. It stands still while
	// the API server is away.
	At time.Time

	nodes map[NodeName]*NodeFacts
	pods  [podShards]map[PodRef]*PodFacts
	// byNode holds the pods bound to each node, byNamespace those of each
	// namespace. The slices are never changed, only replaced.
	byNode      map[NodeName][]*PodFacts
	byNamespace map[Namespace][]*PodFacts
}

// podShards spreads pods over maps small enough to copy for each change.
const podShards = 256

// NodeFacts is what the API server says of a node.
type NodeFacts struct {
	Name          NodeName
	Addresses     []NodeAddress
	KubeletPort   int32
	Ready         bool
	Unschedulable bool
	Labels        map[string]string
	Annotations   map[string]string
	// Spec holds capacity and allocatable: CPUNodeCapacity and so on.
	Spec Values
}

// NodeAddress is one way to reach a node.
type NodeAddress struct {
	Type    string // InternalIP, Hostname, ...
	Address string
}

// Cores returns the node's CPU capacity in cores; 0 if unknown.
func (n *NodeFacts) Cores() float64 {
	if n == nil {
		return 0
	}
	v, _ := n.Spec.Get(CPUNodeCapacity)
	return v * Nanocores.Prometheus()
}

// Phase is a pod's phase, as the API server spells it.
type Phase string

// The phases.
const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// PodFacts is what the API server says of a pod.
type PodFacts struct {
	PodRef
	UID PodUID
	// ConfigHash is the annotation kubernetes.io/config.hash, which nodes
	// report in place of the UID for static pods; empty for others.
	ConfigHash  PodUID
	Mirror      bool // of a static pod
	Node        NodeName
	Phase       Phase
	Started     time.Time // status.startTime; zero if not started
	Deleted     time.Time // metadata.deletionTimestamp; zero if not
	Ready       Readiness
	ReadySince  time.Time // the Ready condition's last transition; zero if there is none
	HostNetwork bool
	QoS         string
	Labels      map[string]string
	// KnownAt is when weir first knew this pod (this UID), by our clock.
	KnownAt    time.Time
	Containers []ContainerFacts
	// Spec holds the pod-level requests and limits, where given. PodLevel says
	// that there is such a request, of CPU, memory or huge pages (of which Spec has
	// nothing).
	Spec     Values
	PodLevel bool
	// Overhead holds what the pod's RuntimeClass costs, as requests.
	Overhead Values
}

// Readiness is the status of a pod's Ready condition.
type Readiness uint8

// The statuses. ReadyAbsent means there is no such condition.
const (
	ReadyAbsent Readiness = iota
	ReadyTrue
	ReadyFalse
	ReadyUnknown
)

// Role says what a container is for.
type Role uint8

// The roles.
const (
	Regular   Role = iota
	Init           // ends before the regular ones start
	Sidecar        // an init container that goes on running (restartPolicy Always)
	Ephemeral      // put in to debug
)

// State is a container's state.
type State uint8

// The states. StateUnknown means the status does not mention the container.
const (
	StateUnknown State = iota
	Waiting
	Live // running
	Terminated
)

// ContainerFacts is what the API server says of a container of a pod.
type ContainerFacts struct {
	Name  string
	Role  Role
	State State
	// ID is the container of the current state; where it waits or has
	// terminated, the run that the status names last.
	ID        ContainerID
	LastID    ContainerID // lastState.terminated
	StartedAt time.Time   // of the current state; zero unless Live or Terminated
	EndedAt   time.Time   // of the last run that ended; zero if none
	Why       string      // the state's reason: CrashLoopBackOff, Completed, ...
	Restarts  int32
	Spec      Values // requests and limits
}

// Required reports whether a pod may be served only with this container's
// numbers: it runs, and it is a regular or restartable init container.
func (c *ContainerFacts) Required() bool {
	return c.State == Live && (c.Role == Regular || c.Role == Sidecar)
}

// Container returns the facts of the container of that name, or nil.
func (p *PodFacts) Container(name string) *ContainerFacts {
	if p == nil {
		return nil
	}
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// Is reports whether uid is the pod's: its UID or, for a static pod, the hash
// of its manifest.
func (p *PodFacts) Is(uid PodUID) bool {
	return uid == p.UID || p.ConfigHash != "" && uid == p.ConfigHash
}

// ReportedUID returns the UID by which nodes call the pod: its own or, for a
// static pod, the hash of its manifest.
func (p *PodFacts) ReportedUID() PodUID {
	if p.ConfigHash != "" {
		return p.ConfigHash
	}
	return p.UID
}

// CoresOf returns how many CPUs the node of b has: what the API server says, else
// what the source says; 0 if neither does.
func (f *Facts) CoresOf(b *Batch) float64 {
	if cores := f.Node(b.Node).Cores(); cores > 0 {
		return cores
	}
	return b.Cores
}

// Node returns the facts of a node, or nil.
func (f *Facts) Node(name NodeName) *NodeFacts {
	if f == nil {
		return nil
	}
	return f.nodes[name]
}

// Nodes returns how many nodes are known.
func (f *Facts) Nodes() int {
	if f == nil {
		return 0
	}
	return len(f.nodes)
}

// EachNode calls do for every node, in no order, until it returns false.
func (f *Facts) EachNode(do func(*NodeFacts) bool) {
	if f == nil {
		return
	}
	for _, n := range f.nodes {
		if !do(n) {
			return
		}
	}
}

// Pod returns the facts of a pod, or nil.
func (f *Facts) Pod(ref PodRef) *PodFacts {
	if f == nil {
		return nil
	}
	return f.pods[shardOf(ref)][ref]
}

// EachPod calls do for every pod, bound to a node or not, in no order, until it
// returns false.
func (f *Facts) EachPod(do func(*PodFacts) bool) {
	if f == nil {
		return
	}
	for _, shard := range f.pods {
		for _, p := range shard {
			if !do(p) {
				return
			}
		}
	}
}

// PodsOn returns the pods bound to a node. The slice must not be changed.
func (f *Facts) PodsOn(node NodeName) []*PodFacts {
	if f == nil {
		return nil
	}
	return f.byNode[node]
}

// PodsIn returns the pods of a namespace, bound to a node or not. The slice must
// not be changed.
func (f *Facts) PodsIn(namespace Namespace) []*PodFacts {
	if f == nil {
		return nil
	}
	return f.byNamespace[namespace]
}

// Pods returns how many pods are known.
func (f *Facts) Pods() (n int) {
	if f == nil {
		return 0
	}
	for _, shard := range f.pods {
		n += len(shard)
	}
	return n
}

func shardOf(ref PodRef) uint8 {
	// FNV-1a, folded to a byte.
	h := uint32(2166136261)
	for i := range len(ref.Namespace) {
		h = (h ^ uint32(ref.Namespace[i])) * 16777619
	}
	for i := range len(ref.Name) {
		h = (h ^ uint32(ref.Name[i])) * 16777619
	}
	return uint8(h ^ h>>8 ^ h>>16 ^ h>>24)
}

// FactsChange is a set of changes to Facts.
type FactsChange struct {
	Synced bool
	At     time.Time
	Nodes  []*NodeFacts // new or changed
	Pods   []*PodFacts  // new or changed
	// GoneNodes and GonePods were deleted. A pod of the same name and another
	// UID that is in Pods replaces the old one: it need not be listed as gone.
	GoneNodes []NodeName
	GonePods  []PodRef
}

// With returns facts with the change applied; f itself stays as it is. What
// did not change is shared. f may be nil.
func (f *Facts) With(c FactsChange) *Facts {
	n := &Facts{Synced: c.Synced, At: c.At}
	if f != nil {
		n.nodes, n.pods, n.byNode, n.byNamespace = f.nodes, f.pods, f.byNode, f.byNamespace
	}
	if n.nodes == nil || len(c.Nodes)+len(c.GoneNodes) > 0 {
		n.nodes = cloneMap(n.nodes)
		for _, name := range c.GoneNodes {
			delete(n.nodes, name)
		}
		for _, node := range c.Nodes {
			n.nodes[node.Name] = node
		}
	}
	if n.byNode != nil && len(c.Pods)+len(c.GonePods) == 0 {
		return n
	}
	var copied [podShards]bool
	shard := func(ref PodRef) map[PodRef]*PodFacts {
		i := shardOf(ref)
		if !copied[i] {
			n.pods[i], copied[i] = cloneMap(n.pods[i]), true
		}
		return n.pods[i]
	}
	byNode, byNamespace := moves[NodeName]{}, moves[Namespace]{}
	for _, ref := range c.GonePods {
		pods := shard(ref)
		if old := pods[ref]; old != nil {
			byNode.note(old.Node, ref, nil)
			byNamespace.note(ref.Namespace, ref, nil)
			delete(pods, ref)
		}
	}
	for _, p := range c.Pods {
		pods := shard(p.PodRef)
		if old := pods[p.PodRef]; old != nil && old.Node != p.Node {
			byNode.note(old.Node, p.PodRef, nil)
		}
		pods[p.PodRef] = p
		byNode.note(p.Node, p.PodRef, p)
		byNamespace.note(p.Namespace, p.PodRef, p)
	}
	n.byNode, n.byNamespace = byNode.apply(n.byNode), byNamespace.apply(n.byNamespace)
	return n
}

// moves are what becomes of groups of pods: for each group that is touched, what
// its pods now are; nil for gone.
type moves[K ~string] map[K]map[PodRef]*PodFacts

func (m moves[K]) note(group K, ref PodRef, p *PodFacts) {
	if group == "" {
		return
	}
	if m[group] == nil {
		m[group] = map[PodRef]*PodFacts{}
	}
	m[group][ref] = p
}

// apply returns groups as they are afterwards.
func (m moves[K]) apply(groups map[K][]*PodFacts) map[K][]*PodFacts {
	groups = cloneMap(groups)
	for group, changes := range m {
		pods := make([]*PodFacts, 0, len(groups[group])+len(changes))
		for _, p := range groups[group] {
			if _, changed := changes[p.PodRef]; !changed {
				pods = append(pods, p)
			}
		}
		for _, p := range changes {
			if p != nil {
				pods = append(pods, p)
			}
		}
		if len(pods) == 0 {
			delete(groups, group)
		} else {
			groups[group] = pods
		}
	}
	return groups
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m)+1)
	for k, v := range m {
		c[k] = v
	}
	return c
}
