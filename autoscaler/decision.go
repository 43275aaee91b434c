package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
)

// Decision describes what to do with a target, with every step that led to it.
type Decision struct {
	Object types.NamespacedName
	At     time.Time
	// Current is the count that the target requests, Desired the count that it should have. They are
	// equal if there is no decision. If the scale cannot be read, Current is the last known count.
	Current, Desired int32
	// Rescale is set if Desired must be written. Err may be set, too: then some metrics failed, and
	// the others did not lower the count.
	Rescale bool
	// RescaleReason is the reason of a rescale, in the words of Kubernetes' event.
	RescaleReason string
	// Err is the reason why there is no decision, or the error of a metric that failed.
	Err error
	// Metrics has one entry for each of Spec.Metrics; nil if no metric was read. Chosen is the index
	// of the metric that decided; -1 if none did.
	Metrics []MetricDecision
	Chosen  int
	// Steps lead from the metrics' largest proposal to Desired, in order.
	Steps []DerivationStep
	// Memory is the memory for the next decision if nothing is written; see Completion.
	Memory Memory

	statusDraft // for Conclude
}

// MetricDecision is the count that one metric requires, and how it was computed.
type MetricDecision struct {
	// Index is the metric's index in Spec.Metrics. Name is "cpu", "cpu of container app",
	// "http_requests" or "queue_length".
	Index int
	Type  autoscalingv2.MetricSourceType
	Name  string
	// Proposal is the count that the metric requires; 0 if Err is set.
	Proposal int32
	Err      error
	// Reason is the reason of the condition for Err: FailedGetResourceMetric, ...
	Reason string

	// Target and Usage are the values that are compared. They are in thousandths. If Percent is set,
	// Target is a percentage of the requests, Utilization is compared with it, and Usage is the
	// average in thousandths. Total is the value of an Object or External metric; if its target is an
	// average, Usage is the share of one replica.
	Target      int64
	Percent     bool
	Usage       int64
	Utilization int32
	Total       int64
	// Ratio is usage divided by target, over the Count pods that are counted. If Recounted is set,
	// pods without a number got an assumed usage that damps the change (ClassifiedPod.Assumed), and
	// RecountedRatio is the ratio over RecountedPods pods. For a metric that is divided by the
	// replicas in the target's status, Count is that number of replicas. For a metric without pods
	// Count is 0.
	Ratio          float64
	Count          int
	Recounted      bool
	RecountedRatio float64
	RecountedPods  int
	// Outcome describes how the count follows from the ratio.
	Outcome RatioOutcome
	// ToleranceDown and ToleranceUp are the tolerances that were applied.
	ToleranceDown, ToleranceUp float64
	// Pods are the target's pods, sorted by name, and then the samples of pods that the target does
	// not have. It is nil for metrics that read no pods. It is set even if Err is set; pods without a
	// number are then Missing.
	Pods []ClassifiedPod
	// At is the time of the measurement.
	At time.Time
	// AnsweredBy is that of the Reading.
	AnsweredBy string
}

// RatioOutcome describes how a metric's count follows from its ratio.
type RatioOutcome uint8

// The outcomes.
const (
	OutcomeNone     RatioOutcome = iota // there was an error
	Scaled                              // the ratio times the pods, rounded up
	WithinTolerance                     // the ratio is close to 1: the current count
	WouldReverse                        // with the pods without a number the direction would reverse: the current count
	FromZero                            // no pods: the ratio itself, rounded up
)

// ClassifiedPod describes how one pod was counted.
type ClassifiedPod struct {
	Pod    string
	Class  PodClass
	Reason ClassReason
	// Usage, End and Window are the pod's sample, set with HasSample. End is in nanoseconds since the
	// Unix epoch; 0 if it is not known. It is not a time.Time, because that contains a pointer and
	// there may be many pods.
	HasSample  bool
	HasAssumed bool
	Usage      int64
	End        int64
	Window     time.Duration
	// Request is the request that the utilization is a share of, in thousandths.
	Request int64
	// Assumed is the usage that the recount assumed for the pod, set with HasAssumed.
	Assumed int64
}

// At returns End as a time; zero if it is not known.
func (p *ClassifiedPod) At() time.Time {
	if p.End == 0 {
		return time.Time{}
	}
	return time.Unix(0, p.End)
}

// PodClass reports whether and how a pod is counted.
type PodClass uint8

// The classes.
const (
	Counted     PodClass = iota // its sample is used; it is a ready pod
	Unready                     // its sample is not used; assumed to use nothing when scaling up
	Missing                     // it has no sample; its assumed usage damps the change
	Ignored                     // not part of the calculation
	NotInTarget                 // a sample of a pod that the target does not have
)

// ClassReason is the reason why a pod is in its class.
type ClassReason uint8

// The reasons.
const (
	ReasonReady          ClassReason = iota // counted: ready
	ReasonTerminating                       // ignored: it is being deleted
	ReasonFailed                            // ignored: its phase is Failed
	ReasonPending                           // unready: its phase is Pending
	ReasonNoSample                          // missing: the metrics API does not return it
	ReasonNoCondition                       // unready: it has no Ready condition or no start time
	ReasonStarting                          // unready: in its CPU initialization period and not ready
	ReasonWindowTooEarly                    // unready: in its CPU initialization period, and the window began before it was ready
	ReasonNeverReady                        // unready: it was not ready in its first moments, and not since
	ReasonNotRunning                        // not counted by Object and External metrics: not Running
	ReasonNotReady                          // not counted by Object and External metrics: not Ready
	ReasonNotInTarget                       // the target does not own the pod
)

// DerivationStep is one step from the largest proposal of the metrics to the desired count.
type DerivationStep struct {
	Kind StepKind
	// From is the count before the step, To the count after it.
	From, To int32
	// Limit is the bound that the step compared with, if it has one. For a stabilization it is the
	// recommendation that decided.
	Limit int32
	// Window is the stabilization window or the policy's period. At is the time of the recommendation
	// that decided, and Policy the policy that decided.
	Window time.Duration
	At     time.Time
	Policy *autoscalingv2.HPAScalingPolicy
	// Added and Removed are the numbers of replicas that were added and removed within the policy's
	// period.
	Added, Removed int32
}

// StepKind is the kind of a step.
type StepKind uint8

// The kinds of steps. Decision.Steps has each step that was taken, even if it changed
// nothing.
const (
	StepDisabled      StepKind = iota // the target has zero replicas and is not scaled
	StepAboveMax                      // the current count is above maxReplicas; no metric is read
	StepBelowMin                      // the current count is below minReplicas; no metric is read
	StepPropose                       // the largest of the metrics' proposals
	StepStabilizeDown                 // the highest recommendation of the window
	StepStabilizeUp                   // the lowest recommendation of the window
	StepPolicyUp                      // what the policies of scaling up allow
	StepPolicyDown                    // what the policies of scaling down allow
	StepDoubling                      // without a behavior: at most twice the current count, or 4
	StepMax                           // maxReplicas
	StepMin                           // minReplicas
	StepLeaveZero                     // at least minReplicas when leaving zero
)

// Event is an Event that the decision requires, in Kubernetes' words.
type Event struct {
	Type, Reason, Message string
}

// Completion has the status, memory and Events after a decision was carried out.
type Completion struct {
	Status autoscalingv2.HorizontalPodAutoscalerStatus
	Memory Memory
	Events []Event
	Err    error
}

// The names in transcripts and JSON. Each list is complete.
var (
	outcomeNames     = [...]string{"None", "Scaled", "WithinTolerance", "WouldReverse", "FromZero"}
	classNames       = [...]string{"Counted", "Unready", "Missing", "Ignored", "NotInTarget"}
	classReasonNames = [...]string{"Ready", "Terminating", "Failed", "Pending", "NoSample", "NoCondition", "Starting",
		"WindowTooEarly", "NeverReady", "NotRunning", "NotReady", "NotInTarget"}
	stepKindNames = [...]string{"Disabled", "AboveMax", "BelowMin", "Propose", "StabilizeDown", "StabilizeUp",
		"PolicyUp", "PolicyDown", "Doubling", "Max", "Min", "LeaveZero"}
)

func (o RatioOutcome) String() string { return outcomeNames[o] }
func (c PodClass) String() string     { return classNames[c] }
func (c ClassReason) String() string  { return classReasonNames[c] }
func (k StepKind) String() string     { return stepKindNames[k] }
