package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
)

// Input has everything that a decision depends on. Decide changes nothing in it except Reuse.
type Input struct {
	Now      time.Time
	Settings *Settings
	// Object names the autoscaler.
	Object types.NamespacedName
	// Spec is the specification with the API server's defaults.
	Spec *autoscalingv2.HorizontalPodAutoscalerSpec
	// Status is the last written status. Its conditions keep their transition times, and ScaledToZero
	// decides whether a target may be scaled up from zero.
	Status *autoscalingv2.HorizontalPodAutoscalerStatus
	// Generation is the generation of Spec. The new status has it as the observed generation, as with the
	// feature gate HPAGeneration. If it is nil, the new status has none, as before Kubernetes 1.37.
	Generation *int64
	// Memory is the memory after the last decision.
	Memory Memory

	// Scale is the target's scale subresource; ScaleErr is the error if it cannot be read.
	Scale    Scale
	ScaleErr error
	// Selector is Scale.Selector, parsed; nil if the caller did not parse it.
	Selector labels.Selector
	// Pods are the pods that Scale.Selector matches, sorted by name; PodsErr is the error if they are
	// not known.
	Pods    []PodInput
	PodsErr error
	// Overlapping are all autoscalers with a target that selects one of Pods, including this one. If
	// there is more than one, no metric is read.
	Overlapping []types.NamespacedName
	// ReadMetric returns the current value of the metric Spec.Metrics[i]. It is called at most once
	// for each metric, in order, and only if the decision needs it. It may be nil if the scale or the
	// pods are not known.
	ReadMetric func(i int) Reading
	// Reuse is a decision that is not needed any more, or nil. The memory of its pods is reused, so no
	// part of it may be read afterwards. This halves the time if there are repeated decisions about
	// many pods.
	Reuse *Decision
}

// Scale is a target's scale subresource.
type Scale struct {
	SpecReplicas   int32  // spec.replicas
	StatusReplicas int32  // replicas observed
	Selector       string // selects the pods, in the syntax of a query
}

// PodInput is the part of a pod that a decision uses.
type PodInput struct {
	Name        string
	Labels      labels.Set // for the search of other autoscalers of the pod; decisions do not use them
	Phase       cluster.Phase
	Terminating bool
	Started     time.Time // status.startTime; zero if not set
	Ready       cluster.Readiness
	ReadySince  time.Time // the last transition of the Ready condition
	// Containers are the regular and init containers, but not the ephemeral ones.
	Containers []ContainerInput
	// Requests are the pod-level requests, spec.resources.requests. PodLevel is set if there are any
	// for CPU, memory or huge pages.
	Requests Requests
	PodLevel bool
	Overhead Requests
}

// ContainerInput is the part of a container that a decision uses.
type ContainerInput struct {
	Name     string
	Role     cluster.Role
	Requests Requests
}

// Requests are the requests of CPU and memory.
type Requests struct {
	CPU, Memory MilliQuantity
}

// MilliQuantity is a quantity in thousandths (millicores, milli-bytes), rounded away from zero as
// resource.Quantity.MilliValue does.
type MilliQuantity struct {
	Milli int64
	Set   bool // false if there is no value
}

// Reading is the current value of a metric.
type Reading struct {
	// Samples are the samples of a Resource, ContainerResource or Pods metric, one for each pod that
	// has the metric.
	Samples []PodSample
	// Values are the values of an Object metric (one) or an External metric, in thousandths.
	Values []int64
	// At is the time of the first value, in the order of the API.
	At time.Time
	// AnsweredBy names who was asked, such as "adapter keda"; empty where only one can be.
	AnsweredBy string
	// Err is the reason why there is no value. An empty list in the answer of an API is an error, too.
	Err error
}

// PodSample is the metric of one pod.
type PodSample struct {
	Pod    string
	Milli  int64         // the sum over the containers, each rounded separately
	At     time.Time     // the end of the window
	Window time.Duration // the window of the measurement
}

// Settings apply to all autoscalers. They correspond to flags and feature gates of
// kube-controller-manager.
type Settings struct {
	// Tolerance is how far a ratio may be from 1 without a change.
	Tolerance float64
	// DownscaleStabilization is the window for scaling down if a specification has none.
	DownscaleStabilization time.Duration
	// CPUInitialization is a time after a pod's start. Within it the pod's CPU counts only if the pod
	// was ready for a whole window of the metric.
	CPUInitialization time.Duration
	// InitialReadinessDelay is a time after a pod's start. A pod that became unready within it is
	// assumed never to have been ready.
	InitialReadinessDelay time.Duration

	// These fields are the feature gates HPAConfigurableTolerance (locked on since 1.37),
	// HPAScaleToZero (on by default since 1.37) and PodLevelResources.
	ConfigurableTolerance bool
	ScaleToZero           bool
	PodLevelResources     bool
}

// DefaultSettings returns the settings of Kubernetes 1.37. Before 1.37, scaling to zero was off by
// default.
func DefaultSettings() Settings {
	return Settings{
		Tolerance:              0.1,
		DownscaleStabilization: 5 * time.Minute,
		CPUInitialization:      5 * time.Minute,
		InitialReadinessDelay:  30 * time.Second,
		ConfigurableTolerance:  true,
		ScaleToZero:            true,
		PodLevelResources:      true,
	}
}
