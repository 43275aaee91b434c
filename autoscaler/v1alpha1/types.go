// Package v1alpha1 has the API group autoscaling.weir.dev with the kind Autoscaler. An Autoscaler
// is a HorizontalPodAutoscaler with a mode, and weir acts on it.
//
// The specification has all fields of autoscaling/v2, so the manifest of a HorizontalPodAutoscaler
// becomes that of an Autoscaler with another apiVersion and kind. The schema is in
// deploy/kustomize/components/autoscaler/crd.yaml; a test compares it with these types.
package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler"
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

// AutoscalerSpec is the specification of an Autoscaler.
type AutoscalerSpec struct {
	autoscalingv2.HorizontalPodAutoscalerSpec `json:",inline"`

	// Mode reports whether decisions are carried out. The default is Active: a manifest copied
	// from a HorizontalPodAutoscaler then scales as before, and a tool that drops the field
	// does not end the scaling of a loaded service. The condition Conflict prevents two
	// controllers from scaling one workload.
	Mode Mode `json:"mode,omitempty"`
}

// Mode reports whether decisions are carried out.
type Mode string

// The modes.
const (
	// Active Autoscalers change the number of replicas of the target.
	Active Mode = "Active"
	// DryRun Autoscalers only report in their status what they would do.
	DryRun Mode = "DryRun"
)

// AutoscalerStatus is the last decision and its reason.
//
// In a dry run and in a conflict, desiredReplicas is the count that the Autoscaler would set, and
// lastScaleTime does not change.
type AutoscalerStatus struct {
	autoscalingv2.HorizontalPodAutoscalerStatus `json:",inline"`

	// Targets has the value and the target of each metric, "cpu: 63%/50%", as kubectl shows
	// them for a HorizontalPodAutoscaler.
	Targets string `json:"targets,omitempty"`
	// Decisions are the last decisions that differed from the one before, the newest first.
	Decisions []Decision `json:"decisions,omitempty"`
	// Explanation explains the last decision. If nothing else changes, it is written once a minute.
	Explanation *Explanation `json:"explanation,omitempty"`
	// Memory is the input of stabilization windows and policies. A new leader continues with it.
	Memory *Memory `json:"memory,omitempty"`
}

// Decision is one decision.
type Decision struct {
	Time metav1.Time `json:"time"`
	// Current is the count in the spec of the target. Recommendation is the count that the metrics
	// require, absent if no metric was read. Desired is the result.
	Current        int32  `json:"current"`
	Recommendation *int32 `json:"recommendation,omitempty"`
	Desired        int32  `json:"desired"`
	// Written is set if Desired was written to the target.
	Written bool `json:"written"`
	// Reason is the reason in one line.
	Reason string `json:"reason,omitempty"`
}

// Explanation is a short explanation of a decision. The complete one is at weir.dev/v1alpha1
// .../autoscalers/NAME/explanation, and `weir explain autoscaler NAMESPACE/NAME` prints it.
type Explanation struct {
	Time    metav1.Time `json:"time"`
	Summary string      `json:"summary"`
	// Pods are at most 16 pods that a metric did not count in full, with the reason. MorePods is the
	// number of other such pods.
	Pods     []PodReason `json:"pods,omitempty"`
	MorePods int32       `json:"morePods,omitempty"`
}

// PodReason explains why a metric did not count a pod in full.
type PodReason struct {
	Name   string `json:"name"`
	Metric string `json:"metric"`
	Class  string `json:"class"` // Unready, Missing, Ignored or NotInTarget
	Reason string `json:"reason,omitempty"`
}

// Memory is a compact form of the data for stabilization windows and policies. A decision based on
// it may change the count by less than one based on the complete memory, but never by more.
type Memory struct {
	// Target is the workload to which the memory belongs, by resource and name: "deployments.apps
	// web".
	Target string `json:"target,omitempty"`
	// Recommendations has one element for each interval of time, the oldest first, at most 12.
	Recommendations []Recommendations `json:"recommendations,omitempty"`
	// Changes are the changes of the count, oldest first, at most 60.
	Changes []Change `json:"changes,omitempty"`
}

// Recommendations are the recommendations of one interval of time.
type Recommendations struct {
	// Time is the time of the last recommendation, so that none is forgotten too early.
	Time metav1.Time `json:"time"`
	// Min is the lowest recommendation, Max the highest.
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// Change is a change of the count; positive means more replicas.
type Change struct {
	Time     metav1.Time `json:"time"`
	Replicas int32       `json:"replicas"`
}

// Types of conditions that autoscaling/v2 does not have.
const (
	// ConditionConflict is True while an Active Autoscaler does nothing because another
	// autoscaler scales the target.
	ConditionConflict autoscalingv2.HorizontalPodAutoscalerConditionType = "Conflict"
	// ConditionDryRun is True while the mode is DryRun.
	ConditionDryRun autoscalingv2.HorizontalPodAutoscalerConditionType = "DryRun"
)

// SetDefaults sets the defaults of the API server. It is for an Autoscaler from a file, or from a
// cluster with an older schema.
func SetDefaults(a *Autoscaler) {
	if a.Spec.Mode == "" {
		a.Spec.Mode = Active
	}
	autoscaler.Default(&a.Spec.HorizontalPodAutoscalerSpec)
}
