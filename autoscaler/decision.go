package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
)

// Decision is what to do with a target, with every step that led to it.
type Decision struct {
	Object types.NamespacedName
	At     time.Time
	// Current is the count that the target asks for, Desired the count that it should have. They
	// are equal if there is no decision. If the scale cannot be read, Current is the last known
	// count.
	Current, Desired int32
	// Rescale is set if Desired must be written. Err may be set too: some metrics failed, and the
	// others do not lower the count.
	Rescale bool
	// RescaleReason is the reason of a rescale, in the words of Kubernetes' event.
	RescaleReason string
	// Err is why there is no decision, or which metric failed.
	Err error
	// Metrics has one entry for each of Spec.Metrics; nil if no metric was read. Chosen is the
	// index of the metric that decided, -1 if none.
	Metrics []MetricDecision
	Chosen  int
	// Steps lead from the metrics' largest proposal to Desired, in order.
	Steps []DerivationStep
	// Memory is the memory for the next decision if nothing is written; see Completion.
	Memory Memory

	statusInputs // what Done and Status need
}

// MetricDecision is the count that one metric asks for, and how it was computed.
type MetricDecision struct {
	// Index is the metric's index in Spec.Metrics. Name is "cpu", "cpu of container app",
	// "http_requests" or "queue_length".
	Index int
	Type  autoscalingv2.MetricSourceType
	Name  string
	// Proposal is the count that the metric asks for; 0 if Err is set.
	Proposal int32
	Err      error
	// Reason is the condition's reason for Err: FailedGetResourceMetric, ...
	Reason string

	// Target and Usage are compared. They are thousandths; with Percent, Target is a percentage
	// of the requests, Utilization is compared with it, and Usage is the average in thousandths.
	// Total is the value of an Object or External metric; if its target is an average, Usage is
	// the share of one replica.
	Target      int64
	Percent     bool
	Usage       int64
	Utilization int32
	Total       int64
	// Ratio is usage to target over the Count pods that count. If Recounted is set, pods without
	// a number got an assumed usage that damps the change (ClassifiedPod.Assumed), and
	// RecountedRatio is the ratio over RecountedPods pods. For a metric that is divided by the replicas of the
	// target's status, Count is that number; for a metric of no pods it is 0.
	Ratio          float64
	Count          int
	Recounted      bool
	RecountedRatio float64
	RecountedPods  int
	// Outcome is how the ratio became a count.
	Outcome RatioOutcome
	// ToleranceDown and ToleranceUp are the tolerances that were applied.
	ToleranceDown, ToleranceUp float64
	// Pods are the target's pods by name, then the samples of pods that the target does not have.
	// Nil for metrics that read no pods. Pods is set even if Err is; pods without a number are
	// then Missing.
	Pods []ClassifiedPod
	// At is when the metric was measured.
	At time.Time
}

// RatioOutcome is how a metric's ratio became a count.
type RatioOutcome uint8

// The outcomes.
const (
	OutcomeNone     RatioOutcome = iota // there was an error
	Scaled                              // the ratio times the pods, rounded up
	WithinTolerance                     // the ratio is close to 1: the current count
	WouldReverse                        // with the pods without a number the direction would reverse: the current count
	FromZero                            // no pods: the ratio itself, rounded up
)

// ClassifiedPod is how one pod was counted.
type ClassifiedPod struct {
	Pod    string
	Class  PodClass
	Reason ClassReason
	// Usage, End and Window are the pod's sample, set with HasSample. End is in nanoseconds since
	// the Unix epoch, 0 if unknown. It is not a time.Time because that contains a pointer, and there
	// may be many pods.
	HasSample  bool
	HasAssumed bool
	Usage      int64
	End        int64
	Window     time.Duration
	// Request is what the utilization is a share of, in thousandths.
	Request int64
	// Assumed is the usage that the recount took for the pod, set with HasAssumed.
	Assumed int64
}

// At returns End as a time; zero if there is none.
func (p *ClassifiedPod) At() time.Time {
	if p.End == 0 {
		return time.Time{}
	}
	return time.Unix(0, p.End)
}

// PodClass is whether and how a pod counts.
type PodClass uint8

// The classes.
const (
	Counted     PodClass = iota // its sample is used; it is a ready pod
	Unready                     // its sample is not used; assumed to use nothing when scaling up
	Missing                     // it has no sample; its assumed usage damps the change
	Ignored                     // not part of the calculation
	NotInTarget                 // a sample of a pod that the target does not have
)

// ClassReason is why a pod is in its class.
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

// DerivationStep is one step from the metrics' largest proposal to the desired count.
type DerivationStep struct {
	Kind StepKind
	// From is the count before the step, To the count after it.
	From, To int32
	// Limit is the bound that the step compared with, if it has one; in a stabilization, the
	// recommendation that decided.
	Limit int32
	// Window is the stabilization window or the policy's period, At the time of the
	// recommendation that decided, Policy the policy that decided.
	Window time.Duration
	At     time.Time
	Policy *autoscalingv2.HPAScalingPolicy
	// Added and Removed are the replicas changed within the policy's period.
	Added, Removed int32
}

// StepKind names a step.
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

// Event is an event that the decision calls for, in Kubernetes' words.
type Event struct {
	Type, Reason, Message string
}

// Completion is the status, memory and events after a decision was carried out.
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
func (w ClassReason) String() string  { return classReasonNames[w] }
func (k StepKind) String() string     { return stepKindNames[k] }
