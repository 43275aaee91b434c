package document

import "time"

// EvictionReport is the report on evictions of a node: each signal with its thresholds, which pod
// would be evicted for it and why, the recent actions, and what triggers a reading. Figures are in
// the unit beside them, times are RFC 3339 in UTC, durations are in seconds. A field that is nil or
// absent is not known, which differs from zero.
type EvictionReport struct {
	Node string `json:"node"`
	// Mode is off, observe, evict or kill.
	Mode  string    `json:"mode"`
	State NodeState `json:"state"`
	// Summary is the answer in a sentence.
	Summary string `json:"summary"`
	// At is when the report was made, ReadAt when the figures were read, and DecidedAt when the
	// decision was made. Both are zero before the first round.
	At        time.Time `json:"at"`
	ReadAt    time.Time `json:"readAt,omitzero"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	// WokenBy is what woke the guard for that round. DecidedAfterSeconds is the time from then
	// to the decision.
	WokenBy             string  `json:"wokenBy,omitempty"`
	DecidedAfterSeconds float64 `json:"decidedAfterSeconds,omitempty"`
	// Outcome is the result of the decision: NoneInForce, Evict, ... (eviction.DecisionOutcome). Error
	// is why there is no decision. ReadError is what could not be read; the decision was made
	// without it.
	Outcome   string `json:"outcome,omitempty"`
	Error     string `json:"error,omitempty"`
	ReadError string `json:"readError,omitempty"`
	// Signals are those that have a threshold, in the order in which they are acted on.
	Signals []Signal `json:"signals"`
	// Reclaims: what a signal has in ReclaimsFirst is removed before a pod is evicted, by weir,
	// or in mode observe by the kubelet.
	Reclaims bool `json:"reclaims,omitempty"`
	// Exceeded are the pods over a limit of local storage.
	Exceeded []ExceededLimit `json:"exceeded,omitempty"`
	// Conditions are those that were met at least once. Admission follows from those that are
	// reported; it is nil before the first decision.
	Conditions []Condition `json:"conditions,omitempty"`
	Admission  *Admission  `json:"admission,omitempty"`
	// Actions are the recent actions, done or only observed, newest first.
	Actions []Action `json:"actions,omitempty"`
	// Watches are the notices that the kernel gives, Unwatched those that it refused. A timer
	// also starts a round after MaxIntervalSeconds at the latest, and disks and process ids are
	// read every PollSeconds; 0 for none.
	Watches            []Watch  `json:"watches,omitempty"`
	Unwatched          []string `json:"unwatched,omitempty"`
	MaxIntervalSeconds float64  `json:"maxIntervalSeconds,omitempty"`
	PollSeconds        float64  `json:"pollSeconds,omitempty"`
	// Warnings are problems with the thresholds, for example compared with the kubelet's.
	Warnings []string `json:"warnings,omitempty"`
}

// NodeState is the state of a node.
type NodeState string

// The states.
const (
	Off          NodeState = "Off"          // the node is not read
	Starting     NodeState = "Starting"     // the first round is not done
	NoThresholds NodeState = "NoThresholds" // there is no threshold
	NoData       NodeState = "NoData"       // there are no figures to decide on
	Normal       NodeState = "Normal"       // no threshold is met
	Pressure     NodeState = "Pressure"     // a threshold is met, and no pod is evicted yet
	Evicting     NodeState = "Evicting"     // a pod is evicted, or would be in another mode
)

// Unit is what a figure counts.
type Unit string

// The units.
const (
	Bytes     Unit = "bytes"
	Inodes    Unit = "inodes"
	Processes Unit = "processes"
	Cores     Unit = "cores"
	Percent   Unit = "percent" // of the time
)

// Signal is something that the node may run out of.
type Signal struct {
	Name string `json:"name"` // "memory.available"
	// Stall: the figure is the share of the time in which tasks wait, and more is worse. The
	// figure of any other signal is what is left, and less is worse.
	Stall bool `json:"stall,omitempty"`
	Unit  Unit `json:"unit"` // of Value, Capacity and the thresholds
	// Value is the figure, of Capacity, measured at MeasuredAt; a stall has no capacity.
	Value      *float64  `json:"value,omitempty"`
	Capacity   *float64  `json:"capacity,omitempty"`
	MeasuredAt time.Time `json:"measuredAt,omitzero"`
	// Doubt is why the figure is missing or cannot be right. No pod is evicted for it then.
	Doubt      string      `json:"doubt,omitempty"`
	Thresholds []Threshold `json:"thresholds"`
	// ReclaimsFirst is what the node removes before it evicts a pod: "container", "image".
	ReclaimsFirst []string `json:"reclaimsFirst,omitempty"`
	// Ranking is the order of eviction; nil for a signal that no pod is evicted for, and if
	// nothing was read.
	Ranking *Ranking `json:"ranking,omitempty"`
}

// Threshold is a threshold, and how far the signal is from it.
type Threshold struct {
	Text string `json:"text"` // as in a flag: "memory.available<100Mi"
	Hard bool   `json:"hard"`
	// Derived: it is not configured, but copied from the file system that containerfs is on.
	Derived bool           `json:"derived,omitempty"`
	State   ThresholdState `json:"state"`
	// Limit is what the figure must be below to meet it (of a stall: above), and Goal what
	// it must reach to end it once it is in force.
	Limit *float64 `json:"limit,omitempty"`
	Goal  *float64 `json:"goal,omitempty"`
	// Distance is how far the figure is from the limit; zero or less if the threshold is met.
	// DistancePercent is the same in percent of the capacity; for a stall both are equal.
	Distance        *float64 `json:"distance,omitempty"`
	DistancePercent *float64 `json:"distancePercent,omitempty"`
	// GraceSeconds is how long it must be met, RemainingSeconds the rest of that time. Since is
	// when it was first met, without a break since.
	GraceSeconds     float64   `json:"graceSeconds,omitempty"`
	RemainingSeconds float64   `json:"remainingSeconds,omitempty"`
	Since            time.Time `json:"since,omitzero"`
	// Acting: the last decision acted on it.
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
	Unknown     ThresholdState = "Unknown"     // there is no figure, or it cannot be right
)

// Ranking is the order of eviction for a signal.
type Ranking struct {
	// Unit is the unit of the pods' figures. For a stall of memory that is bytes.
	Unit Unit `json:"unit"`
	// Next is the pod that would be evicted, "namespace/name"; empty if none can be.
	Next string `json:"next,omitempty"`
	// Message names that pod, and says why it is before the following one; or why no pod can be
	// evicted.
	Message string `json:"message"`
	// Pods are all pods of the node, in the order of eviction.
	Pods []RankedPod `json:"pods"`
}

// RankedPod is a pod with the keys that order evictions.
type RankedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// OverRequest: it uses more than it requests. It is not a key for process ids.
	OverRequest bool  `json:"overRequest"`
	Priority    int32 `json:"priority"`
	// Usage is what it uses. OverRequest compares Usage with Request. Excess is the last key:
	// usage minus request; for inodes, as in the kubelet, inodes in use minus the bytes of
	// ephemeral storage requested. They are nil if not known. For process ids there is only Usage.
	Usage   *float64 `json:"usage,omitempty"`
	Request *float64 `json:"request,omitempty"`
	Excess  *float64 `json:"excess,omitempty"`
	// BeforeNextBy is the key that puts it before the next pod: NoStats, Over, Priority, Excess,
	// Processes or Name; None for the last pod.
	BeforeNextBy string `json:"beforeNextBy"`
	// Skipped is why it is skipped: Critical, Doubt, Self or Blocked; empty if it is not.
	// Message says the same for people.
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
	// Skipped is why it is not evicted: Critical, Self or Blocked.
	Skipped string `json:"skipped,omitempty"`
	Message string `json:"message"`
}

// Condition is a node condition that follows from the thresholds.
type Condition struct {
	Type     string    `json:"type"` // MemoryPressure
	Reported bool      `json:"reported"`
	MetAt    time.Time `json:"metAt"`
	// Until is when it ends, if no threshold is met again before.
	Until   time.Time `json:"until,omitzero"`
	Message string    `json:"message"`
}

// Admission says which new pods a kubelet with these conditions would admit.
type Admission struct {
	BestEffort bool   `json:"bestEffort"` // pods that request nothing
	Tolerating bool   `json:"tolerating"` // pods that request nothing and tolerate memory pressure
	Requesting bool   `json:"requesting"` // pods that request something
	Critical   bool   `json:"critical"`   // static pods, and pods of the system's priority classes
	Message    string `json:"message"`
}

// Action is the result of one eviction or collection.
type Action struct {
	// At is when it was done. If it was repeated, At is the last time and Since the first.
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
	// Budget is the PodDisruptionBudget that blocks it. NotBefore is the earliest time of the
	// next attempt.
	Budget    string    `json:"budget,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Removed: the pod is gone, after WaitedSeconds.
	Removed       bool    `json:"removed,omitempty"`
	WaitedSeconds float64 `json:"waitedSeconds,omitempty"`
	// WokenBy is what woke the guard. DecidedAfterSeconds is the time from then to the decision.
	WokenBy             string  `json:"wokenBy,omitempty"`
	DecidedAfterSeconds float64 `json:"decidedAfterSeconds,omitempty"`
	Message             string  `json:"message"`
}

// Watch is a notice that the kernel was asked for.
type Watch struct {
	// Kind is Threshold, Trigger or Events.
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Bytes is the figure of a Threshold.
	Bytes   int64  `json:"bytes,omitempty"`
	Message string `json:"message"`
}
