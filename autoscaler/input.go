package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
)

// Input is all that a decision is made of. Decide changes nothing in it but what
// Reuse gives away.
type Input struct {
	Now      time.Time
	Settings *Settings
	// Object names the autoscaler.
	Object types.NamespacedName
	// Spec is what the API server returns, with its defaults filled in.
	Spec *autoscalingv2.HorizontalPodAutoscalerSpec
	// Status is the one last written: conditions keep their transition times,
	// and ScaledToZero decides whether a target may leave zero.
	Status *autoscalingv2.HorizontalPodAutoscalerStatus
	// Memory is what was remembered after the last decision.
	Memory Memory

	// Scale is the target's scale subresource; ScaleErr is why it is not known.
	Scale    Scale
	ScaleErr error
	// Selector is Scale.Selector, parsed; nil if the caller has not done so.
	Selector labels.Selector
	// Pods are those Scale.Selector matches, by name; PodsErr is why they are not
	// known.
	Pods    []Pod
	PodsErr error
	// Rivals are all autoscalers, this one included, whose target's selector matches
	// one of Pods. More than one cannot be served.
	Rivals []types.NamespacedName
	// Read returns what the metric Spec.Metrics[i] is now. It is called at most
	// once for each, in order, and only if the decision needs it.
	Read func(i int) Reading
	// Reuse is a decision that nobody needs any more, or nil. The memory of its pods
	// goes into the new one, and nothing of it may be read afterwards: that saves half
	// the time where many pods are decided about again and again.
	Reuse *Decision
}

// Scale is a target's scale subresource.
type Scale struct {
	Spec     int32  // replicas asked for
	Status   int32  // replicas observed
	Selector string // of the pods, in the syntax of a query
}

// Pod is what a decision goes by in a pod.
type Pod struct {
	Name        string
	Phase       cluster.Phase
	Terminating bool
	Started     time.Time // status.startTime; zero if not set
	Ready       Readiness
	ReadySince  time.Time // the Ready condition's last transition
	// Containers are the regular ones and the init containers (not ephemeral).
	Containers []Container
	// Requests are the pod-level ones, spec.resources.requests; PodLevel says that
	// there are any, of CPU, memory or huge pages.
	Requests Requests
	PodLevel bool
	Overhead Requests
}

// Readiness is the status of a pod's Ready condition.
type Readiness = cluster.Readiness

// Container is what a decision goes by in a container.
type Container struct {
	Name     string
	Role     cluster.Role
	Requests Requests
}

// Requests are requests of the resources metrics.k8s.io has.
type Requests struct {
	CPU, Memory Amount
}

// Amount is a quantity in thousandths (milli-cores, milli-bytes), each rounded
// away from zero as resource.Quantity.MilliValue does.
type Amount struct {
	Milli int64
	Set   bool // false: nothing was said, which is not zero
}

// Reading is what a metric is at the moment.
type Reading struct {
	// Samples are of a Resource, ContainerResource or Pods metric, one a pod, as
	// the metrics APIs tell them; a pod without the metric has none.
	Samples []Sample
	// Values are of an Object metric (one) or an External one, in thousandths.
	Values []int64
	// At is when the first of them was measured, as the API orders them.
	At time.Time
	// Err is why there is no reading. An API that answers with an empty list gives
	// one too.
	Err error
}

// Sample is a pod's metric.
type Sample struct {
	Pod    string
	Milli  int64         // of all containers asked for, each rounded on its own
	At     time.Time     // the end of the window
	Window time.Duration // it was measured over
}
