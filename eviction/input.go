package eviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Settings are what does not change from one decision to the next.
type Settings struct {
	// Thresholds are as Parse returns them; those of containerfs are derived anew.
	Thresholds []Threshold
	// TransitionPeriod is how long a condition is reported after it was last met. With
	// zero it never is, as with the kubelet.
	TransitionPeriod time.Duration
	// MaxPodGraceSeconds bounds the grace period of pods evicted for soft thresholds.
	MaxPodGraceSeconds int64
	// LocalLimits enforces the limits of local storage
	// (localStorageCapacityIsolation).
	LocalLimits bool
	// Parity decides as the kubelet does even on figures that are missing or cannot be
	// right: it takes them as they are, and evicts a pod without statistics first of all.
	// Without it, nobody is evicted for such a figure: see Doubt. It is there to compare with the
	// kubelet.
	Parity bool
}

// Input is all that a decision is made of. Decide changes nothing in it.
type Input struct {
	Now      time.Time
	Settings *Settings
	// Layout is what the node says of its disks, or why it cannot. It is asked for
	// only until State.LayoutKnown. Without ImageFsErr there is nothing to decide;
	// ContainerFsErr stands for no split.
	Layout                     Layout
	ImageFsErr, ContainerFsErr error
	// Pods are those that are active on the node: not those that have ended.
	Pods []*corev1.Pod
	// Summary is what is in use, as the kubelet's summary API has it. A figure that is nil is
	// not known, which is not zero; a zero time is not known. The stalls are those of Node.
	// SummaryErr is why the summary is not known.
	Summary    *stats.Summary
	SummaryErr error

	// Self is the UID of the pod that decides, which is passed over; empty for none.
	Self types.UID
	// Blocked are pods that were asked to go and cannot, by UID: they are passed over,
	// and the next in the ranking goes.
	Blocked map[types.UID]Blocked
	// Evicted is when a pod last went; zero if none did. A pressure signal's average tells
	// of the time before it: for two of its windows (by then a seventh of that time's weight
	// is left) nobody goes for one. Its condition is told all the same.
	Evicted time.Time
	// State is what was remembered of the decision before; zero at first.
	State State
}

// Blocked is why a pod cannot be asked to go.
type Blocked struct {
	// Why is in words: which PodDisruptionBudget does not let it.
	Why string
	// Hard: not for a hard threshold either, because nobody is made to go without being
	// asked.
	Hard bool
}

// State is what a decision leaves for the next. It is a value: Decide returns a new
// one and changes nothing in the old.
type State struct {
	Layout      Layout
	LayoutKnown bool
	// Thresholds are those that are met, or in force and not resolved.
	Thresholds []Standing
	// Conditions are all that were met once.
	Conditions []Condition
	// Seen are the times of the figures.
	Seen []Seen
	// NotifiersAt is when the memory notifiers were last asked to follow.
	NotifiersAt time.Time
}

// Standing is a threshold that is met.
type Standing struct {
	Threshold Threshold
	// Since is when it was met first, without a break since.
	Since time.Time
	// InForce: it has been met for its grace period.
	InForce bool
}

// Condition is a node condition.
type Condition struct {
	Type corev1.NodeConditionType
	// MetAt is when a threshold of it was last met.
	MetAt time.Time
	// Reported: it is true, as of the last decision that could tell.
	Reported bool
}

// Seen is when a signal's figure was measured.
type Seen struct {
	Signal Signal
	Time   time.Time
}

func (s *State) standing(t *Threshold) *Standing {
	for i := range s.Thresholds {
		if s.Thresholds[i].Threshold.same(t) {
			return &s.Thresholds[i]
		}
	}
	return nil
}

// newer says whether an observation is newer than that of the decision before. One
// without a time is, and so is one of a signal that the decision before did not have.
func (s *State) newer(o *Observation) bool {
	for i := range s.Seen {
		if s.Seen[i].Signal == o.Signal {
			return o.Time.IsZero() || o.Time.After(s.Seen[i].Time)
		}
	}
	return true
}
