package document

import "time"

// EvictionReport is how a node stands: each signal with its thresholds, who would go for it and
// why, what was done lately, and what wakes the guard. Figures are in the unit beside
// them, times RFC 3339 in UTC, lengths of time in seconds. What is nil or absent is not
// known, which is not zero.
type EvictionReport struct {
	Node string `json:"node"`
	// Mode is off, observe, evict or kill.
	Mode  string    `json:"mode"`
	State NodeState `json:"state"`
	// Summary is the answer in a sentence.
	Summary string `json:"summary"`
	// At is when the report was made; ReadAt when the figures were read, and DecidedAt
	// when was decided on them: zero before the first round.
	At        time.Time `json:"at"`
	ReadAt    time.Time `json:"readAt,omitzero"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	// WokenBy is what woke the guard for that round, and DecidedAfterSeconds how long it was from
	// that to the decision.
	WokenBy             string  `json:"wokenBy,omitempty"`
	DecidedAfterSeconds float64 `json:"decidedAfterSeconds,omitempty"`
	// Outcome is what the decision came to: Calm, Evict, ... (eviction.Outcome), and Error
	// why there was none. Unread is what could not be read, and was done without.
	Outcome   string `json:"outcome,omitempty"`
	Error     string `json:"error,omitempty"`
	ReadError string `json:"readError,omitempty"`
	// Signals are those that have a threshold, in the order in which they are acted on.
	Signals []Signal `json:"signals"`
	// Reclaims says that what a signal has First is removed before any pod: by weir, or in
	// mode observe by the kubelet.
	Reclaims bool `json:"reclaims,omitempty"`
	// Exceeded are the pods over a limit of local storage.
	Exceeded []ExceededLimit `json:"exceeded,omitempty"`
	// Conditions are those that were ever met, and Admission is what follows from
	// those that are reported; nil before the first decision.
	Conditions []Condition `json:"conditions,omitempty"`
	Admission  *Admission  `json:"admission,omitempty"`
	// Actions are what was done lately, or would have been, newest first.
	Actions []Action `json:"actions,omitempty"`
	// Watches are what wakes the guard, and Unwatched what the kernel refused. There
	// is a timer besides, every MaxIntervalSeconds at the latest, and a look at disks and process ids
	// every PollSeconds; 0 for none.
	Watches            []Watch  `json:"watches,omitempty"`
	Unwatched          []string `json:"unwatched,omitempty"`
	MaxIntervalSeconds float64  `json:"maxIntervalSeconds,omitempty"`
	PollSeconds        float64  `json:"pollSeconds,omitempty"`
	// Warnings are what is wrong with how this guard is set up, as beside the kubelet.
	Warnings []string `json:"warnings,omitempty"`
}

// NodeState is how a node stands, in a word.
type NodeState string

// The states.
const (
	Off          NodeState = "Off"          // nothing is looked at
	Starting     NodeState = "Starting"     // the first round is not done
	NoThresholds NodeState = "NoThresholds" // there is no threshold
	NoData       NodeState = "NoData"       // there are no figures to decide on
	Normal       NodeState = "Normal"       // no threshold is met
	Pressure     NodeState = "Pressure"     // a threshold is met, and nobody goes for it yet
	Evicting     NodeState = "Evicting"     // somebody goes, or would in another mode
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
	// Stall says that it is a share of the time in which tasks wait: more is worse.
	// Of all others there is something left: less is worse.
	Stall bool `json:"stall,omitempty"`
	Unit  Unit `json:"unit"` // of Value, Capacity and the thresholds
	// Value is the figure, of Capacity, measured at MeasuredAt; a stall has no capacity.
	Value      *float64  `json:"value,omitempty"`
	Capacity   *float64  `json:"capacity,omitempty"`
	MeasuredAt time.Time `json:"measuredAt,omitzero"`
	// Doubt is why the figure is missing or cannot be right. Nobody goes for it then.
	Doubt      string      `json:"doubt,omitempty"`
	Thresholds []Threshold `json:"thresholds"`
	// ReclaimsFirst is what the node gives up before it gives up a pod: "container", "image".
	ReclaimsFirst []string `json:"reclaimsFirst,omitempty"`
	// Ranking is who would go; nil for a signal that nobody is evicted for, and
	// where nothing was read.
	Ranking *Ranking `json:"ranking,omitempty"`
}

// Threshold is a threshold, and how far the signal is from it.
type Threshold struct {
	Text string `json:"text"` // as one would write it: "memory.available<100Mi"
	Hard bool   `json:"hard"`
	// Derived says that nobody wrote it: it is that of the file system which
	// containerfs lies on.
	Derived bool `json:"derived,omitempty"`
	// State is Clear, Grace, InForce, Held or Unknown.
	State ThresholdState `json:"state"`
	// Limit is what the figure must be below to meet it (of a stall: above), and Goal what
	// it must reach to end it once it is in force.
	Limit *float64 `json:"limit,omitempty"`
	Goal  *float64 `json:"goal,omitempty"`
	// Distance is how much more must go until it is met: zero or less once it is.
	// DistancePercent is the same of the capacity; a stall is in percent already.
	Distance        *float64 `json:"distance,omitempty"`
	DistancePercent *float64 `json:"distancePercent,omitempty"`
	// GraceSeconds is how long it must be met, RemainingSeconds what is left of that; Since is
	// when it was met, without a break.
	GraceSeconds     float64   `json:"graceSeconds,omitempty"`
	RemainingSeconds float64   `json:"remainingSeconds,omitempty"`
	Since            time.Time `json:"since,omitzero"`
	// Acting says that the last decision acted on it.
	Acting bool `json:"acting,omitempty"`
	// Message says all that in words.
	Message string `json:"message"`
}

// ThresholdState is how a threshold stands.
type ThresholdState string

// The states of a threshold.
const (
	NotMet      ThresholdState = "NotMet"      // not met
	GracePeriod ThresholdState = "GracePeriod" // met, within its grace period
	InForce     ThresholdState = "InForce"     // met for its grace period
	Reclaiming  ThresholdState = "Reclaiming"  // was in force, and is not past its minimum reclaim
	Unknown     ThresholdState = "Unknown"     // there is no figure, or one in doubt
)

// Ranking is who would be evicted for a signal.
type Ranking struct {
	// Unit is that of the pods' figures: a stall of memory ranks them by bytes.
	Unit Unit `json:"unit"`
	// Next is who would go first, "namespace/name"; empty if nobody may.
	Next string `json:"next,omitempty"`
	// Message says who, and why before the next one; or why nobody.
	Message string `json:"message"`
	// Pods are all pods of the node, first to go first.
	Pods []RankedPod `json:"pods"`
}

// RankedPod is a pod with the keys of its place in a ranking.
type RankedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// OverRequest says that it uses more than it requests: no key for process ids.
	OverRequest bool  `json:"overRequest"`
	Priority    int32 `json:"priority"`
	// Usage is what it uses, Request what OverRequest compares that with, and Excess what is
	// compared last: usage less request, but inodes in use less the bytes of ephemeral
	// storage requested, as the kubelet has it. They are nil where they are not known, and
	// for process ids there is only Usage.
	Usage   *float64 `json:"usage,omitempty"`
	Request *float64 `json:"request,omitempty"`
	Excess  *float64 `json:"excess,omitempty"`
	// BeforeNextBy is the key that puts it before the one that follows: NoStats, OverRequest,
	// Priority, Excess, Processes, Name; None of the last.
	BeforeNextBy string `json:"beforeNextBy"`
	// Skipped is why it is passed over, if it is: Critical, Doubt, Self or Blocked; Message says
	// it in words.
	Skipped string `json:"skipped,omitempty"`
	Message string `json:"message,omitempty"`
}

// String is namespace/name.
func (p *RankedPod) String() string { return p.Namespace + "/" + p.Name }

// ExceededLimit is a limit of local storage that a pod exceeds.
type ExceededLimit struct {
	Pod string `json:"pod"` // namespace/name
	// Kind is emptydirfs.limit, ephemeralpodfs.limit or ephemeralcontainerfs.limit, Name
	// that of the volume or the container.
	Kind       string  `json:"kind"`
	Name       string  `json:"name,omitempty"`
	UsedBytes  float64 `json:"usedBytes"`
	LimitBytes float64 `json:"limitBytes"`
	// Skipped is why it stays all the same: Critical, Self or Blocked.
	Skipped string `json:"skipped,omitempty"`
	Message string `json:"message"`
}

// Condition is a node condition that follows from the thresholds.
type Condition struct {
	Type     string    `json:"type"` // MemoryPressure
	Reported bool      `json:"reported"`
	MetAt    time.Time `json:"metAt"`
	// Until is when it is reported no more, if nothing meets it by then.
	Until   time.Time `json:"until,omitzero"`
	Message string    `json:"message"`
}

// Admission is which new pods a kubelet with these conditions would take.
type Admission struct {
	BestEffort bool   `json:"bestEffort"` // those that request nothing
	Tolerating bool   `json:"tolerating"` // those, if they tolerate memory pressure
	Requesting bool   `json:"requesting"` // those that request something
	Critical   bool   `json:"critical"`   // static ones, and those of the system's classes
	Message    string `json:"message"`
}

// Action is what became of one eviction or collection.
type Action struct {
	// At is when; of one that was repeated, the last time, and Since is the first.
	At    time.Time `json:"at"`
	Since time.Time `json:"since,omitzero"`
	// Result is Observed, Evicted, Killed, Blocked, Deferred, ... (execute.Result).
	Result string `json:"result"`
	Mode   string `json:"mode"`
	Pod    string `json:"pod,omitempty"` // namespace/name
	Signal string `json:"signal,omitempty"`
	Hard   bool   `json:"hard,omitempty"`
	// Collection is set in place of Pod where something else was given up.
	Collection   string `json:"collection,omitempty"`
	GraceSeconds int64  `json:"graceSeconds,omitempty"`
	// Budget is the PodDisruptionBudget in the way, NotBefore when it is tried again.
	Budget    string    `json:"budget,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Removed says that the pod is gone, after WaitedSeconds.
	Removed       bool    `json:"removed,omitempty"`
	WaitedSeconds float64 `json:"waitedSeconds,omitempty"`
	// WokenBy is what woke the guard, and DecidedAfterSeconds how long it was from that to
	// the decision.
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
