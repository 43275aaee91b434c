package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
)

// Decision is what to do with a target, and the whole way there.
type Decision struct {
	Object types.NamespacedName
	At     time.Time
	// Current is the count the target asks for, Desired the one it should: the same
	// if there is no decision. Where the scale is not known, Current is the one last
	// seen.
	Current, Desired int32
	// Rescale says that Desired is to be written. It may be so although Err is
	// set: some metrics failed, and the others ask for no fewer replicas.
	Rescale bool
	// Because is the reason of a rescale as Kubernetes words it in its event.
	Because string
	// Err is why there is no decision, or why it had to do without a metric.
	Err error
	// Metrics are the derivations, one for each of Spec.Metrics; nil if none was
	// asked for. Chosen is the index of the one that decided, -1 if none.
	Metrics []MetricDecision
	Chosen  int
	// Steps lead from the metrics' proposal to Desired, in order.
	Steps []Step
	// Memory is for the next decision, should nothing be written: see Done.
	Memory Memory

	conclusion // what Done and Status need
}

// MetricDecision is what one metric asks for, and why.
type MetricDecision struct {
	// Index is the metric's place in Spec.Metrics, Type its kind and Name how it is
	// called: "cpu", "cpu of container app", "http_requests", "queue_length".
	Index int
	Type  autoscalingv2.MetricSourceType
	Name  string
	// Proposal is the count it asks for; none if Err is set.
	Proposal int32
	Err      error
	// Reason is the reason of the condition for Err: FailedGetResourceMetric...
	Reason string

	// Target and Usage are compared, in thousandths, or in percent of the requests
	// where Percent is set: Utilization is then what Usage (the average in
	// thousandths) is of Requests.
	// Total is an Object or External metric itself, of which Usage is a replica's
	// share where the target is an average.
	Target      int64
	Percent     bool
	Usage       int64
	Utilization int32
	Total       int64
	// Ratio is usage to target of the pods that count, and Count how many do.
	// Recounted says that pods without a number were given one that holds the
	// change back (PodCase.Assumed), which gave Ratio2 over Count2 pods. A metric
	// shared among the replicas of the target's status counts those; one that looked
	// at no pod counts none.
	Ratio     float64
	Count     int
	Recounted bool
	Ratio2    float64
	Count2    int
	// Outcome is how the count came of the ratio.
	Outcome Outcome
	// Tolerance down and up, as applied.
	ToleranceDown, ToleranceUp float64
	// Pods are the target's pods and how each was counted, by name; then samples
	// of pods the target does not have. Nil for metrics that look at no pod. They are
	// there although Err is set, as far as the pods are known: whoever has no number
	// then is Missing.
	Pods []PodCase
	// At is when the metric was measured.
	At time.Time
}

// Outcome is how a metric's ratio became a count.
type Outcome uint8

// The outcomes.
const (
	OutcomeNone     Outcome = iota // there was an error
	Scaled                         // the ratio times the pods, rounded up
	WithinTolerance                // the ratio is near enough to 1: the current count
	WouldTurn                      // with the pods without a number it would change direction: the current count
	FromZero                       // no pods: the ratio itself, rounded up
)

// PodCase is how a pod was counted.
type PodCase struct {
	Pod   string
	Class Class
	Why   Why
	// Usage, End and Window are its sample, if it has one (HasSample). End is in
	// nanoseconds since the Unix epoch, 0 if nobody told: a time.Time would hold a
	// pointer, and cases are many.
	HasSample  bool
	HasAssumed bool
	Usage      int64
	End        int64
	Window     time.Duration
	// Request is what utilization is measured against, in thousandths.
	Request int64
	// Assumed is what was taken for its usage when the ratio was recounted
	// (HasAssumed).
	Assumed int64
}

// At is End as a time; zero if there is none.
func (p *PodCase) At() time.Time {
	if p.End == 0 {
		return time.Time{}
	}
	return time.Unix(0, p.End)
}

// Class is how a pod counts.
type Class uint8

// The classes.
const (
	Counted  Class = iota // its sample is used, and it is one of the ready pods
	Unready               // its sample is not used; taken to use nothing when scaling up
	Missing               // it has no sample; assumed to hold the change back
	Ignored               // left out altogether
	Stranger              // a sample of no pod of the target
)

// Why is what put a pod into its class.
type Why uint8

// The reasons.
const (
	WhyReady          Why = iota // counted: nothing stands against it
	WhyTerminating               // ignored: it is being deleted
	WhyFailed                    // ignored: its phase is Failed
	WhyPending                   // unready: its phase is Pending
	WhyNoSample                  // missing: the metrics API does not mention it
	WhyNoCondition               // unready: it has no Ready condition or no start time
	WhyStarting                  // unready: in its CPU initialization period and not ready
	WhyWindowTooEarly            // unready: in its CPU initialization period, and the window began before it was ready
	WhyNeverReady                // unready: it was not ready in its first moments, and not since
	WhyNotRunning                // not counted by Object and External metrics: not Running
	WhyNotReady                  // not counted by Object and External metrics: not Ready
	WhyUnknown                   // a stranger: the target has no such pod
)

// Step is one step from the metrics' proposal to the desired count.
type Step struct {
	Kind StepKind
	// From is the count before the step, To the one after.
	From, To int32
	// Limit is the bound that the step compared with, where it has one; of a
	// stabilization, the recommendation that decided.
	Limit int32
	// Window is the stabilization window or the policy's period, At when the
	// recommendation that decided was made, Policy the deciding policy.
	Window time.Duration
	At     time.Time
	Policy *autoscalingv2.HPAScalingPolicy
	// Added and Removed are replicas changed within the policy's period.
	Added, Removed int32
}

// StepKind is what a step is.
type StepKind uint8

// The kinds. A step is in Decision.Steps if it was taken, even where it changed
// nothing.
const (
	StepDisabled      StepKind = iota // the target has zero replicas, and is left alone
	StepAboveMax                      // the current count is above maxReplicas: no metric was asked
	StepBelowMin                      // the current count is below minReplicas: no metric was asked
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

// Event is one the decision calls for, in Kubernetes' words.
type Event struct {
	Type, Reason, Message string
}

// Done is what is known after a decision was carried out.
type Done struct {
	Status autoscalingv2.HorizontalPodAutoscalerStatus
	Memory Memory
	Events []Event
	Err    error
}
