package usage

import (
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Resource is what a list is of. It lies at weirdev.Path, or there at
// namespaces/NAMESPACE.
type Resource string

// The resources.
const (
	Nodes      Resource = "nodes"
	Pods       Resource = "pods"
	Containers Resource = "containers"
	// Cgroups are all cgroups of the machines: those that belong to no pod, and
	// those of pods and containers whose path the source knows.
	Cgroups Resource = "cgroups"
)

// Resources returns every resource, the widest first.
func Resources() []Resource { return []Resource{Nodes, Pods, Containers, Cgroups} }

// ParseResource returns the resource of that name, and whether there is one.
func ParseResource(name string) (Resource, bool) {
	for _, r := range Resources() {
		if string(r) == name {
			return r, true
		}
	}
	return "", false
}

// Kind returns what one item of r is called.
func (r Resource) Kind() string {
	switch r {
	case Nodes:
		return "NodeUsage"
	case Pods:
		return "PodUsage"
	case Containers:
		return "ContainerUsage"
	default:
		return "CgroupUsage"
	}
}

// Namespaced reports whether items of r belong to namespaces, so that r has a path
// in each.
func (r Resource) Namespaced() bool { return r == Pods || r == Containers }

// List is an answer.
type List struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"` // "PodUsageList"
	Resource   Resource `json:"resource"`
	Items      []Item   `json:"items"`
}

// Item is what one node, pod, container or cgroup uses. Names that do not apply
// are empty, numbers that are not known are absent.
type Item struct {
	Node      metric.NodeName   `json:"node,omitempty"`
	Namespace metric.Namespace  `json:"namespace,omitempty"`
	Pod       metric.PodName    `json:"pod,omitempty"`
	Container string            `json:"container,omitempty"`
	Cgroup    metric.CgroupPath `json:"cgroup,omitempty"`
	// Started is when the instance that was measured began.
	Started time.Time `json:"started,omitzero"`
	// Restarts is what the API server counts for the container, or for all of
	// the pod's together.
	Restarts *int32 `json:"restarts,omitempty"`

	CPU    *CPUUsage    `json:"cpu,omitempty"`
	Memory *MemoryUsage `json:"memory,omitempty"`
	// Metrics holds what else was asked for, by the catalogue's name and in the
	// catalogue's unit (docs/metrics.md).
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Reasons say why a group has no number, or what must be known about the
	// one it has.
	Reasons []GroupReason `json:"reasons,omitempty"`
}

// CPUUsage is CPUUsage time used in each second of the window that ends at Time.
type CPUUsage struct {
	Nanocores int64     `json:"nanocores"`
	Time      time.Time `json:"time"`
	// WindowSeconds is how long the window was; 0 if the node did not say.
	WindowSeconds float64 `json:"windowSeconds"`
	// LastKnown says that the last read had no number and this is the last known value.
	LastKnown bool `json:"lastKnown,omitempty"`
}

// MemoryUsage is memory in use less the inactive page cache, at Time.
type MemoryUsage struct {
	WorkingSetBytes int64     `json:"workingSetBytes"`
	Time            time.Time `json:"time"`
	// LastKnown says that the last read had no number and this is the last known value.
	LastKnown bool `json:"lastKnown,omitempty"`
}

// GroupReason is what became of a group of metrics that was not plainly measured.
type GroupReason struct {
	Group  string `json:"group"`  // "cpu", "memory", "network", ...
	Reason string `json:"reason"` // one of docs/reasons.md
	// Message says the same in a sentence, with the evidence.
	Message string `json:"message"`
	// Since is when the reason began to hold.
	Since time.Time `json:"since,omitzero"`
	// Due is when it may next change; zero if nothing is foreseen.
	Due time.Time `json:"due,omitzero"`
}
