package resize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// NodePart is a part of a node whose usage decides what its kubelet should reserve.
type NodePart string

// The parts of a node.
const (
	WholeNode   NodePart = "node"
	PodsPart    NodePart = "pods" // all pods together
	KubeletPart NodePart = "kubelet"
	RuntimePart NodePart = "runtime"
)

// PartCgroup is a cgroup that is a part of a node.
type PartCgroup struct {
	// Pattern is the name that a kubelet gives the cgroup, or its path, in which a leading * stands for any
	// path.
	Pattern string
	Part    NodePart
}

// PartCgroups returns the cgroups that parts of nodes can have. If a node has several of one part, the first
// counts: one service may run inside another's cgroup.
func PartCgroups() []PartCgroup {
	return []PartCgroup{
		{"pods", PodsPart}, {"kubelet", KubeletPart}, {"runtime", RuntimePart}, // of /stats/summary
		{"*/kubepods", PodsPart}, {"*/kubepods.slice", PodsPart}, {"*/kubelet-kubepods.slice", PodsPart},
		{"*/kubelet.service", KubeletPart}, {"/kubelet", KubeletPart},
		{"*/k3s.service", KubeletPart}, {"*/k3s-agent.service", KubeletPart},
		{"*/rke2-server.service", KubeletPart}, {"*/rke2-agent.service", KubeletPart},
		{"*/containerd.service", RuntimePart}, {"*/crio.service", RuntimePart}, {"*/docker.service", RuntimePart},
	}
}

// match reports whether a cgroup's name or path fits the pattern.
func (c PartCgroup) match(name string) bool {
	suffix, anywhere := strings.CutPrefix(c.Pattern, "*")
	return name == suffix || anywhere && strings.HasSuffix(name, suffix)
}

// NodeReadings are the readings of the parts of nodes. The zero value has none.
type NodeReadings struct{ series map[nodeSeries]rankedPoints }

type nodeSeries struct {
	node     string
	part     NodePart
	resource Resource
}

type rankedPoints struct {
	rank   int // the cgroup's index in PartCgroups
	points []UsagePoint
}

// Add adds the readings of a cgroup of a node, in order of time; of the whole node if cgroup is empty. It
// ignores a cgroup that is not a part of a node.
func (n *NodeReadings) Add(node, cgroup string, r Resource, points []UsagePoint) {
	part, rank := WholeNode, 0
	if cgroup != "" {
		all := PartCgroups()
		rank = slices.IndexFunc(all, func(c PartCgroup) bool { return c.match(cgroup) })
		if rank < 0 {
			return
		}
		part = all[rank].Part
	}
	k := nodeSeries{node, part, r}
	if earlier, ok := n.series[k]; len(points) == 0 || ok && earlier.rank <= rank {
		return
	}
	if n.series == nil {
		n.series = map[nodeSeries]rankedPoints{}
	}
	n.series[k] = rankedPoints{rank, ValidPoints(points)}
}

// Of returns the function that NodeUsage.Points is for a node.
func (n *NodeReadings) Of(node string) func(NodePart, Resource) []UsagePoint {
	return func(part NodePart, r Resource) []UsagePoint { return n.series[nodeSeries{node, part, r}].points }
}

// NodeUsage is a node with what its parts used.
type NodeUsage struct {
	Name string
	// Capacity is without preallocated huge pages, which no pod gets as memory.
	Capacity, Allocatable Amounts
	Requested             Amounts // by the pods on the node together
	// Points returns the usage of a part, in order of time; none if it was not measured.
	Points func(NodePart, Resource) []UsagePoint
}

// NewNodeUsage returns a node of the API server with the requests of those of the pods that are on it.
func NewNodeUsage(n *corev1.Node, pods []*PodResources, readings *NodeReadings) NodeUsage {
	u := NodeUsage{Name: n.Name, Capacity: amounts(n.Status.Capacity), Allocatable: amounts(n.Status.Allocatable), Points: readings.Of(n.Name)}
	for name, q := range n.Status.Capacity {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			u.Capacity.Memory.Value -= q.Value()
		}
	}
	for _, p := range pods {
		if p.Node == n.Name {
			own := Reserved(p)
			for _, r := range Resources() {
				*u.Requested.of(r) = Of(u.Requested.Get(r).Value + own.Get(r).Value + p.Overhead.Get(r).Value)
			}
		}
	}
	return u
}

// ReservedGroup is the proposal for nodes that can share one kubelet configuration.
type ReservedGroup struct {
	Nodes []ReservedNode `json:"nodes"` // sorted by name
	// Values are kube-reserved and system-reserved, each of CPU and memory.
	Values []ReservedValue `json:"values"`
	// Sum is the sum of the values and, for memory, of the hard eviction threshold. It is nil if system-reserved
	// is unknown; if kube-reserved is, it is part of system-reserved.
	Sum *Freed `json:"sum,omitempty"`
}

// The fields of a kubelet's configuration.
const (
	KubeReserved   = "kube-reserved"
	SystemReserved = "system-reserved"
)

// ReservedValue is one reserved value.
type ReservedValue struct {
	Field    string   `json:"field"`
	Resource Resource `json:"resource"`
	// Used is the usage on the node where it is highest. It is nil, like Proposed, if no node was measured.
	Used     *UsageFigure       `json:"used,omitempty"`
	Node     string             `json:"node,omitempty"`
	Proposed *resource.Quantity `json:"proposed,omitempty"`
}

// ReservedNode is what a proposal changes on a node.
type ReservedNode struct {
	Name string `json:"name"`
	// Now is what is reserved: kube-reserved, system-reserved and the hard eviction threshold together.
	Now         Freed `json:"reservedNow"`
	Allocatable Freed `json:"allocatable"`
	Requested   Freed `json:"requested"` // by the pods on the node together
	// After is what would be allocatable; nil without a sum.
	After *Freed `json:"allocatableAfter,omitempty"`
	// Over are the resources of which the pods request more than would be allocatable.
	Over []Resource `json:"over,omitempty"`
	// NotMeasured are the parts without readings of CPU or of memory.
	NotMeasured []NodePart `json:"notMeasured,omitempty"`
}

// The steps to which reserved values are rounded up, in millicores and bytes.
const (
	reservedCPUStep    = 10
	reservedMemoryStep = 16 * mebibyte
)

// capacityTolerance is by how much the memory of machines of one type differs, as a share: the kernel
// keeps a little of it for itself, and not the same on each.
const capacityTolerance = 0.02

// GroupNodes returns the nodes in groups of the same capacity, the smallest first.
func GroupNodes(nodes []NodeUsage) (groups [][]NodeUsage) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b NodeUsage) int {
		return cmp.Or(cmp.Compare(a.Capacity.CPU.Value, b.Capacity.CPU.Value), cmp.Compare(a.Capacity.Memory.Value, b.Capacity.Memory.Value), cmp.Compare(a.Name, b.Name))
	})
	for i := range nodes {
		n := len(groups) - 1
		if n < 0 || groups[n][0].Capacity.CPU != nodes[i].Capacity.CPU ||
			float64(nodes[i].Capacity.Memory.Value) > float64(groups[n][0].Capacity.Memory.Value)*(1+capacityTolerance) {
			groups = append(groups, nil)
			n++
		}
		groups[n] = append(groups[n], nodes[i])
	}
	return groups
}

// Reserve returns the proposal for a group of nodes: the usage of the node where it is highest, with the
// percentile and the headroom of o. kube-reserved is for the kubelet and the runtime, system-reserved for all
// else that is outside pods. evictionHard is the kubelets' hard eviction threshold for memory, in bytes.
func Reserve(nodes []NodeUsage, o Options, evictionHard int64) *ReservedGroup {
	g := &ReservedGroup{}
	for _, field := range []string{KubeReserved, SystemReserved} {
		for _, r := range Resources() {
			v := ReservedValue{Field: field, Resource: r}
			for i := range nodes {
				f, _ := summarize(r, &o, []PodUsage{{Points: nodes[i].outsidePods(field, r)}})
				if f == nil || v.Used != nil && f.Value.Cmp(v.Used.Value) <= 0 {
					continue
				}
				f.Pods, f.LongestSeconds = 0, 0
				v.Used, v.Node = f, nodes[i].Name
			}
			if v.Used != nil {
				v.Proposed = Quantity(r, reservedFor(r, quantityValue(r, &v.Used.Value), o.aim(r)))
			}
			g.Values = append(g.Values, v)
		}
	}
	sum := Amounts{Memory: Of(evictionHard)}
	known := true
	for _, v := range g.Values {
		if v.Proposed == nil {
			known = known && v.Field == KubeReserved // then the other value is for both
		} else {
			*sum.of(v.Resource) = Of(sum.Get(v.Resource).Value + quantityValue(v.Resource, v.Proposed))
		}
	}
	if known {
		g.Sum = sum.freed()
	}
	for i := range nodes {
		g.Nodes = append(g.Nodes, nodes[i].change(sum, known))
	}
	slices.SortFunc(g.Nodes, func(a, b ReservedNode) int { return cmp.Compare(a.Name, b.Name) })
	return g
}

// reservedFor returns the value that covers a usage, in millicores or bytes.
func reservedFor(r Resource, used int64, aim *Aim) int64 {
	step := int64(reservedCPUStep)
	if r == Memory {
		step = reservedMemoryStep
	}
	return max(roundUp(int64(math.Ceil(float64(used)*(1+aim.Headroom)-1e-4)), step), roundUp(aim.Floor, step))
}

func (a Amounts) freed() *Freed {
	return &Freed{*Quantity(CPU, a.CPU.Value), *Quantity(Memory, a.Memory.Value)}
}

// change returns what the proposal with this sum changes on n. It changes nothing if it is not known.
func (n *NodeUsage) change(sum Amounts, known bool) ReservedNode {
	c := ReservedNode{Name: n.Name, Now: *n.Capacity.minus(n.Allocatable).freed(), Allocatable: *n.Allocatable.freed(), Requested: *n.Requested.freed()}
	if after := n.Capacity.minus(sum); known {
		c.After = after.freed()
		for _, r := range Resources() {
			if n.Requested.Get(r).Value > after.Get(r).Value {
				c.Over = append(c.Over, r)
			}
		}
	}
	for _, part := range []NodePart{WholeNode, PodsPart, KubeletPart, RuntimePart} {
		if len(n.Points(part, CPU)) == 0 || len(n.Points(part, Memory)) == 0 {
			c.NotMeasured = append(c.NotMeasured, part)
		}
	}
	return c
}

// outsidePods returns the usage that a field is for, in cores or bytes. A kubelet or runtime that was not
// measured is part of what system-reserved is for.
func (n *NodeUsage) outsidePods(field string, r Resource) []UsagePoint {
	kubelet, runtime := n.Points(KubeletPart, r), n.Points(RuntimePart, r)
	if field == KubeReserved {
		if len(kubelet) == 0 {
			kubelet, runtime = runtime, nil
		}
		return combine(kubelet, 1, runtime)
	}
	pods := n.Points(PodsPart, r)
	if len(pods) == 0 {
		return nil // the pods' usage would be taken for the system's
	}
	return combine(n.Points(WholeNode, r), -1, pods, kubelet, runtime)
}

// maxApart is how far apart the times of readings of two cgroups of one node may be, that count as one
// time.
const maxApart = time.Minute

// combine returns the points of base plus sign times the others at the same time, at least 0. Points are in order of time. Others without
// any points count as zero. A point for which one of the others has none is left out.
func combine(base []UsagePoint, sign float64, others ...[]UsagePoint) (sums []UsagePoint) {
next:
	for _, p := range base {
		for _, other := range others {
			if len(other) == 0 {
				continue
			}
			q := nearest(other, p)
			if apart := q.At.Sub(p.At); apart > maxApart || apart < -maxApart {
				continue next
			}
			p.Value += sign * q.Value
		}
		p.Value = max(0, p.Value)
		sums = append(sums, p)
	}
	return sums
}

// nearest returns the point whose time is nearest to that of p. Points are sorted by time and not empty.
func nearest(points []UsagePoint, p UsagePoint) UsagePoint {
	i, _ := slices.BinarySearchFunc(points, p, func(a, b UsagePoint) int { return a.At.Compare(b.At) })
	if i == len(points) || i > 0 && p.At.Sub(points[i-1].At) < points[i].At.Sub(p.At) {
		i--
	}
	return points[i]
}

// KubeletConfiguration returns the proposal as a fragment of a kubelet's configuration, as YAML. Unknown values
// are left out.
func (g *ReservedGroup) KubeletConfiguration() string {
	text, field := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", ""
	for _, v := range g.Values {
		if v.Proposed == nil {
			continue
		}
		if v.Field != field {
			field = v.Field
			text += map[string]string{KubeReserved: "kubeReserved", SystemReserved: "systemReserved"}[field] + ":\n"
		}
		text += fmt.Sprintf("  %s: %s\n", v.Resource, v.Proposed)
	}
	return text
}
