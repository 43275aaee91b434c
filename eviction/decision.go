package eviction

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Decision is what to do now, and the whole way there.
type Decision struct {
	At      time.Time
	Outcome Outcome
	// Err is why nothing could be decided: OutcomeNoLayout, OutcomeNoSummary.
	Err    error
	Layout Layout
	// Observations are the signals' figures, in the order of Signals.
	Observations []Observation
	// Thresholds are all there are, those derived for containerfs included, in the
	// order in which they are acted on. Acting is the index of the one acted on, -1 if
	// none is.
	Thresholds []ThresholdState
	Acting     int
	// Conditions are the node's after this decision: those ever met, of which
	// some are reported.
	Conditions []Condition
	// RefreshNotifiers asks for the memory notifiers to follow the summary: see
	// Threshold.Notice.
	RefreshNotifiers bool
	// Exceeded are the pods over a limit of local storage. Those that are not critical
	// go, and thresholds wait for the next decision.
	Exceeded []Exceeded
	// Reclaim is what to collect before anyone is evicted, in order; then call
	// AfterReclaim, with which comes Reclaimed.
	Reclaim   []Collection
	Reclaimed *Reclaimed
	// Ranking are the pods as they would go for the threshold acted on, and Victim the
	// index of the first that may: -1 if none may. With a Reclaim to come, or one that
	// sufficed, it is who would have gone.
	Ranking []Ranked
	Victim  int
	// Kills are the pods to be evicted: for a threshold at most one; each that exceeds
	// a limit of local storage.
	Kills []Kill
	// Doubts are about what is missing or cannot be right.
	Doubts []Doubt
	// State is for the next decision.
	State State

	parity  bool
	planned *Kill
}

// Outcome is what a decision came to.
type Outcome uint8

// The outcomes.
const (
	OutcomeIdle       Outcome = iota // no threshold, and limits are not enforced: nothing was looked at
	OutcomeNoLayout                  // the node cannot tell its disks: nothing is changed
	OutcomeNoSummary                 // there are no figures: nothing is changed
	OutcomeLocalLimit                // pods exceed a limit of local storage, and go
	OutcomeCalm                      // no threshold is in force
	OutcomeStale                     // thresholds are in force, on figures that an earlier decision acted on
	OutcomeReclaim                   // collect first: AfterReclaim says what then
	OutcomeReclaimed                 // what was collected suffices
	OutcomeEvict                     // a pod goes
	OutcomeNoPods                    // there is no pod to evict
	OutcomeNobody                    // all pods are passed over
	OutcomeWatched                   // nobody is evicted for this signal
	OutcomeSettling                  // thresholds of pressure signals are in force, on averages of the time before a pod went
)

// ThresholdState is a threshold and how things stand with it.
type ThresholdState struct {
	Threshold Threshold
	// Derived: nothing was configured for containerfs, and this is its file system's.
	// On a node's first decision it counts only after a collection (Waits), as the
	// kubelet has it.
	Derived, Waits bool
	// Observation is the signal's; nil if it has none. Limit is what Available must be
	// below, Goal what it must reach to end the threshold once it is in force.
	Observation *Observation
	Limit, Goal resource.Quantity
	// Met now; or Held: in force, and not yet past its minimum reclaim.
	Met, Held bool
	// Since is when it was met first, without a break; zero if neither.
	Since time.Time
	// InForce: for its grace period by now. Left is what remains of that.
	InForce bool
	Left    time.Duration
	// Fresh: the figure is newer than that of the decision before. A threshold in
	// force that is not waits.
	Fresh bool
	// Settles is when a pressure signal's average has forgotten the time before the last
	// pod went (Input.Evicted); zero if it has. Until then a threshold in force waits.
	Settles time.Time
}

// Distance is how much more must go before the threshold is met, in the signal's unit or
// in percent of the time; zero or less once it is. False if the signal has no figure.
func (t *ThresholdState) Distance() (float64, bool) {
	o := t.Observation
	if o == nil {
		return 0, false
	}
	if t.Threshold.Signal.Pressure() {
		return t.Threshold.Value.Stall - o.Stall, true
	}
	return float64(o.Available) - t.Limit.AsApproximateFloat64(), true
}

// Kill is the eviction of a pod.
type Kill struct {
	Pod PodRef
	// Signal is what it is counted under: a threshold's signal, or a limit.
	Signal string
	// Hard: it may not wait for anyone's consent, for the threshold is hard, or it is a limit.
	Hard bool
	// GraceSeconds is the pod's time to end, as the kubelet computes it: it may be
	// zero or less, and whoever carries it out gives at least one second.
	GraceSeconds int64
	// Message is that of the pod's status (phase Failed, reason Evicted) and event,
	// Annotations are of the event.
	Message     string
	Annotations map[string]string
	// Condition is for the pod's status; nil for limits of local storage.
	Condition *corev1.PodCondition
}

// Doubt is why something counts for nothing. A figure that is missing, or cannot be
// right (a capacity of zero, more available than there is, a number that does not fit, a
// time in the future), is no reason to evict anyone: of a signal, its thresholds are not
// met and their grace periods begin anew; of a pod, it is passed over. Settings.Parity
// switches this off, and the doubts are told all the same.
type Doubt struct {
	// Signal is of the node's figure, and Pod of a pod's. A signal without a pod
	// has a threshold.
	Signal Signal
	Pod    PodRef
	Why    string
}

var errNoSummary = errors.New("no summary was given")

// InForce returns the thresholds in force.
func (d *Decision) InForce() []Threshold {
	var list []Threshold
	for i := range d.State.Thresholds {
		if s := &d.State.Thresholds[i]; s.InForce {
			list = append(list, s.Threshold)
		}
	}
	return list
}

// Pressures returns the conditions reported, in the order of memory, disk, process ids,
// processors and io.
func (d *Decision) Pressures() []corev1.NodeConditionType {
	var list []corev1.NodeConditionType
	for _, c := range d.Conditions {
		if c.Reported {
			list = append(list, c.Type)
		}
	}
	return list
}
