package decisionreport

import "time"

// Report is a decision, told. Quantities are written as Kubernetes writes them
// ("250m", "180Mi"), times as RFC 3339 in UTC, lengths of time as "1m30s".
type Report struct {
	Autoscaler Object    `json:"autoscaler"`
	At         time.Time `json:"at"` // of the decision
	// Mode is "Active", "DryRun" or "Shadow"; empty for an evaluation.
	Mode   string `json:"mode,omitempty"`
	Target string `json:"target,omitempty"` // "Deployment/web"
	// Summary is the answer in a sentence.
	Summary string `json:"summary"`
	// Current is the count the target asks for, Desired the one it should.
	Current int32 `json:"current"`
	Desired int32 `json:"desired"`
	Min     int32 `json:"min,omitempty"`
	Max     int32 `json:"max,omitempty"`
	// Rescale says that Desired is another count than Current, or was to be written
	// all the same; Because is the reason in Kubernetes' words.
	Rescale bool   `json:"rescale"`
	Because string `json:"because,omitempty"`
	// Error is why there is no decision, or why it had to do without a metric;
	// WriteError why the new count could not be written.
	Error      string `json:"error,omitempty"`
	WriteError string `json:"writeError,omitempty"`
	// Metrics are in the order of the specification; none if none was asked for.
	Metrics []Metric `json:"metrics"`
	// Steps lead from what the metrics ask for to Desired, in order.
	Steps []Step `json:"steps"`
	// Missing is what is missing and why, the most harmful first.
	Missing []Cause `json:"missing,omitempty"`
	// Next is what happens by itself, in order of time.
	Next []Next `json:"next,omitempty"`
	// Notes are what else a reader must know, as that nothing was remembered.
	Notes []string `json:"notes,omitempty"`
	// Other is what the controller decided that acts on the object, where weir
	// shadows it.
	Other *Other `json:"other,omitempty"`
}

// Object is what a report is about.
type Object struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Metric is what one metric asks for, and why.
type Metric struct {
	Name string `json:"name"` // "cpu", "cpu of container app", "http_requests"
	Type string `json:"type"` // Resource, ContainerResource, Pods, Object or External
	// Decides says that the count is this metric's.
	Decides bool `json:"decides"`
	// Proposal is the count it asks for; none where Error is set.
	Proposal *int32 `json:"proposal,omitempty"`
	Error    string `json:"error,omitempty"`
	Reason   string `json:"reason,omitempty"` // FailedGetResourceMetric ...
	// Target is "50%" of the request or a quantity, Usage the same of what is used:
	// on average of the pods, or of what the metric describes.
	Target string `json:"target,omitempty"`
	Usage  string `json:"usage,omitempty"`
	// Ratio is usage to target over Pods pods.
	Ratio *float64 `json:"ratio,omitempty"`
	Count int      `json:"count,omitempty"`
	// Recount is the same with the pods that lacked a number.
	Recount *Recount `json:"recount,omitempty"`
	// ToleranceDown and ToleranceUp are how far below and above 1 the ratio may be.
	ToleranceDown float64 `json:"toleranceDown"`
	ToleranceUp   float64 `json:"toleranceUp"`
	// Outcome is "Scaled", "WithinTolerance", "WouldTurn", "FromZero" or "Failed".
	Outcome string `json:"outcome"`
	// Arithmetic is how the count came about, to check by hand.
	Arithmetic string    `json:"arithmetic,omitempty"`
	MeasuredAt time.Time `json:"measuredAt,omitzero"`
	// Pods are how each pod was counted, by name; none for metrics of no pod.
	Pods []Pod `json:"pods,omitempty"`
}

// Recount is a ratio in which pods without a number were given one that holds the
// change back.
type Recount struct {
	Ratio float64 `json:"ratio"`
	Count int     `json:"count"`
	// Arithmetic is how it came about.
	Arithmetic string `json:"arithmetic"`
}

// Pod is how a pod was counted.
type Pod struct {
	Name string `json:"name"`
	// Class is "Counted", "Unready", "Missing", "Ignored" or "Stranger".
	Class   string `json:"class"`
	Usage   string `json:"usage,omitempty"`
	Request string `json:"request,omitempty"`
	// At is the end of the window its usage was measured over.
	At     time.Time `json:"at,omitzero"`
	Window string    `json:"window,omitempty"`
	// Assumed is what was taken for its usage when the ratio was recounted.
	Assumed string `json:"assumed,omitempty"`
	// Why says in words why it is in its class.
	Why     string   `json:"why,omitempty"`
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Step is one step from what the metrics ask for to the desired count.
type Step struct {
	// Kind is "Disabled", "AboveMax", "BelowMin", "Propose", "StabilizeDown",
	// "StabilizeUp", "PolicyUp", "PolicyDown", "Doubling", "Max", "Min" or
	// "LeaveZero".
	Kind string `json:"kind"`
	From int32  `json:"from"`
	To   int32  `json:"to"`
	// Limit is the bound that the step compared with, Window the stabilization
	// window or the policy's period, At when the recommendation that decided was
	// made; each where the step has one.
	Limit   *int32    `json:"limit,omitempty"`
	Window  string    `json:"window,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Policy  string    `json:"policy,omitempty"`
	Message string    `json:"message"`
}

// Cause is one reason for which a metric has no number, or lacks that of some pods.
type Cause struct {
	Metric   string `json:"metric"`
	Reason   string `json:"reason"`
	Severity string `json:"severity"` // "broken", "temporary" or "none"
	Message  string `json:"message"`
	Advice   string `json:"advice,omitempty"`
	// Pods are whom it concerns, by name; none if it concerns no pod.
	Pods []string `json:"pods,omitempty"`
}

// Next is something that happens by itself.
type Next struct {
	At time.Time `json:"at,omitzero"`
	// Replicas is the count there will be if the metrics stay as they are; none
	// where that cannot be told.
	Replicas *int32 `json:"replicas,omitempty"`
	Message  string `json:"message"`
}
