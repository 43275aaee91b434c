package eviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Settings are what does not change from one decision to the next.
type Settings struct {
	// Thresholds are as Parse returns them; Decide derives those of containerfs.
	Thresholds []Threshold
	// TransitionPeriod is how long a condition is reported after it was last met. With zero it
	// is never reported, as in the kubelet.
	TransitionPeriod time.Duration
	// MaxPodGraceSeconds bounds the grace period of pods evicted for soft thresholds.
	MaxPodGraceSeconds int64
	// LocalLimits enforces the limits of local storage
	// (localStorageCapacityIsolation).
	LocalLimits bool
	// Parity decides as the kubelet does on figures that are missing or cannot be right: it
	// uses them as they are, and evicts a pod without statistics first. It is for comparisons
	// with the kubelet. Without it no pod is evicted for such a figure: see Observation.Doubt and RankedPod.Doubt.
	Parity bool
}

// Input has everything that a decision depends on. Decide does not change it.
type Input struct {
	Now      time.Time
	Settings *Settings
	// Layout is the layout of the node's disks. It is only read until State.LayoutKnown. LayoutErr is
	// why it is not known; then nothing is decided.
	Layout    DiskLayout
	LayoutErr error
	// Pods are the pods on the node that have not ended.
	Pods []*corev1.Pod
	// Summary is what is in use, as the kubelet's summary API has it. A nil figure is
	// not known, which differs from zero; a zero time is not known. The stalls are those of Node.
	// SummaryErr is why there is no summary.
	Summary    *stats.Summary
	SummaryErr error

	// Self is the UID of the pod that runs this code, which is skipped; empty for none.
	Self types.UID
	// Blocked are pods that cannot be evicted now, by UID. They are skipped, and the next pod in
	// the ranking is evicted.
	Blocked map[types.UID]BlockedPod
	// Evicted is the time of the last eviction; zero if there was none. A pressure signal's
	// average includes the time before it. So for two of its windows (after which a seventh of
	// the weight is left) no pod is evicted for that signal. Its condition is still reported.
	Evicted time.Time
	// State is Decision.State of the decision before; zero for the first.
	State DecisionState
}

// BlockedPod is a pod that cannot be evicted now.
type BlockedPod struct {
	// Reason is a sentence, for example which PodDisruptionBudget does not allow it.
	Reason string
	// Hard: the pod is not evicted for a hard threshold either.
	Hard bool
}

// DecisionState is what one decision passes to the next. Decide returns a new one and does not
// change the old one.
type DecisionState struct {
	Layout      DiskLayout
	LayoutKnown bool
	// Thresholds are those that are met, or in force and not resolved.
	Thresholds []MetThreshold
	// Conditions are those that were met at least once.
	Conditions []Condition
	// LastMeasured are the times of the signals' figures.
	LastMeasured []SignalTime
	// NotifiersAt is when RefreshNotifiers was last set.
	NotifiersAt time.Time
}

// MetThreshold is a threshold that is met, or in force.
type MetThreshold struct {
	Threshold Threshold
	// Since is when it was first met, without a break since.
	Since time.Time
	// InForce: it has been met for its grace period.
	InForce bool
}

// Condition is a node condition.
type Condition struct {
	Type corev1.NodeConditionType
	// MetAt is when a threshold of it was last met.
	MetAt time.Time
	// Reported: the condition is true, by the last decision that had figures.
	Reported bool
}

// SignalTime is when a signal's figure was measured.
type SignalTime struct {
	Signal Signal
	Time   time.Time
}

func (s *DecisionState) metThreshold(t *Threshold) *MetThreshold {
	for i := range s.Thresholds {
		if s.Thresholds[i].Threshold.equal(t) {
			return &s.Thresholds[i]
		}
	}
	return nil
}

// isNewer reports whether an observation is newer than the signal's last. An observation without
// a time is newer, and so is a signal's first observation.
func (s *DecisionState) isNewer(o *Observation) bool {
	for i := range s.LastMeasured {
		if s.LastMeasured[i].Signal == o.Signal {
			return o.Time.IsZero() || o.Time.After(s.LastMeasured[i].Time)
		}
	}
	return true
}
