package explain

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Explanation is all there is to say of one node, pod or container.
type Explanation struct {
	Kind      string           `json:"kind"` // "node", "pod" or "container"
	Node      metric.NodeName  `json:"node,omitempty"`
	Namespace metric.Namespace `json:"namespace,omitempty"`
	Pod       metric.PodName   `json:"pod,omitempty"`
	Container string           `json:"container,omitempty"`
	// At is the moment of the answer, from which Next counts.
	At time.Time `json:"at"`
	// Summary is the answer in one or two sentences.
	Summary string `json:"summary"`
	// Known is what the API server says; nil if it says nothing.
	Known *Known `json:"known,omitempty"`
	// Findings are what became of each group of metrics: of CPU and memory
	// always, of another where it has numbers or a reason.
	Findings []Finding `json:"findings"`
	// Duplicates are the instances with this name that were rejected.
	Duplicates []Duplicate `json:"duplicates,omitempty"`
	// Containers are those of a pod, in the order of its spec.
	Containers []Explanation `json:"containers,omitempty"`
	// Reads are the states of reading the node, one for each source.
	Reads []Read `json:"reads,omitempty"`
	// Autoscalers are the HorizontalPodAutoscalers that scale by a pod, as
	// namespace/name, where weir watches them.
	Autoscalers []string `json:"autoscalers,omitempty"`
}

// Known is what the API server says of a pod, container or node. Names that do not
// apply are empty.
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
	// AsOf is when the API server last answered.
	AsOf time.Time `json:"asOf,omitzero"`
}

// Finding is what became of one group of metrics.
type Finding struct {
	Group  string `json:"group"`  // "cpu", "memory", ...
	Reason string `json:"reason"` // one of docs/reasons.md; "Measured" where all is well
	Served bool   `json:"served"`
	// Container is, of a pod, the container that keeps it from being served;
	// empty if none does.
	Container string `json:"container,omitempty"`
	// Value is the number served, in words: "250m over 12.4s", "180Mi".
	Value string `json:"value,omitempty"`
	// Number is the same for machines: cores, or bytes.
	Number *float64 `json:"number,omitempty"`
	// Time is when the number was read, by the node's clock.
	Time time.Time `json:"time,omitzero"`
	// LastKnown says that the last read brought no number and an earlier one is served.
	LastKnown bool `json:"lastKnown,omitempty"`
	// Message says the reason in a sentence, with the evidence in it.
	Message string `json:"message,omitempty"`
	// OtherGroup says that the container lacks another group, not this one: a pod is served
	// whole or not at all.
	OtherGroup bool `json:"otherGroup,omitempty"`
	// Rule is the rule that decided, as processors/identity/README.md names it.
	Rule string `json:"rule,omitempty"`
	// Evidence are the values and times it rests on, one a line.
	Evidence []string `json:"evidence,omitempty"`
	// Since is when the reason began to hold; Due when it may next change.
	Since time.Time `json:"since,omitzero"`
	Due   time.Time `json:"due,omitzero"`
	// Next says what happens by itself: "a second reading is due in 9s".
	Next string `json:"next,omitempty"`
	// Advice says what a person can do; empty if nothing is to be done.
	Advice string `json:"advice,omitempty"`
	// Severity is "none", "temporary" or "broken" (metric.Severity).
	Severity string `json:"severity,omitempty"`
}

// Duplicate is an instance with an entity's name that was rejected.
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

// Read is how one source of a node is being read.
type Read struct {
	Source      string    `json:"source"`
	LastRead    time.Time `json:"lastRead,omitzero"`
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	Due         time.Time `json:"due,omitzero"` // the next read
	Reason      string    `json:"reason,omitempty"`
	Error       string    `json:"error,omitempty"` // only in what is said of the node itself
}

// MissingReport is everything that is missing in a cluster or a namespace.
type MissingReport struct {
	Namespace metric.Namespace `json:"namespace,omitempty"` // empty for the whole cluster
	At        time.Time        `json:"at"`
	Summary   string           `json:"summary"`
	Nodes     Tally            `json:"nodes,omitzero"` // of a cluster
	Pods      Tally            `json:"pods"`
	// Causes are why something is missing, the most harmful first.
	Causes []MissingCause `json:"causes"`
	// Idle are why there is nothing to measure of pods that autoscalers may wait
	// for all the same, in that order; those that have finished are only counted.
	Idle []MissingCause `json:"idle,omitempty"`
}

// Tally counts what should have CPU and memory, and what has.
type Tally struct {
	Expected int `json:"expected"`
	Served   int `json:"served"`
	// Doubtful are those of the served whose instance was chosen among several.
	Doubtful int `json:"doubtful,omitempty"`
	// Idle are those that should have none: pods that wait or have finished.
	Idle int `json:"idle,omitempty"`
}

// MissingCause is one reason for which something is missing or in doubt.
type MissingCause struct {
	Reason   string `json:"reason"`
	Severity string `json:"severity"`
	// Why is, of the idle, what the API server says besides: "ErrImagePull".
	Why string `json:"why,omitempty"`
	// Node is where, if the cause is one node's.
	Node    metric.NodeName `json:"node,omitempty"`
	Message string          `json:"message"`
	Next    string          `json:"next,omitempty"`
	Advice  string          `json:"advice,omitempty"`
	Since   time.Time       `json:"since,omitzero"` // the longest
	// Pods and Nodes are how many have no number because of it.
	Pods  int `json:"pods"`
	Nodes int `json:"nodes,omitempty"`
	// Names are some of them: "shop/web-1", "shop/web-1/app", "node/n1".
	Names []string `json:"names"`
	// Autoscalers are the HorizontalPodAutoscalers among whose pods they are.
	Autoscalers []string `json:"autoscalers,omitempty"`
}
