package parity

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	custom "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	external "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsapi "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/autoscaler"
)

// The autoscaler under test, its target and their namespace.
const (
	namespace = "shop"
	name      = "web"
)

// testInput has the answers of the API servers at one moment, as their own
// objects. Both sides get all their input from it.
type testInput struct {
	Pods     []*corev1.Pod // of the whole cluster
	PodsFail bool

	// Answers of the metrics APIs. An API without an answer fails.
	Resource *[]metricsapi.PodMetrics
	Custom   map[string][]custom.MetricValue // by metric, for pods
	Object   map[string]custom.MetricValue   // by metric
	External map[string][]external.ExternalMetricValue
}

// config has the settings of a controller for all its autoscalers.
type config struct {
	autoscaler.Settings
}

// call is one call of upstream's ReplicaCalculator.
type call struct {
	Config   config
	Input    testInput
	Selector string
	Current  int32 // the target's number of replicas; for AverageValue of Object and External, that of its status
	Metric   autoscalingv2.MetricSpec
	// Behavior has the tolerances. If it is nil, those of Config apply.
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
}

// sequence is the life of one autoscaler.
type sequence struct {
	Config config
	Reuse  bool                                        // weir's controller reuses the memory of each decision for the next
	Status autoscalingv2.HorizontalPodAutoscalerStatus // at the start
	Steps  []step
}

// action is what happens in a step.
type action string

const (
	reconcile action = "reconcile"
	deletion  action = "delete"  // the object is deleted, and another of the same name is created
	restart   action = "restart" // of the controller
)

// step is one reconcile, or an event between two.
type step struct {
	After  time.Duration // time after the previous step
	Action action
	Spec   autoscalingv2.HorizontalPodAutoscalerSpec
	Target autoscaler.Scale
	Input  testInput
	Others []otherTarget
	Faults faults
}

// otherTarget is another autoscaler of the same controller.
type otherTarget struct{ Namespace, Name, Selector string }

// faults are the failures of one step.
type faults struct {
	Scale        string         // the scale lookup: "", "kind", "mappings", "get", "first"
	ScaleUpdates []scaleFailure // answers to updates of the scale, in order; later ones succeed
	ScaleRefresh bool           // reading the scale again after a failed update
	Status       bool           // the status update
}

type scaleFailure string

const (
	conflict scaleFailure = "conflict"
	refused  scaleFailure = "refused"
)
