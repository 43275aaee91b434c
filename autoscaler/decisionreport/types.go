package decisionreport

import (
	"time"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster/gates"
)

// DecisionReport is the report of a decision. Quantities are Kubernetes quantities ("250m",
// "180Mi"), times are RFC 3339 in UTC, and durations have the form "1m30s".
type DecisionReport struct {
	Autoscaler Object    `json:"autoscaler"`
	At         time.Time `json:"at"` // the time of the decision
	// Mode is "Active", "DryRun" or "Shadow"; empty for an evaluation.
	Mode   string `json:"mode,omitempty"`
	Target string `json:"target,omitempty"` // "Deployment/web"
	// Summary is the decision and its reason in one sentence.
	Summary string `json:"summary"`
	// Current is the count that the target requests, Desired the count that it should have.
	Current int32 `json:"current"`
	Desired int32 `json:"desired"`
	Min     int32 `json:"min,omitempty"`
	Max     int32 `json:"max,omitempty"`
	// Rescale is set if Desired must be written. RescaleReason is the reason in Kubernetes' words.
	Rescale       bool   `json:"rescale"`
	RescaleReason string `json:"rescaleReason,omitempty"`
	// Error is the reason why there is no decision, or the error of a metric. WriteError is the reason
	// why the new count could not be written.
	Error      string `json:"error,omitempty"`
	WriteError string `json:"writeError,omitempty"`
	// Metrics are in the order of the specification; empty if no metric was read.
	Metrics []MetricReport `json:"metrics"`
	// Steps lead from the metrics' largest proposal to Desired, in order.
	Steps []StepReport `json:"steps"`
	// Missing lists what is missing and why, the most severe first.
	Missing []MissingCause `json:"missing,omitempty"`
	// Next lists the changes that need no new metric, in order of time.
	Next []NextChange `json:"next,omitempty"`
	// Notes are additional sentences for the reader, for example that no memory was available.
	Notes []string `json:"notes,omitempty"`
	// OtherController is the decision of the controller that scales the object. It is set if weir
	// shadows the object.
	OtherController *OtherController `json:"otherController,omitempty"`
}

// Object is the autoscaler that a report is about.
type Object struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// MetricReport is the count that one metric requires, and how it was computed.
type MetricReport struct {
	Name string `json:"name"` // "cpu", "cpu of container app", "http_requests"
	Type string `json:"type"` // Resource, ContainerResource, Pods, Object or External
	// Decides is set if this metric's proposal was the largest.
	Decides bool `json:"decides"`
	// Proposal is the count that the metric requires; absent if Error is set.
	Proposal *int32 `json:"proposal,omitempty"`
	Error    string `json:"error,omitempty"`
	Reason   string `json:"reason,omitempty"` // FailedGetResourceMetric ...
	// Target is "50%" of the request, or a quantity. Usage is the current value in the same unit: the
	// average of the pods, or the value of the object.
	Target string `json:"target,omitempty"`
	Usage  string `json:"usage,omitempty"`
	// Ratio is usage divided by target, over Count pods.
	Ratio *float64 `json:"ratio,omitempty"`
	Count int      `json:"count,omitempty"`
	// Recount is the second ratio, with an assumed usage for the pods without a number.
	Recount *Recount `json:"recount,omitempty"`
	// ToleranceDown and ToleranceUp are how far below and above 1 the ratio may be without a
	// change.
	ToleranceDown float64 `json:"toleranceDown"`
	ToleranceUp   float64 `json:"toleranceUp"`
	// Outcome is "Scaled", "WithinTolerance", "WouldReverse", "FromZero" or "Failed".
	Outcome string `json:"outcome"`
	// Arithmetic describes how the count was computed, so that a person can check it.
	Arithmetic string    `json:"arithmetic,omitempty"`
	MeasuredAt time.Time `json:"measuredAt,omitzero"`
	// AnsweredBy is "weir" or "adapter NAME", for metrics that weir routes to other adapters. If Error
	// is set, it is who was asked.
	AnsweredBy string `json:"answeredBy,omitempty"`
	// Pods describes how each pod was counted, sorted by name; empty for metrics that read no pods.
	Pods []PodReport `json:"pods,omitempty"`
}

// Recount is a ratio with an assumed usage for the pods without a number, which damps the change.
type Recount struct {
	Ratio float64 `json:"ratio"`
	Count int     `json:"count"`
	// Arithmetic describes how the ratio was computed.
	Arithmetic string `json:"arithmetic"`
}

// PodReport describes how a pod was counted.
type PodReport struct {
	Name string `json:"name"`
	// Class is "Counted", "Unready", "Missing", "Ignored" or "NotInTarget".
	Class   string `json:"class"`
	Usage   string `json:"usage,omitempty"`
	Request string `json:"request,omitempty"`
	// MeasuredAt is the end of the window of Usage.
	MeasuredAt time.Time `json:"measuredAt,omitzero"`
	Window     string    `json:"window,omitempty"`
	// Assumed is the usage that the recount assumed for the pod.
	Assumed string `json:"assumed,omitempty"`
	// Reason explains why the pod is in its class.
	Reason  string      `json:"reason,omitempty"`
	Verdict *PodVerdict `json:"verdict,omitempty"`
}

// StepReport is one step from the largest proposal of the metrics to the desired count.
type StepReport struct {
	// Kind is "Disabled", "AboveMax", "BelowMin", "Propose", "StabilizeDown",
	// "StabilizeUp", "PolicyUp", "PolicyDown", "Doubling", "Max", "Min" or
	// "LeaveZero".
	Kind string `json:"kind"`
	From int32  `json:"from"`
	To   int32  `json:"to"`
	// Limit is the bound that the step compared with. Window is the stabilization window or the
	// policy's period. At is the time of the recommendation that decided. Each is set only if the step
	// has one.
	Limit   *int32    `json:"limit,omitempty"`
	Window  string    `json:"window,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Policy  string    `json:"policy,omitempty"`
	Message string    `json:"message"`
}

// MissingCause is one reason why a metric, or some of its pods, have no number.
type MissingCause struct {
	Metric   string `json:"metric"`
	Reason   string `json:"reason"`
	Severity string `json:"severity"` // "broken", "temporary" or "none"
	Message  string `json:"message"`
	Advice   string `json:"advice,omitempty"`
	// Pods are the names of the pods; empty if the cause does not concern pods.
	Pods []string `json:"pods,omitempty"`
}

// NextChange is a change that needs no new metric.
type NextChange struct {
	At time.Time `json:"at,omitzero"`
	// Replicas is the count if the metrics stay the same; absent if it cannot be predicted.
	Replicas *int32 `json:"replicas,omitempty"`
	Message  string `json:"message"`
}

// PodVerdict explains why a pod has no number, in the words of package explain.
type PodVerdict struct {
	Reason  string `json:"reason"`  // TooYoung, NodeTimeout ...
	Message string `json:"message"` // with its evidence
	Advice  string `json:"advice,omitempty"`
}

// The modes.
const (
	Active = "Active" // the autoscaler writes what it decides
	DryRun = "DryRun" // the autoscaler reports what it would do
	Shadow = "Shadow" // another controller scales the object; weir only makes its own decision
)

// Context has what a report needs in addition to the decision.
type Context struct {
	Kind string // HorizontalPodAutoscaler or Autoscaler
	Mode string // Active, DryRun or Shadow; empty for an evaluation
	// Input is the input of the decision: specification, pods and settings. It may be nil; the report
	// then has less. ReadMetric is not called.
	Input *autoscaler.Input
	// Verdict returns why a pod has no sample of the metric Spec.Metrics[i]; false if that is not
	// known. It may be nil.
	Verdict func(i int, pod string) (PodVerdict, bool)
	// NoMemory is set if earlier decisions were not available. Stabilization windows and policies then
	// had no effect.
	NoMemory bool
	// Notes are additional sentences for the reader.
	Notes []string
	// Gates are the feature gates of Input.Settings. A note names those that the decision depends on and
	// that are only assumed. It is nil if the settings come from elsewhere.
	Gates *gates.Gates
	// WriteErr is the reason why the new count could not be written; nil if it was written or did not
	// change.
	WriteErr error
	// OtherController is the decision of the other controller, for an object that weir shadows. It is
	// nil if that is not known.
	OtherController *OtherController
}

// OtherController is the decision of another controller about the same object.
type OtherController struct {
	Desired   int32     `json:"desired"`
	ChangedAt time.Time `json:"changedAt,omitzero"` // when it last changed the count
	Agrees    bool      `json:"agrees"`
	// Difference holds when and how the two decisions differ; empty if they agree.
	Difference string `json:"difference,omitempty"`
}
