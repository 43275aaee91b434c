package evictionreport

import (
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// EvictionReport is the report on evictions of a node: each signal with its thresholds, the pod
// that would be evicted for it and why, the recent actions, and what triggers a read. Each figure
// has a field with its unit. Times are RFC 3339 in UTC, durations are in seconds. A field that is
// nil or absent is not known, which is different from zero.
type EvictionReport struct {
	Node string `json:"node"`
	// Mode is observe, evict, kill or request.
	Mode  string    `json:"mode"`
	State NodeState `json:"state"`
	// Summary is the answer in one sentence.
	Summary string `json:"summary"`
	// At is the time of the report, ReadAt the time of the figures, and DecidedAt the time of the
	// decision. ReadAt and DecidedAt are zero before the first round.
	At        time.Time `json:"at"`
	ReadAt    time.Time `json:"readAt,omitzero"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	// WokenBy is what woke the guard for that round. DecidedAfterSeconds is the time from the wake to
	// the decision.
	WokenBy             string  `json:"wokenBy,omitempty"`
	DecidedAfterSeconds float64 `json:"decidedAfterSeconds,omitempty"`
	// Outcome is the result of the decision: NoneInForce, Evict, ... (eviction.DecisionOutcome). Error
	// is the reason if there is no decision. ReadError describes what could not be read; the decision was
	// made without it.
	Outcome   string `json:"outcome,omitempty"`
	Error     string `json:"error,omitempty"`
	ReadError string `json:"readError,omitempty"`
	// Signals are the signals that have a threshold, in the order in which they are acted on.
	Signals []Signal `json:"signals"`
	// Reclaims is set if the node removes what a signal has in ReclaimsFirst before it evicts a pod.
	// weir removes it, or in mode observe the kubelet.
	Reclaims bool `json:"reclaims,omitempty"`
	// Exceeded are the pods that exceed a limit of local storage.
	Exceeded []ExceededLimit `json:"exceeded,omitempty"`
	// Conditions are the conditions that were met at least once. Admission follows from the conditions
	// that are reported; it is nil before the first decision.
	Conditions []Condition `json:"conditions,omitempty"`
	// Contention are the conditions of KEP-5394 that have a threshold. Admission does not depend on
	// them.
	Contention []Contention `json:"contention,omitempty"`
	Admission  *Admission   `json:"admission,omitempty"`
	// Actions are the recent actions, newest first. In mode observe they were not made.
	Actions []Action `json:"actions,omitempty"`
	// Watches are the notices that the kernel gives, and what the agent polls at the pace of memory;
	// Unwatched describes what is not watched. A timer
	// starts a round at least every MaxIntervalSeconds. Disks and process ids are read every
	// PollSeconds; 0 means that they are not polled.
	Watches            []Watch  `json:"watches,omitempty"`
	Unwatched          []string `json:"unwatched,omitempty"`
	MaxIntervalSeconds float64  `json:"maxIntervalSeconds,omitempty"`
	PollSeconds        float64  `json:"pollSeconds,omitempty"`
	// Warnings are problems with the thresholds, for example in comparison with the kubelet's.
	Warnings []string `json:"warnings,omitempty"`
}

// NodeState is the state of a node.
type NodeState string

// The states.
const (
	Starting     NodeState = "Starting"     // the first round is not done
	NoThresholds NodeState = "NoThresholds" // there is no threshold
	NoData       NodeState = "NoData"       // there are no figures to decide on
	Normal       NodeState = "Normal"       // no threshold is met
	Pressure     NodeState = "Pressure"     // a threshold is met, and no pod is evicted yet
	Evicting     NodeState = "Evicting"     // a pod is evicted, or would be evicted in another mode
)

// Unit is the unit of a figure.
type Unit string

// The units.
const (
	Bytes     Unit = "bytes"
	Inodes    Unit = "inodes"
	Processes Unit = "processes"
	Cores     Unit = "cores"
	Percent   Unit = "percent" // percent of the time
)

// Format returns an amount in the unit, for people: "94.2Mi", "1250m", "37", "12.5%".
func (u Unit) Format(v float64) string {
	switch u {
	case Bytes:
		return humanize.Bytes(v)
	case Cores:
		return humanize.Cores(v * 1e9)
	case Percent:
		return humanize.Percent(v / 100)
	}
	return humanize.Decimal(v, 0)
}

// FormatKnown is Format for an amount that may not be known: "–".
func (u Unit) FormatKnown(v *float64) string {
	if v == nil {
		return "–"
	}
	return u.Format(*v)
}

// FormatWithNoun returns the result of Format, followed by the unit's noun if the amount is a
// count: "37 inodes".
func (u Unit) FormatWithNoun(v float64) string {
	switch u {
	case Inodes, Processes:
		return u.Format(v) + " " + string(u)
	}
	return u.Format(v)
}

// Signal is a resource that the node may run out of.
type Signal struct {
	Name string `json:"name"` // "memory.available"
	// Stall is set if the figure is the share of the time in which tasks wait; more is worse. The
	// figure of any other signal is the amount that is available; less is worse.
	Stall bool `json:"stall,omitempty"`
	Unit  Unit `json:"unit"` // the unit of Value, Capacity and the thresholds
	// Value is the available part of Capacity, measured at MeasuredAt. A stall has no capacity.
	Value      *float64  `json:"value,omitempty"`
	Capacity   *float64  `json:"capacity,omitempty"`
	MeasuredAt time.Time `json:"measuredAt,omitzero"`
	// Doubt explains why the figure is missing or cannot be right. In that case no pod is evicted for it.
	Doubt      string      `json:"doubt,omitempty"`
	Thresholds []Threshold `json:"thresholds"`
	// Notes describe what the figure leaves out.
	Notes []string `json:"notes,omitempty"`
	// ReclaimsFirst is what the node removes before it evicts a pod: "container", "image".
	ReclaimsFirst []string `json:"reclaimsFirst,omitempty"`
	// Ranking is the order of eviction. It is nil if no pod is evicted for the signal, and if nothing
	// was read.
	Ranking *Ranking `json:"ranking,omitempty"`
}

// Threshold is a threshold, and how far the signal is from it.
type Threshold struct {
	Text string `json:"text"` // as in a flag: "memory.available<100Mi"
	Hard bool   `json:"hard"`
	// Derived is set if the threshold is not configured, but copied from the file system that
	// containerfs is on.
	Derived bool           `json:"derived,omitempty"`
	State   ThresholdState `json:"state"`
	// Limit is the limit of the figure: the threshold is met below it (for a stall: above it). Goal is
	// the figure that ends the threshold once it is in force.
	Limit *float64 `json:"limit,omitempty"`
	Goal  *float64 `json:"goal,omitempty"`
	// Distance is how far the figure is from the limit; zero or less if the threshold is met.
	// DistancePercent is the same in percent of the capacity. For a stall both are equal.
	Distance        *float64 `json:"distance,omitempty"`
	DistancePercent *float64 `json:"distancePercent,omitempty"`
	// GraceSeconds is how long it must be met, and RemainingSeconds is the rest of that time. Since is
	// the time from which it has been met without a break.
	GraceSeconds     float64   `json:"graceSeconds,omitempty"`
	RemainingSeconds float64   `json:"remainingSeconds,omitempty"`
	Since            time.Time `json:"since,omitzero"`
	// Acting is set if the last decision acted on the threshold.
	Acting bool `json:"acting,omitempty"`
	// Message describes the state for people.
	Message string `json:"message"`
}

// ThresholdState is the state of a threshold.
type ThresholdState string

// The states of a threshold.
const (
	NotMet      ThresholdState = "NotMet"      // not met
	GracePeriod ThresholdState = "GracePeriod" // met, within its grace period
	InForce     ThresholdState = "InForce"     // met for its grace period
	Reclaiming  ThresholdState = "Reclaiming"  // in force and no longer met, but its minimum reclaim is not reached
	Unknown     ThresholdState = "Unknown"     // there is no figure, or the figure cannot be right
)

// Ranking is the order of eviction for a signal.
type Ranking struct {
	// Unit is the unit of the pods' figures. For a stall of memory it is bytes.
	Unit Unit `json:"unit"`
	// Next is the pod that would be evicted, "namespace/name"; empty if none can be.
	Next string `json:"next,omitempty"`
	// Message names that pod, and explains why it comes before the following one; or it explains why no pod
	// can be evicted.
	Message string `json:"message"`
	// Pods are all pods of the node, in the order of eviction.
	Pods []RankedPod `json:"pods"`
}

// RankedPod is a pod with the keys that order evictions.
type RankedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// OverRequest is set if the pod uses more than it requests. It is not a key for process ids.
	OverRequest bool  `json:"overRequest"`
	Priority    int32 `json:"priority"`
	// Usage is the pod's usage. OverRequest compares Usage with Request. Excess is the last key: usage
	// minus request. For inodes it is, as in the kubelet, inodes in use minus the requested bytes of
	// ephemeral storage. They are nil if not known. For process ids there is only Usage.
	Usage   *float64 `json:"usage,omitempty"`
	Request *float64 `json:"request,omitempty"`
	Excess  *float64 `json:"excess,omitempty"`
	// BeforeNextBy is the key that puts the pod before the next one: NoStats, Over, Priority, Excess,
	// Processes or Name; None for the last pod.
	BeforeNextBy string `json:"beforeNextBy"`
	// Skipped is the reason why the pod is skipped: Critical, Doubt, Self or Blocked; empty if it is
	// not skipped. Message is the reason for people.
	Skipped string `json:"skipped,omitempty"`
	Message string `json:"message,omitempty"`
}

// String returns namespace/name.
func (p *RankedPod) String() string { return p.Namespace + "/" + p.Name }

// ExceededLimit is a limit of local storage that a pod exceeds.
type ExceededLimit struct {
	Pod string `json:"pod"` // namespace/name
	// Kind is emptydirfs.limit, ephemeralpodfs.limit or ephemeralcontainerfs.limit. Name is the
	// name of the volume or the container.
	Kind       string  `json:"kind"`
	Name       string  `json:"name,omitempty"`
	UsedBytes  float64 `json:"usedBytes"`
	LimitBytes float64 `json:"limitBytes"`
	// Skipped is the reason why the pod is not evicted: Critical, Self or Blocked.
	Skipped string `json:"skipped,omitempty"`
	Message string `json:"message"`
}

// Condition is a node condition that follows from the thresholds.
type Condition struct {
	Type     string    `json:"type"` // MemoryPressure
	Reported bool      `json:"reported"`
	MetAt    time.Time `json:"metAt"`
	// Until is the time at which the condition ends if no threshold is met again before.
	Until   time.Time `json:"until,omitzero"`
	Message string    `json:"message"`
}

// Contention is a node condition by the stalls of the whole node (KEP-5394).
type Contention struct {
	Type     string `json:"type"` // SystemMemoryContentionPressure
	Reported bool   `json:"reported"`
	// Avg10, Avg60 and Threshold are shares of the time in which some task waits, in percent.
	Avg10     float64 `json:"avg10Percent"`
	Avg60     float64 `json:"avg60Percent"`
	Threshold float64 `json:"thresholdPercent"`
	// Unknown is set if the stalls cannot be read. The figures are then the last known ones.
	Unknown bool   `json:"unknown,omitempty"`
	Message string `json:"message"`
}

// Admission shows which new pods a kubelet with these conditions would admit.
type Admission struct {
	BestEffort bool   `json:"bestEffort"` // pods that request nothing
	Tolerating bool   `json:"tolerating"` // pods that request nothing and tolerate memory pressure
	Requesting bool   `json:"requesting"` // pods that request something
	Critical   bool   `json:"critical"`   // static pods, and pods of the system's priority classes
	Message    string `json:"message"`
}

// Action is the result of one eviction or collection.
type Action struct {
	// At is the time of the action. If the action was repeated, At is the last time and Since the
	// first.
	At    time.Time `json:"at"`
	Since time.Time `json:"since,omitzero"`
	// Result is Observed, Evicted, Killed, Blocked, Deferred, ... (execute.Result).
	Result string `json:"result"`
	Mode   string `json:"mode"`
	Pod    string `json:"pod,omitempty"` // namespace/name
	Signal string `json:"signal,omitempty"`
	Hard   bool   `json:"hard,omitempty"`
	// Collection is set instead of Pod if unused containers or images were removed.
	Collection   string `json:"collection,omitempty"`
	GraceSeconds int64  `json:"graceSeconds,omitempty"`
	// Budget is the PodDisruptionBudget that blocks the eviction. NotBefore is the earliest time of
	// the next attempt.
	Budget    string    `json:"budget,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Removed is set if the pod is gone. WaitedSeconds is the time until then.
	Removed       bool    `json:"removed,omitempty"`
	WaitedSeconds float64 `json:"waitedSeconds,omitempty"`
	// WokenBy is what woke the guard. DecidedAfterSeconds is the time from the wake to the decision.
	WokenBy             string  `json:"wokenBy,omitempty"`
	DecidedAfterSeconds float64 `json:"decidedAfterSeconds,omitempty"`
	Message             string  `json:"message"`
}

// Watch is something that triggers a reading.
type Watch struct {
	// Kind is Trigger for a notice that the kernel was asked to give, and Poll for a working set of
	// memory that the agent polls.
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Bytes is the working set of a Poll above which its threshold is met.
	Bytes   int64  `json:"bytes,omitempty"`
	Message string `json:"message"`
}
