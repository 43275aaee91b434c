package usage

import (
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Resource is the kind of a list. Its path is below weirdev.Path, or below namespaces/NAMESPACE
// there.
type Resource string

// The resources.
const (
	Nodes      Resource = "nodes"
	Pods       Resource = "pods"
	Containers Resource = "containers"
	// Cgroups are all cgroups of the nodes: those that belong to no pod, and those of pods and
	// containers if the source knows their path.
	Cgroups Resource = "cgroups"
)

// Resources returns all resources, the widest first.
func Resources() []Resource { return []Resource{Nodes, Pods, Containers, Cgroups} }

// Kind returns the kind of one item of r: "PodUsage".
func (r Resource) Kind() string {
	return strings.ToUpper(string(r[:1])) + strings.TrimSuffix(string(r[1:]), "s") + "Usage"
}

// Namespaced reports whether items of r belong to namespaces, so that r has a path in each
// namespace.
func (r Resource) Namespaced() bool { return r == Pods || r == Containers }

// List is an answer: the items of one resource.
type List struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"` // "PodUsageList"
	Resource   Resource `json:"resource"`
	Items      []Item   `json:"items"`
}

// Item is the usage of one node, pod, container or cgroup. Names that do not apply are empty, and
// unknown numbers are absent.
type Item struct {
	Node      metric.NodeName   `json:"node,omitempty"`
	Namespace metric.Namespace  `json:"namespace,omitempty"`
	Pod       metric.PodName    `json:"pod,omitempty"`
	Container string            `json:"container,omitempty"`
	Cgroup    metric.CgroupPath `json:"cgroup,omitempty"`
	// Workload is what the pod belongs to, if the API server reports that.
	Workload cluster.Owner `json:"workload,omitzero"`
	// Started is when the measured instance began.
	Started time.Time `json:"started,omitzero"`
	// Restarts is the API server's count for the container, or for all containers of the pod.
	Restarts *int32 `json:"restarts,omitempty"`

	// OOMKills is how often the kernel killed in the pod or container for memory in the last hour, or in all
	// pods of the node, as far as weir knows.
	OOMKills int `json:"oomKills,omitempty"`

	CPU    *CPUUsage    `json:"cpu,omitempty"`
	Memory *MemoryUsage `json:"memory,omitempty"`
	// Metrics holds the further metrics of the request, by their names in the catalogue and in its
	// units (docs/metrics.md).
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// CPUHistory is the CPU in the last readings that had one, in nanocores, the oldest first. It is there
	// if the request asks for it and weir's memory has it.
	CPUHistory []float64 `json:"cpuHistory,omitempty"`
	// Readings are the last readings of a node or cgroup with their times, if the request asks for history.
	Readings *Readings `json:"readings,omitempty"`
	// Pods counts the pods of a workload, which "weir top workloads" adds up.
	Pods *PodCount `json:"pods,omitempty"`
	// Partial is set if a container of the pod should run and does not, as after a crash. The numbers are
	// those of the other containers.
	Partial *Partial `json:"partial,omitempty"`
	// Resize is set if a resize of the pod or container in place is not applied.
	Resize *Resize `json:"resize,omitempty"`
	// AtRisk is why the numbers of a node, or of a pod on it, may soon be missing or wrong, in the words of
	// explain.Risk.
	AtRisk string `json:"atRisk,omitempty"`
	// Reasons explain why a group has no number, or what the reader must know about the number it has.
	Reasons []GroupReason `json:"reasons,omitempty"`
}

// Readings are readings of CPU in nanocores and of the working set in bytes, the oldest first.
type Readings struct {
	CPU    []Reading `json:"cpu,omitempty"`
	Memory []Reading `json:"memory,omitempty"`
}

// Reading is a value at a time.
type Reading struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
}

// PodCount is how many pods of a workload have CPU and memory.
type PodCount struct {
	Measured int `json:"measured"`
	Total    int `json:"total"`
}

// Partial is how many containers of a pod run.
type Partial struct {
	Running    int    `json:"running"`
	Containers int    `json:"containers"` // that should run
	Stopped    string `json:"stopped"`    // the first one that does not
	// Message is the same as text, with what the API server reports: "1 of 2 containers: app does not
	// run, CrashLoopBackOff, last run OOMKilled, exit code 137".
	Message string `json:"message"`
}

// Resize is what a resize in place has not applied.
type Resize struct {
	// State is Deferred, Infeasible, InProgress or Error, by the pod's conditions; Pending before the node has
	// seen the resize.
	State string `json:"state"`
	// Applied are the requests and limits in force that differ from those of the specification.
	Applied []Applied `json:"applied,omitempty"`
	// Message is the same as text: "Deferred: app has CPU request 100m, not 200m".
	Message string `json:"message"`
	// NodeMessage is what the node reports about it.
	NodeMessage string `json:"nodeMessage,omitempty"`
}

// Applied is a request or limit in force that differs from that of the specification.
type Applied struct {
	Container string `json:"container,omitempty"` // empty for the pod itself
	// Metric is the request or limit, by its name in the catalogue and in its units.
	Metric string  `json:"metric"`
	Spec   float64 `json:"spec"`
	// Applied is the value in force, absent for none.
	Applied *float64 `json:"applied,omitempty"`
}

// CPUUsage is the CPU time used in each second of the window that ends at Time.
type CPUUsage struct {
	Nanocores int64     `json:"nanocores"`
	Time      time.Time `json:"time"`
	// WindowSeconds is the length of the window, or 0 if the node did not report it.
	WindowSeconds float64 `json:"windowSeconds"`
	// LastKnown reports that the last read had no number and that this is the last known value.
	LastKnown bool `json:"lastKnown,omitempty"`
}

// MemoryUsage is memory in use minus the inactive page cache, at Time.
type MemoryUsage struct {
	WorkingSetBytes int64     `json:"workingSetBytes"`
	Time            time.Time `json:"time"`
	// LastKnown reports that the last read had no number and that this is the last known value.
	LastKnown bool `json:"lastKnown,omitempty"`
}

// GroupReason explains why a group of metrics is missing or in doubt.
type GroupReason struct {
	Group  string `json:"group"`  // "cpu", "memory", "network", ...
	Reason string `json:"reason"` // one of docs/reasons.md
	// Message is the same as a sentence, with the evidence.
	Message string `json:"message"`
	// Since is the time since when the reason is true.
	Since time.Time `json:"since,omitzero"`
	// Due is when the reason may next change, or zero if that is unknown.
	Due time.Time `json:"due,omitzero"`
}
