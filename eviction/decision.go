package eviction

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Decision describes what to do now, with its derivation.
type Decision struct {
	At      time.Time
	Outcome DecisionOutcome
	// Err is the reason why no decision was possible: see OutcomeNoLayout and OutcomeNoSummary.
	Err    error
	Layout DiskLayout
	// Observations are the figures of the signals, in the order of Signals.
	Observations []Observation
	// Thresholds are all thresholds, with those derived for containerfs, in the order in which they
	// are acted on. Acting is the index of the threshold that is acted on, or -1.
	Thresholds []ThresholdState
	Acting     int
	// Conditions are the node conditions that were met at least once, whether they are reported or
	// not.
	Conditions []Condition
	// Contention has the conditions of KEP-5394 that have a threshold, in the order of
	// Settings.Contention.
	Contention []Contention
	// RefreshNotifiers asks the caller to update what gives notice of memory.
	RefreshNotifiers bool
	// Exceeded are the pods that exceed a limit of local storage. If one of them can be evicted, the
	// thresholds wait for the next decision.
	Exceeded []ExceededLimit
	// Reclaim is what to remove, in order, before a pod is evicted. The caller then calls
	// AfterReclaim, which sets Reclaimed.
	Reclaim   []Collection
	Reclaimed *Reclaimed
	// Ranking are the pods in the order of eviction for the threshold that is acted on. Victim is the
	// index of the first pod that is not skipped, or -1. Both are set even if there is a Reclaim, and
	// if the Reclaim was enough.
	Ranking []RankedPod
	Victim  int
	// Kills are the pods to evict: at most one for a threshold, or every pod that exceeds a limit of
	// local storage.
	Kills []Kill
	// State is the state for the next decision.
	State DecisionState

	parity      bool
	hugePages   uint64 // what memory.available leaves out
	plannedKill *Kill
}

// DecisionOutcome is the result of a decision.
type DecisionOutcome string

// The outcomes.
const (
	OutcomeNoThresholds  DecisionOutcome = "NoThresholds"  // there is no threshold, and limits are not enforced
	OutcomeNoLayout      DecisionOutcome = "NoLayout"      // the layout of the disks is not known: nothing changes
	OutcomeNoSummary     DecisionOutcome = "NoSummary"     // there are no figures: nothing changes
	OutcomeLocalLimit    DecisionOutcome = "LocalLimit"    // pods exceed a limit of local storage and are evicted
	OutcomeNoneInForce   DecisionOutcome = "NoneInForce"   // no threshold is in force
	OutcomeStale         DecisionOutcome = "Stale"         // thresholds are in force, but an earlier decision acted on the same figures
	OutcomeReclaim       DecisionOutcome = "Reclaim"       // remove something first, then call AfterReclaim
	OutcomeReclaimed     DecisionOutcome = "Reclaimed"     // what was removed is enough
	OutcomeEvict         DecisionOutcome = "Evict"         // a pod is evicted
	OutcomeNoPods        DecisionOutcome = "NoPods"        // there is no pod to evict
	OutcomeNoCandidate   DecisionOutcome = "NoCandidate"   // all pods are skipped
	OutcomeConditionOnly DecisionOutcome = "ConditionOnly" // no pod is evicted for this signal: only its node condition is set
	OutcomeSettling      DecisionOutcome = "Settling"      // pressure thresholds are in force, but the averages include the time before the last eviction
)

// ThresholdState is a threshold compared with its signal.
type ThresholdState struct {
	Threshold Threshold
	// Derived is set if the threshold is not configured, but copied to containerfs from the file
	// system that containers are on. Deferred is set on a node's first decision: a derived threshold
	// then counts only after a collection, as in the kubelet.
	Derived, Deferred bool
	// Observation is the figure of the signal; nil if there is none. The threshold is met while
	// Available is below Limit. Once in force, it ends when Available reaches Goal.
	Observation *Observation
	Limit, Goal resource.Quantity
	// Met is set if the figure is beyond the limit now. Reclaiming is set if the threshold is in force
	// and no longer met, but its minimum reclaim is not reached.
	Met, Reclaiming bool
	// Since is the time from which it has been met without a break; zero if it is not met.
	Since time.Time
	// InForce is set if it has been met for its grace period. Remaining is the rest of that period.
	InForce   bool
	Remaining time.Duration
	// Fresh is set if the figure is newer than that of the decision before. A threshold in force is
	// acted on only with a fresh figure.
	Fresh bool
	// SettledAt is the time from which a pressure signal's average no longer includes the time before
	// the last eviction (Input.Evicted); zero if that time has passed. Until then no pod is evicted
	// for the signal.
	SettledAt time.Time
}

// Distance returns how far the figure is from the threshold, in the signal's unit, or in percent of
// the time. It is zero or less if the threshold is met. It returns false if there is no figure.
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
	Pod PodIdentity
	// Signal is the signal of a threshold, or one of EmptyDirLimit, PodLimit and ContainerLimit.
	Signal string
	// Hard is set if the threshold is hard, or if a limit is exceeded. PodDisruptionBudgets do not
	// apply then.
	Hard bool
	// GraceSeconds is the pod's termination grace period, as the kubelet computes it. It may be zero
	// or less; the caller must give the pod at least one second.
	GraceSeconds int64
	// Message is for the pod's status (phase Failed, reason Evicted) and for the Event. Annotations
	// are for the Event.
	Message     string
	Annotations map[string]string
	// Condition is for the pod's status; nil for limits of local storage.
	Condition *corev1.PodCondition
}

var errNoSummary = errors.New("no summary was given")

// Pressures returns the conditions that are reported, in the order memory, disk, process ids,
// CPU, I/O.
func (d *Decision) Pressures() []corev1.NodeConditionType {
	var list []corev1.NodeConditionType
	for _, c := range d.Conditions {
		if c.Reported {
			list = append(list, c.Type)
		}
	}
	return list
}
