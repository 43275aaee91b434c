package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/run"
)

// Facts is what the API server reports about nodes and pods at one moment. It is immutable;
// readers need no lock. The zero Facts and a nil *Facts are empty, as on a machine without a
// cluster.
type Facts struct {
	// Synced means that all nodes and pods were listed at least once. Until then a missing pod
	// may exist.
	Synced bool
	// At is when the facts of pods were learnt, by our clock. It does not change while the API
	// server does not answer about pods, even if it answers about nodes.
	At time.Time

	// generation is different for each Facts that With returns; 0 for the zero Facts.
	generation uint64
	// leftOut is how many nodes there are besides nodes, because the cluster has too many.
	leftOut int

	nodes table[metric.NodeName, *Node]
	pods  table[metric.Namespace, *NamespacePods]
	// byNode has the pods bound to each node. An entry is never changed. It is replaced when a
	// pod of its node changes.
	byNode table[metric.NodeName, *nodePods]
}

// nodePods are the pods bound to a node, and the generation of their last change.
type nodePods struct {
	pods       []*Pod
	generation uint64
}

// generations is shared by all Facts, so that a number is never used twice.
var generations atomic.Uint64

func nextGeneration() uint64 { return generations.Add(1) }

// Node is a node as the API server describes it.
type Node struct {
	Name          metric.NodeName
	Addresses     []NodeAddress
	KubeletPort   int32
	Ready         bool
	Unschedulable bool
	Swap          bool // the kubelet found swap space (status.nodeInfo.swap, since Kubernetes 1.34)
	// Lifecycle has the conditions of KEP-5683 that are true. The administrator sets them.
	Lifecycle   []NodeLifecycle
	Labels      map[string]string
	Annotations map[string]string // only PathAnnotation: others can be long, and nothing reads them
	// Spec has capacity and allocatable: CPUNodeCapacity and so on.
	Spec metric.Values
}

// PathAnnotation is the annotation of a Node with the path at which its kubelet serves
// /metrics/resource. metrics-server defines the annotation.
const PathAnnotation = "metrics.k8s.io/resource-metrics-path"

// NodeLifecycle is a condition of KEP-5683, as Kubernetes spells it, for example DrainInProgress.
type NodeLifecycle string

// NodeAddress is one address of a node.
type NodeAddress struct {
	Type    string // InternalIP, Hostname, ...
	Address string
}

// Cores returns the node's CPU capacity in cores; 0 if unknown.
func (n *Node) Cores() float64 {
	if n == nil {
		return 0
	}
	v, _ := n.Spec.Get(metric.CPUNodeCapacity)
	return v * metric.Nanocores.Prometheus()
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

// Pod is a pod as the API server describes it.
type Pod struct {
	metric.PodRef
	UID metric.PodUID
	// ConfigHash is the annotation kubernetes.io/config.hash, which nodes report instead of the
	// UID of static pods; nil for others.
	ConfigHash  *metric.PodUID
	Node        metric.NodeName
	Phase       Phase
	QoS         string
	Labels      map[string]string
	Owner       *Owner    // the controller, shared by its pods; nil if there is none
	Stop        *PodStop  // why it is stopped, by its status; nil for most pods
	Resize      *Resize   // what a resize in place has not applied; nil for most pods
	Started     time.Time // status.startTime; zero if not started
	Deleted     time.Time // metadata.deletionTimestamp; zero if not
	ReadySince  time.Time // the Ready condition's last transition; zero if there is none
	KnownAt     time.Time // when weir first saw this pod (this UID), by our clock
	Ready       Readiness
	Mirror      bool // the mirror pod of a static pod
	HostNetwork bool
	// PodLevel means that the pod has a pod-level request, of CPU, memory or huge pages. Spec
	// does not have huge pages.
	PodLevel bool
	// NoResize means that the node's kubelet cannot resize in place: it does not report the
	// resources of running containers.
	NoResize bool
	// Spec has the pod-level requests and limits, if there are any.
	Spec Requirements
	// Overhead has the overhead of the pod's RuntimeClass, as requests.
	Overhead   Requirements
	Containers []Container
}

// ByKubelet is the Disruption of a pod that a kubelet stopped: to evict it, for a critical pod, or because the
// node shuts down.
const ByKubelet = "TerminationByKubelet"

// ByAgent is the Disruption of a pod that weir's agent deletes, because its node is short of a resource.
const ByAgent = "TerminationByWeir"

// PodStop is what the status of a pod reports about why the pod is stopped.
type PodStop struct {
	// Reason is status.reason: Evicted, DeadlineExceeded, Preempting, ...
	Reason string
	// Disruption is the reason of the condition DisruptionTarget, if that is true: EvictionByEvictionAPI,
	// PreemptionByScheduler, ...
	Disruption string
	// Message is status.message, or else that of the condition, with at most 1,024 bytes.
	Message string
}

// Owner is the object that controls a pod, such as a ReplicaSet.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Workload returns what users call the pod's workload: its owner; for a ReplicaSet of a Deployment,
// the Deployment. It is empty if the pod has no owner, and for a static pod, which its node owns.
//
// The Deployment is known by the pod's label pod-template-hash: the controller of Deployments sets
// it, and ends the names of its ReplicaSets with it.
func (p *Pod) Workload() Owner {
	switch {
	case p.Owner == nil || p.Owner.Kind == "Node":
		return Owner{}
	case p.Owner.Kind == "ReplicaSet":
		if hash := p.Labels["pod-template-hash"]; hash != "" {
			if name, ok := strings.CutSuffix(p.Owner.Name, "-"+hash); ok && name != "" {
				return Owner{Kind: "Deployment", Name: name}
			}
		}
	}
	return *p.Owner
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

// Role is what a container is for.
type Role uint8

// The roles.
const (
	Regular   Role = iota
	Init           // ends before the regular ones start
	Sidecar        // an init container that keeps running (restartPolicy Always)
	Ephemeral      // added for debugging
)

// InitRole returns the role of an init container with the given restartPolicy, which may be nil:
// Sidecar or Init. P is Kubernetes' type of it.
func InitRole[P ~string](restartPolicy *P) Role {
	if restartPolicy != nil && *restartPolicy == "Always" {
		return Sidecar
	}
	return Init
}

// ContainerState is a container's state.
type ContainerState uint8

// The states. StateUnknown means the status does not mention the container.
const (
	StateUnknown ContainerState = iota
	StateWaiting
	StateRunning
	StateTerminated
)

// Container is a container of a pod as the API server describes it.
type Container struct {
	Name  string
	Image string // of the pod's specification
	// ID is the container ID of the current state. If the container waits or has terminated, it
	// is that of the last run that the status names.
	ID        metric.ContainerID
	StartedAt time.Time    // of the current state; zero unless it runs or has terminated
	Previous  *PreviousRun // nil for most containers: they run, and no earlier run has ended
	Spec      Requirements
	Restarts  int32
	Role      Role
	State     ContainerState
}

// PreviousRun is what the API server reports about ended runs of a container, and about why it
// does not run.
type PreviousRun struct {
	LastID      metric.ContainerID // lastState.terminated
	StartedAt   time.Time          // of that run; zero if unknown
	EndedAt     time.Time          // of the last run that ended; zero if none
	StateReason string             // the current state's reason: CrashLoopBackOff, Completed, ...
	EndReason   string             // why the last run ended: OOMKilled, Error, Completed
	ExitCode    int32              // of the last run
	Signal      int32              // that ended the last run, if the runtime reports it; most runtimes add 128 to it and report an exit code
	EndMessage  string             // of the last run, or of the runtime about it; at most 512 bytes
}

// OrNil returns p, or nil if it is empty.
func (p PreviousRun) OrNil() *PreviousRun {
	if p == (PreviousRun{}) {
		return nil
	}
	return &p
}

// noRun is used for a container that has no previous run.
var noRun = &PreviousRun{}

// previous returns c.Previous, or noRun if that is nil.
func (c *Container) previous() *PreviousRun {
	if c.Previous == nil {
		return noRun
	}
	return c.Previous
}

// LastID returns the container ID of the run before the current state; empty if the status
// names none.
func (c *Container) LastID() metric.ContainerID { return c.previous().LastID }

// LastStartedAt returns when the last ended run started; zero if unknown.
func (c *Container) LastStartedAt() time.Time {
	if c.State == StateTerminated {
		return c.StartedAt
	}
	return c.previous().StartedAt
}

// EndedAt returns when the last ended run ended; zero if none has.
func (c *Container) EndedAt() time.Time { return c.previous().EndedAt }

// StateReason returns the reason of the current state, such as CrashLoopBackOff or Completed;
// empty if the status has none.
func (c *Container) StateReason() string { return c.previous().StateReason }

// Ending returns how the last run ended, such as "OOMKilled, exit code 137"; empty if none has.
func (c *Container) Ending() string {
	switch p := c.previous(); {
	case p.EndReason == "" && p.ExitCode == 0:
		return ""
	case p.EndReason == "":
		return fmt.Sprintf("exit code %d", p.ExitCode)
	default:
		return fmt.Sprintf("%s, exit code %d", p.EndReason, p.ExitCode)
	}
}

// Record returns what the API server reports of the container's runs. c may be nil.
func (c *Container) Record() run.Record {
	switch {
	case c == nil:
		return run.Record{}
	case c.State == StateRunning:
		first := c.Restarts == 0 && c.LastID() == "" && c.EndedAt().IsZero()
		return run.Record{State: run.Running, ID: c.ID, Start: c.StartedAt, LastID: c.LastID(), LastStart: c.LastStartedAt(), LastEnd: c.EndedAt(), First: first}
	case c.State == StateWaiting || c.State == StateTerminated:
		return run.Record{State: run.Stopped, ID: c.ID, LastID: c.LastID(), LastStart: c.LastStartedAt(), LastEnd: c.EndedAt()}
	}
	return run.Record{}
}

// Required reports whether a pod is served only with this container's numbers: it runs, and it
// is a regular container or a sidecar.
func (c *Container) Required() bool {
	return c.State == StateRunning && (c.Role == Regular || c.Role == Sidecar)
}

// Partial is a pod that runs without some of its containers. Its numbers are those of the others.
type Partial struct {
	Stopped *Container // the first container that should run and does not
	Running int        // how many containers run
	Of      int        // how many should
}

// String describes the pod: "1 of 2 containers: app does not run, CrashLoopBackOff, last run OOMKilled, exit code 137".
func (p Partial) String() string {
	text := fmt.Sprintf("%d of %s: %s does not run", p.Running, humanize.Count(p.Of, "container"), p.Stopped.Name)
	if reason := p.Stopped.StateReason(); reason != "" {
		text += ", " + reason
	}
	if ending := p.Stopped.Ending(); ending != "" {
		text += ", last run " + ending
	}
	return text
}

// Partial reports whether p runs without a container that should run: one that waits, as after a
// crash, or that failed. A container that completed is done.
func (p *Pod) Partial() (partial Partial, ok bool) {
	if p.Phase != Running || !p.Deleted.IsZero() {
		return Partial{}, false
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		switch {
		case c.Role != Regular && c.Role != Sidecar:
		case c.State == StateRunning:
			partial.Running, partial.Of = partial.Running+1, partial.Of+1
		case c.State == StateWaiting, c.State == StateTerminated && c.StateReason() != "Completed":
			if partial.Of++; partial.Stopped == nil {
				partial.Stopped = c
			}
		}
	}
	return partial, partial.Running > 0 && partial.Stopped != nil
}

// RunChangedAt returns when the present run of the container began or, if it does not run, when
// the last run ended, in nanoseconds since the Unix epoch by its node's clock. The API server
// cuts times to seconds; it is the end of that second. It is 0 if there was no run, and after
// every reading if the status does not have the time when the last run ended.
func (c *Container) RunChangedAt() int64 {
	if c.EndUnknown() {
		return math.MaxInt64
	}
	at := c.EndedAt()
	if c.State == StateRunning && !c.StartedAt.IsZero() {
		at = c.StartedAt
	}
	if at.IsZero() {
		return 0
	}
	return at.Add(time.Second).UnixNano()
}

// EndUnknown reports whether the container does not run, and the status names the run that ended
// last but not its end. A kubelet that lost a container writes ContainerStatusUnknown, without
// times.
func (c *Container) EndUnknown() bool {
	return (c.State == StateTerminated || c.State == StateWaiting && c.ID != "") && c.EndedAt().IsZero()
}

// RunsChangedAt returns the latest RunChangedAt of the pod's containers.
func (p *Pod) RunsChangedAt() (at int64) {
	for i := range p.Containers {
		at = max(at, p.Containers[i].RunChangedAt())
	}
	return at
}

// Container returns the facts of the container of that name, or nil.
func (p *Pod) Container(name string) *Container {
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

// ContainerByID returns the container whose present run has this ID or, if it does not run, whose last
// run has it; nil if there is none.
func (p *Pod) ContainerByID(id metric.ContainerID) *Container {
	if p == nil || id == "" {
		return nil
	}
	for i := range p.Containers {
		if p.Containers[i].ID == id {
			return &p.Containers[i]
		}
	}
	return nil
}

// HasUID reports whether uid is the pod's UID or, for a static pod, the hash of its manifest.
func (p *Pod) HasUID(uid metric.PodUID) bool {
	return uid == p.UID || uid == p.ReportedUID()
}

// ReportedUID returns the UID that nodes report for the pod: its own or, for a static pod, the
// hash of its manifest.
func (p *Pod) ReportedUID() metric.PodUID {
	if p.ConfigHash != nil {
		return *p.ConfigHash
	}
	return p.UID
}

// NewConfigHash returns a pointer to hash; nil if it is empty.
func NewConfigHash(hash metric.PodUID) *metric.PodUID {
	if hash == "" {
		return nil
	}
	return new(hash)
}

// CoresOf returns how many CPUs the node of b has by the API server, else by the source; 0 if
// neither reports it.
func (f *Facts) CoresOf(b *metric.Batch) float64 {
	if cores := f.Node(b.Node).Cores(); cores > 0 {
		return cores
	}
	return b.Cores
}

// noFacts are the facts without a cluster.
var noFacts = &Facts{}

// orNone returns f, or noFacts if f is nil.
func (f *Facts) orNone() *Facts {
	if f == nil {
		return noFacts
	}
	return f
}

// Node returns the facts of a node, or nil.
func (f *Facts) Node(name metric.NodeName) *Node { return f.orNone().nodes.get(name) }

// Nodes returns how many nodes are known.
func (f *Facts) Nodes() int { return f.orNone().nodes.n }

// LeftOutNodes returns how many nodes of the cluster are not among the facts because it has too many.
func (f *Facts) LeftOutNodes() int { return f.orNone().leftOut }

// EachNode calls do for every node, in no order, until do returns false.
func (f *Facts) EachNode(do func(*Node) bool) {
	f.orNone().nodes.each(func(_ metric.NodeName, n *Node) bool { return do(n) })
}

// Pod returns the facts of a pod, or nil.
func (f *Facts) Pod(ref metric.PodRef) *Pod {
	return f.orNone().pods.get(ref.Namespace).orNone().get(ref.Name)
}

// EachPod calls do for every pod, bound to a node or not, in no order, until do returns false.
func (f *Facts) EachPod(do func(*Pod) bool) {
	f.orNone().pods.each(func(_ metric.Namespace, in *NamespacePods) bool {
		return in.each(func(_ metric.PodName, p *Pod) bool { return do(p) })
	})
}

// PodsOn returns the pods bound to a node. The slice must not be changed. It is the same slice
// as long as PodsGeneration is the same.
func (f *Facts) PodsOn(node metric.NodeName) []*Pod { return f.on(node).pods }

// on returns the pods bound to a node, with their generation.
func (f *Facts) on(node metric.NodeName) nodePods {
	if on := f.orNone().byNode.get(node); on != nil {
		return *on
	}
	return nodePods{}
}

// PodsByUID returns the pods of a node by the UIDs that the node reports for them.
func (f *Facts) PodsByUID(node metric.NodeName) map[metric.PodUID]*Pod {
	on := f.PodsOn(node)
	pods := make(map[metric.PodUID]*Pod, len(on))
	for _, p := range on {
		if uid := p.ReportedUID(); uid != "" {
			pods[uid] = p
		}
	}
	return pods
}

// PodsGeneration returns the generation of PodsOn: Facts with the same generation have
// the same pods on the node, unchanged. It is 0 if there are none.
func (f *Facts) PodsGeneration(node metric.NodeName) uint64 { return f.on(node).generation }

// EachNodesPods calls do for every node with bound pods, with these pods, in no order, until do
// returns false. The slice is that of PodsOn.
func (f *Facts) EachNodesPods(do func(metric.NodeName, []*Pod) bool) {
	f.orNone().byNode.each(func(node metric.NodeName, on *nodePods) bool { return do(node, on.pods) })
}

// PodsIn returns the pods of a namespace, bound to a node or not, in no order.
func (f *Facts) PodsIn(namespace metric.Namespace) (pods []*Pod) {
	in := f.Namespace(namespace).orNone()
	pods = make([]*Pod, 0, in.n)
	in.each(func(_ metric.PodName, p *Pod) bool { pods = append(pods, p); return true })
	return pods
}

// Namespace returns the pods of a namespace, bound to a node or not; nil if there are none.
func (f *Facts) Namespace(namespace metric.Namespace) *NamespacePods {
	return f.orNone().pods.get(namespace)
}

// Pods returns how many pods are known.
func (f *Facts) Pods() (n int) {
	f.orNone().pods.each(func(_ metric.Namespace, in *NamespacePods) bool { n += in.n; return true })
	return n
}

// FactsChange is a set of changes to Facts.
type FactsChange struct {
	Synced bool
	At     time.Time
	Nodes  []*Node // new or changed
	Pods   []*Pod  // new or changed
	// GoneNodes and GonePods were deleted. A pod in Pods replaces an old one of the same name
	// and another UID. The old one need not be in GonePods.
	GoneNodes []metric.NodeName
	GonePods  []metric.PodRef
	// LeftOutNodes is how many nodes there are that the facts do not have.
	LeftOutNodes int
}

// With returns facts with the change applied; f itself does not change. Both share what did not
// change, so a change costs little however many pods there are. f may be nil.
func (f *Facts) With(c FactsChange) *Facts {
	next := *f.orNone()
	n := &next
	n.Synced, n.At, n.leftOut, n.generation = c.Synced, c.At, c.LeftOutNodes, nextGeneration()
	nodes := map[metric.NodeName]*Node{} // nil: gone
	for _, name := range c.GoneNodes {
		nodes[name] = nil
	}
	for _, node := range c.Nodes {
		nodes[node.Name] = node
	}
	n.nodes = n.nodes.with(nodes)
	if len(c.Pods)+len(c.GonePods) > 0 {
		n.changePods(c)
	}
	return n
}

// changePods applies the pods of c to f, which is not shared yet.
func (f *Facts) changePods(c FactsChange) {
	changes := map[metric.Namespace]map[metric.PodName]*Pod{} // nil: gone
	addChange := func(ref metric.PodRef, p *Pod) {
		if changes[ref.Namespace] == nil {
			changes[ref.Namespace] = map[metric.PodName]*Pod{}
		}
		changes[ref.Namespace][ref.Name] = p
	}
	for _, ref := range c.GonePods {
		addChange(ref, nil)
	}
	for _, p := range c.Pods {
		addChange(p.PodRef, p)
	}

	namespaces := map[metric.Namespace]*NamespacePods{}
	coming := map[metric.NodeName][]*Pod{} // new and changed pods of each node that changes
	for namespace, changed := range changes {
		old := f.pods.get(namespace).orNone()
		for name, p := range changed {
			if replaced := old.get(name); replaced != nil && replaced.Node != "" {
				if _, ok := coming[replaced.Node]; !ok {
					coming[replaced.Node] = nil // the node loses a pod, even if it gets none
				}
			}
			if p != nil && p.Node != "" {
				coming[p.Node] = append(coming[p.Node], p)
			}
		}
		namespaces[namespace] = nil
		if pods := old.with(changed); pods.n > 0 {
			namespaces[namespace] = &NamespacePods{pods}
		}
	}
	f.pods = f.pods.with(namespaces)

	f.changeNodePods(coming, func(p *Pod) bool {
		_, changed := changes[p.Namespace][p.Name]
		return changed
	})
}

// changeNodePods replaces the changed pods of the nodes in coming with the pods there.
func (f *Facts) changeNodePods(coming map[metric.NodeName][]*Pod, isChanged func(*Pod) bool) {
	byNode := map[metric.NodeName]*nodePods{}
	for node, pods := range coming {
		all := slices.DeleteFunc(slices.Clone(f.PodsOn(node)), isChanged)
		byNode[node] = nil
		if all = append(all, pods...); len(all) > 0 {
			byNode[node] = &nodePods{all, f.generation}
		}
	}
	f.byNode = f.byNode.with(byNode)
}
