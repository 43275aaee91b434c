package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Autoscaler scales a workload by its metrics.
type Autoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AutoscalerSpec   `json:"spec"`
	Status AutoscalerStatus `json:"status,omitempty"`
}

// AutoscalerList is a list of Autoscalers.
type AutoscalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Autoscaler `json:"items"`
}

// AutoscalerSpec is what is wanted.
type AutoscalerSpec struct {
	autoscalingv2.HorizontalPodAutoscalerSpec `json:",inline"`

	// Mode says whether decisions are carried out. Default: Active, for an
	// autoscaler that silently does nothing is the worse surprise: a manifest
	// copied from a HorizontalPodAutoscaler does what that did, and a field that
	// some tool drops does not end the scaling of a loaded service. What must not
	// happen by accident, two controllers on one workload, Conflict prevents.
	Mode Mode `json:"mode,omitempty"`
}

// Mode is whether decisions are carried out.
type Mode string

// The modes.
const (
	// Active autoscalers change the target's number of replicas.
	Active Mode = "Active"
	// DryRun autoscalers only say what they would do, in their status.
	DryRun Mode = "DryRun"
)

// Dry reports whether decisions are only told.
func (s *AutoscalerSpec) Dry() bool { return s.Mode == DryRun }

// AutoscalerStatus is what was decided, and why.
//
// In a dry run and in a conflict, desiredReplicas is what the autoscaler would
// ask for, and lastScaleTime stays what it was.
type AutoscalerStatus struct {
	autoscalingv2.HorizontalPodAutoscalerStatus `json:",inline"`

	// Targets are the metrics and what is aimed at, "cpu: 63%/50%", as kubectl
	// shows them of a HorizontalPodAutoscaler.
	Targets string `json:"targets,omitempty"`
	// Decisions are the last ones that differed from the one before, newest first.
	Decisions []Decision `json:"decisions,omitempty"`
	// Explanation is that of the last decision. Where nothing else changes it is
	// written once a minute, not after every decision.
	Explanation *Explanation `json:"explanation,omitempty"`
	// Memory is what the next decisions take into account, for a replica that has
	// to go on where another ended.
	Memory *Memory `json:"memory,omitempty"`
}

// Decision is one that was made.
type Decision struct {
	Time metav1.Time `json:"time"`
	// Current is the count the target asked for, Recommendation what the metrics
	// asked for (absent if nobody asked them, or none answered), Desired what
	// came of it.
	Current        int32  `json:"current"`
	Recommendation *int32 `json:"recommendation,omitempty"`
	Desired        int32  `json:"desired"`
	// Written says that Desired was written to the target.
	Written bool `json:"written"`
	// Reason is why, in one line.
	Reason string `json:"reason,omitempty"`
}

// Explanation is a decision told, as far as there is room in an object. All of it
// is at weir.dev/v1alpha1 .../autoscalers/NAME/explanation, and in
// `weir explain autoscaler NAMESPACE/NAME`.
type Explanation struct {
	Time    metav1.Time `json:"time"`
	Summary string      `json:"summary"`
	// Pods are those that a metric did not simply count, and why, at most 16 of
	// them; MorePods is how many others there are.
	Pods     []PodReason `json:"pods,omitempty"`
	MorePods int32       `json:"morePods,omitempty"`
}

// PodReason is why a metric did not simply count a pod.
type PodReason struct {
	Name   string `json:"name"`
	Metric string `json:"metric"`
	Class  string `json:"class"` // Unready, Missing, Ignored or NotInTarget
	Reason string `json:"reason,omitempty"`
}

// Memory is what stabilization windows and policies go by, in few words: it may
// say that less is allowed than was remembered in full, never more.
type Memory struct {
	// Target is whose they are, by resource and name: "deployments.apps web".
	Target string `json:"target,omitempty"`
	// Recommendations of slices of time, oldest first, at most 12.
	Recommendations []Recommendations `json:"recommendations,omitempty"`
	// Changes of the count that were made, oldest first, at most 60.
	Changes []Change `json:"changes,omitempty"`
}

// Recommendations are those of a slice of time.
type Recommendations struct {
	// Time is that of the last of them: so none is forgotten too early.
	Time metav1.Time `json:"time"`
	// Min is the lowest and Max the highest.
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// Change is a change of the count: up if positive.
type Change struct {
	Time     metav1.Time `json:"time"`
	Replicas int32       `json:"replicas"`
}

// Types of conditions that autoscaling/v2 does not have.
const (
	// ConditionConflict is True while an Active Autoscaler does nothing because the
	// target is another's.
	ConditionConflict autoscalingv2.HorizontalPodAutoscalerConditionType = "Conflict"
	// ConditionDryRun is True while the mode is DryRun.
	ConditionDryRun autoscalingv2.HorizontalPodAutoscalerConditionType = "DryRun"
)
