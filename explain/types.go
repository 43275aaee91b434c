package explain

import (
	"fmt"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Explanation is the whole answer about one node, pod, container, or cgroup that belongs to no pod.
type Explanation struct {
	Kind      string           `json:"kind"` // "node", "pod", "container" or "cgroup"
	Node      metric.NodeName  `json:"node,omitempty"`
	Namespace metric.Namespace `json:"namespace,omitempty"`
	Pod       metric.PodName   `json:"pod,omitempty"`
	Container string           `json:"container,omitempty"`
	Cgroup    string           `json:"cgroup,omitempty"` // its path, or the name that a kubelet gives it
	// At is the time of the answer. Next counts from it.
	At time.Time `json:"at"`
	// Summary is the answer in one or two sentences.
	Summary string `json:"summary"`
	// Known is what the API server reports, or nil if it reports nothing.
	Known *Known `json:"known,omitempty"`
	// Findings explain each group of metrics: CPU and memory always, another group if it has
	// numbers or a reason.
	Findings []Finding `json:"findings"`
	// Duplicates are the instances with this name that were rejected.
	Duplicates []Duplicate `json:"duplicates,omitempty"`
	// Containers are the explanations of a pod's containers, in the order of its spec.
	Containers []Explanation `json:"containers,omitempty"`
	// Reads are the states of the sources that read the node.
	Reads []Read `json:"reads,omitempty"`
	// Autoscalers scale the pod's workload, if weir watches them: see Explainer.Autoscalers.
	Autoscalers []string `json:"autoscalers,omitempty"`
	// Deaths is what ended in a pod in the last hour: see Explainer.Deaths.
	Deaths string `json:"deaths,omitempty"`
}

// Known is what the API server reports about a pod, container or node. Fields that do not apply are
// empty.
type Known struct {
	UID      metric.PodUID      `json:"uid,omitempty"`
	Phase    cluster.Phase      `json:"phase,omitempty"`
	QoS      string             `json:"qos,omitempty"`
	State    string             `json:"state,omitempty"` // of a container: "waiting", "running", "terminated"; of a node: "ready", "not ready"
	Why      string             `json:"why,omitempty"`   // the state's reason: CrashLoopBackOff
	ID       metric.ContainerID `json:"id,omitempty"`
	Started  time.Time          `json:"started,omitzero"`
	Deleted  time.Time          `json:"deleted,omitzero"`
	Restarts int32              `json:"restarts,omitempty"`
	// Ending is how the last run of a container ended: "OOMKilled, exit code 137".
	Ending string `json:"ending,omitempty"`
	// AsOf is when the API server last answered.
	AsOf time.Time `json:"asOf,omitzero"`
}

// Finding explains one group of metrics.
type Finding struct {
	Group  string `json:"group"`  // "cpu", "memory", ...
	Reason string `json:"reason"` // one of docs/reasons.md; "Measured" if the number is served without doubt
	Served bool   `json:"served"`
	// Container is, for a pod, the container without numbers that keeps it from being served. It
	// is empty if there is none.
	Container string `json:"container,omitempty"`
	// Value is the served number as text: "250m over 12.4s", "180Mi".
	Value string `json:"value,omitempty"`
	// Number is the served number for programs: cores or bytes.
	Number *float64 `json:"number,omitempty"`
	// Time is when the number was read, by weir's clock. The evidence has it by the node's clock, if
	// that differs.
	Time time.Time `json:"time,omitzero"`
	// LastKnown reports that the last read had no number and that an earlier one is served.
	LastKnown bool `json:"lastKnown,omitempty"`
	// Message describes the reason in a sentence, with the evidence.
	Message string `json:"message,omitempty"`
	// OtherGroup reports that the container lacks another group, not this one. A pod is served with
	// all its groups or not at all.
	OtherGroup bool `json:"otherGroup,omitempty"`
	// Rule is the rule that decided, by its name in processors/identity/README.md.
	Rule string `json:"rule,omitempty"`
	// Evidence are the values and times that the answer is based on, one in each line.
	Evidence []string `json:"evidence,omitempty"`
	// Since is when the trouble began. Due is when it may next change.
	Since time.Time `json:"since,omitzero"`
	Due   time.Time `json:"due,omitzero"`
	// BeforeStart reports that the trouble began before weir's start. Since is then when weir first saw it.
	BeforeStart bool `json:"beforeStart,omitempty"`
	// ServedUntil is until when the last known value was served after that; zero if it was not, or if
	// that is unknown.
	ServedUntil time.Time `json:"servedUntil,omitzero"`
	// Next describes what happens by itself: "a second reading is due in 9s".
	Next string `json:"next,omitempty"`
	// Advice describes what a person can do. It is empty if there is nothing to do.
	Advice string `json:"advice,omitempty"`
	// Severity is "none", "temporary" or "broken" (metric.Severity).
	Severity string `json:"severity,omitempty"`
}

// Duplicate is a rejected instance with an entity's name.
type Duplicate struct {
	Node    metric.NodeName    `json:"node,omitempty"`
	UID     metric.PodUID      `json:"uid,omitempty"`
	ID      metric.ContainerID `json:"id,omitempty"`
	Path    metric.CgroupPath  `json:"path,omitempty"`
	Started time.Time          `json:"started,omitzero"`
	Reason  string             `json:"reason"`
	Rule    string             `json:"rule,omitempty"`
	Message string             `json:"message"`
	Since   time.Time          `json:"since,omitzero"`
	Advice  string             `json:"advice,omitempty"`
}

// Read is the state of one source that reads a node.
type Read struct {
	Source      string    `json:"source"`
	LastRead    time.Time `json:"lastRead,omitzero"`
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	Due         time.Time `json:"due,omitzero"` // the next read
	// Seconds is how long the last read took.
	Seconds float64 `json:"seconds,omitempty"`
	// Bytes is how many bytes the last read brought.
	Bytes int `json:"bytes,omitempty"`
	// ClockAheadSeconds is how far the node's clock is ahead of weir's, to about a second; negative
	// if it is behind, 0 for a difference below two seconds.
	ClockAheadSeconds float64 `json:"clockAheadSeconds,omitempty"`
	Reason            string  `json:"reason,omitempty"`
	Error             string  `json:"error,omitempty"` // only in the answer about the node itself
}

// ClockText is by how much the node's clock differs from weir's: "the node's clock is 1m30s ahead
// of weir's". It is empty for a difference that is too small to matter.
func (r *Read) ClockText() string {
	ahead := time.Duration(r.ClockAheadSeconds * float64(time.Second)).Round(time.Second)
	switch {
	case ahead.Abs() < normalError:
		return ""
	case ahead < 0:
		return "the node's clock is " + humanize.Duration(-ahead) + " behind weir's"
	}
	return "the node's clock is " + humanize.Duration(ahead) + " ahead of weir's"
}

// MissingReport is everything that is missing in a cluster, in a namespace or of a workload.
type MissingReport struct {
	Namespace metric.Namespace `json:"namespace,omitempty"` // empty for the whole cluster
	At        time.Time        `json:"at"`
	Summary   string           `json:"summary"`
	Nodes     Tally            `json:"nodes,omitzero"` // only for a cluster
	Pods      Tally            `json:"pods"`
	Cgroups   Tally            `json:"cgroups,omitzero"` // that belong to no pod; only for a cluster
	// Workload is the workload, if the report is about the pods of one.
	Workload *Workload `json:"workload,omitempty"`
	// Causes are the reasons why numbers are missing, the most harmful first.
	Causes []MissingCause `json:"causes"`
	// Partial are the reasons why pods that have numbers run without one of their containers, as after
	// a crash. The numbers are those of the other containers.
	Partial []MissingCause `json:"partial,omitempty"`
	// Idle are the reasons why some pods have nothing to measure, in the same order. Autoscalers
	// may still wait for these pods. Pods that have finished are only counted.
	Idle []MissingCause `json:"idle,omitempty"`
	// AtRisk are nodes that have numbers and may soon have none, or wrong ones, the most urgent first, and
	// NodesAtRisk is how many there are. Only for a cluster.
	AtRisk      []Risk `json:"atRisk,omitempty"`
	NodesAtRisk int    `json:"nodesAtRisk,omitempty"`
	// Receivers are those that accept nothing of what weir sends. Only for a cluster.
	Receivers []Receiver `json:"receivers,omitempty"`
	// Adapters are those that weir passes metrics on for, and that do not answer. Only for a cluster.
	Adapters []Adapter `json:"adapters,omitempty"`
}

// Receiver is the receiver of a sink, and why it accepts nothing.
type Receiver struct {
	Name    string    `json:"name"` // of the sink, with the URL without its secrets
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// ReceiverAdvice describes what to do about a Receiver.
const ReceiverAdvice = "Check the URL and the credentials of this --sink, and read the receiver's log. What it rejects is lost; what it does not answer waits in weir's queue."

// Text describes the receiver at a time: "remotewrite https://example/push has accepted nothing since
// 11:52:48 UTC (12s ago): the receiver answers 401 Unauthorized".
func (r *Receiver) Text(at time.Time) string {
	return fmt.Sprintf("%s has accepted nothing since %s (%s): %s", r.Name, humanize.Clock(r.Since, at), humanize.Ago(r.Since, at), r.Message)
}

// Adapter is another adapter of custom and external metrics, and why its list of metrics cannot be read.
type Adapter Receiver

// AdapterAdvice describes what to do about an Adapter.
const AdapterAdvice = "Look at its pods, and at url or scaler, caFile and bearerTokenFile of its entry in the file of --adapters (docs/adapters.md). HPAs of its metrics keep their replicas until it answers."

// Text describes the adapter at a time: "adapter keda did not answer within 5s (since 11:52:48 UTC, 12s
// ago)".
func (a *Adapter) Text(at time.Time) string {
	return fmt.Sprintf("%s (since %s, %s)", a.Message, humanize.Clock(a.Since, at), humanize.Ago(a.Since, at))
}

// Tally counts the entities that should have CPU and memory, and those that have them.
type Tally struct {
	Expected int `json:"expected"`
	Served   int `json:"served"`
	// Doubtful counts the served entities with an instance that was chosen among several.
	Doubtful int `json:"doubtful,omitempty"`
	// Partial counts the served pods that run without one of their containers.
	Partial int `json:"partial,omitempty"`
	// Idle counts the entities that should have no numbers: pods that wait or have finished.
	Idle int `json:"idle,omitempty"`
}

// MissingCause is one reason why numbers are missing or in doubt.
type MissingCause struct {
	Reason   string `json:"reason"`
	Severity string `json:"severity"`
	// Why is, for idle and partial pods, what the API server reports in addition: "ErrImagePull".
	Why string `json:"why,omitempty"`
	// Node is the node, if the cause belongs to one node.
	Node    metric.NodeName `json:"node,omitempty"`
	Message string          `json:"message"`
	Next    string          `json:"next,omitempty"`
	Advice  string          `json:"advice,omitempty"`
	Since   time.Time       `json:"since,omitzero"` // the earliest
	// BeforeStart is that of a Finding.
	BeforeStart bool `json:"beforeStart,omitempty"`
	// Pods, Nodes and Cgroups are how many have no number because of it.
	Pods    int `json:"pods"`
	Nodes   int `json:"nodes,omitempty"`
	Cgroups int `json:"cgroups,omitempty"`
	// Names are some of them, only nodes if there are nodes: "shop/web-1", "shop/web-1/app", "node/n1", "cgroup /init.scope on n1".
	Names []string `json:"names"`
	// Autoscalers scale the workloads of these pods.
	Autoscalers []string `json:"autoscalers,omitempty"`
}

// Concerned returns how many entities Names has if it has all.
func (c *MissingCause) Concerned() int {
	if c.Nodes > 0 {
		return c.Nodes
	}
	return c.Pods + c.Cgroups
}

// CountText returns how many entities have no number: "1 node and 30 pods".
func (c *MissingCause) CountText() string {
	var counts []string
	for _, k := range []struct {
		n    int
		noun string
	}{{c.Nodes, "node"}, {c.Pods, "pod"}, {c.Cgroups, "cgroup"}} {
		if k.n > 0 {
			counts = append(counts, humanize.Count(k.n, k.noun))
		}
	}
	return humanize.List(counts, 0)
}
