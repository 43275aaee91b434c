package eviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Settings has what does not change from one decision to the next.
type Settings struct {
	// Thresholds are the result of Parse; Decide derives those of containerfs.
	Thresholds []Threshold
	// TransitionPeriod is how long a condition is reported after it was last met. If it is zero,
	// conditions are never reported, as in the kubelet.
	TransitionPeriod time.Duration
	// MaxPodGraceSeconds bounds the grace period of pods evicted for soft thresholds.
	MaxPodGraceSeconds int64
	// LocalLimits enforces the limits of local storage (localStorageCapacityIsolation).
	LocalLimits bool
	// Parity treats figures that are missing or cannot be right as the kubelet does: it uses them as
	// they are, and evicts a pod without statistics first. It is for comparisons with the kubelet.
	// Without it no pod is evicted for such a figure: see Observation.Doubt and RankedPod.Doubt.
	Parity bool
	// Rules are those of the node's kubelet.
	Rules Rules
	// Contention has the thresholds of the conditions of KEP-5394. No pod is evicted for them.
	Contention []ContentionThreshold
}

// Rules are the rules that differ between kubelets. The zero value has the rules of Kubernetes 1.37
// with its default feature gates.
type Rules struct {
	// IgnoreSidecarLimits is set for a kubelet before 1.37: the limits of restartable init containers
	// count only in the limit of the whole pod.
	IgnoreSidecarLimits bool
	// IgnoreMemoryVolumes is the feature gate InPlacePodVerticalScalingMemoryBackedVolumes (alpha in
	// 1.37): the kernel enforces the size limit of a memory-backed emptyDir, so no pod is evicted for
	// it.
	IgnoreMemoryVolumes bool
	// IgnoreHugePages is set for a kubelet before 1.37, or without the feature gate
	// HugepageAwareEviction: memory for huge pages counts as available.
	IgnoreHugePages bool
}

// Input has everything that a decision depends on. Decide does not change it.
type Input struct {
	Now      time.Time
	Settings *Settings
	// Layout is the layout of the node's disks. It is used only until State.LayoutKnown. LayoutErr is
	// the reason why it is not known; there is no decision then.
	Layout    DiskLayout
	LayoutErr error
	// Pods are the pods on the node that have not ended.
	Pods []*corev1.Pod
	// Summary is the usage, in the form of the kubelet's summary API. A figure that is nil is not
	// known, which is different from zero; so is a time that is zero. The stalls are those of Node.
	// SummaryErr is the reason why there is no summary.
	Summary    *stats.Summary
	SummaryErr error
	// MemoryLeft has the figures of weir's own signals, and the memory for huge pages, which is not
	// available; nil if they are not known.
	MemoryLeft *MemoryLeft

	// Self is the UID of the pod that runs this code, which is skipped; empty if there is none.
	Self types.UID
	// Blocked are the pods that cannot be evicted now, by UID. They are skipped, and the next pod in
	// the ranking is evicted.
	Blocked map[types.UID]BlockedPod
	// Evicted is the time of the last eviction; zero if there was none. The average of a pressure
	// signal includes the time before it. For two windows of the signal, after which a seventh of that
	// weight is left, no pod is therefore evicted for it. Its condition is still reported.
	Evicted time.Time
	// State is the Decision.State of the decision before; zero for the first decision.
	State DecisionState
}

// MemoryLeft has figures of /proc/meminfo, in bytes.
type MemoryLeft struct {
	// At is the time of the read.
	At time.Time
	// Available is the kernel's MemAvailable, of Total.
	Available, Total uint64
	// SwapFree is the free swap, of SwapTotal, which is zero on a node without swap.
	SwapFree, SwapTotal uint64
	// HugePages is the memory of Total that is set aside for huge pages (Hugetlb), used or not.
	HugePages uint64
}

// BlockedPod is a pod that cannot be evicted now.
type BlockedPod struct {
	// Reason is a sentence, for example with the PodDisruptionBudget that does not allow the eviction.
	Reason string
	// Hard is set if the pod is not evicted for a hard threshold either.
	Hard bool
}

// DecisionState is the state that one decision passes to the next. Decide returns a new one and
// does not change the old one.
type DecisionState struct {
	Layout      DiskLayout
	LayoutKnown bool
	// Thresholds are the thresholds that are met, or in force and not ended.
	Thresholds []MetThreshold
	// Conditions are the conditions that were met at least once.
	Conditions []Condition
	// Contention has the conditions of KEP-5394 that have a threshold.
	Contention []Contention
	// LastMeasured has the times of the signals' figures.
	LastMeasured []SignalTime
	// NotifiersAt is the time at which RefreshNotifiers was last set.
	NotifiersAt time.Time
}

// MetThreshold is a threshold that is met, or in force.
type MetThreshold struct {
	Threshold Threshold
	// Since is the time from which it has been met without a break.
	Since time.Time
	// InForce is set if it has been met for its grace period.
	InForce bool
}

// Condition is a node condition.
type Condition struct {
	Type corev1.NodeConditionType
	// MetAt is the last time at which one of its thresholds was met.
	MetAt time.Time
	// Reported is set if the condition is true by the last decision that had figures.
	Reported bool
}

// SignalTime is the time of a signal's figure.
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

// isNewer reports whether an observation is newer than the signal's last one. An observation
// without a time is newer, and so is the first observation of a signal.
func (s *DecisionState) isNewer(o *Observation) bool {
	for i := range s.LastMeasured {
		if s.LastMeasured[i].Signal == o.Signal {
			return o.Time.IsZero() || o.Time.After(s.LastMeasured[i].Time)
		}
	}
	return true
}
