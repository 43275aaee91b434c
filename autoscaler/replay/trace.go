package replay

import (
	"regexp"
	"slices"
	"time"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
)

// Trace is what is known of a workload over a time.
type Trace struct {
	// Namespace and Target say whose trace it is: "shop", "Deployment/web".
	Namespace, Target string
	From, To          time.Time
	// Step is the usual distance of two points, at least a second. A value holds for
	// two steps and a half; what lies beyond that until the next point is a gap.
	Step time.Duration
	// Containers are what each pod has, by name.
	Containers []Container
	// PodLevel are a pod's own requests, spec.resources.requests; nil if it has none.
	PodLevel *autoscaler.Requests
	// Overhead is what a pod's RuntimeClass costs.
	Overhead autoscaler.Requests
	// Named are custom and external metrics by name: the sum over all pods of a
	// metric of pods, the value of an object's, the sum of an external one's series.
	Named map[string]Series
	// Replicas is how many pods were asked for; empty if not known.
	Replicas Series
	// Startup is how long pods took to become ready.
	Startup Startup
	// Notes are what the reader of the trace wants said.
	Notes []string
}

// Container is one container of each pod.
type Container struct {
	Name string
	// Role is Regular, Init or Sidecar.
	Role     cluster.Role
	Requests autoscaler.Requests
	Limits   autoscaler.Requests
	// CPU in cores and Memory in bytes are what those of all pods used together.
	CPU, Memory Series
}

// Startup is the median time from a pod's start until it was ready, of so many pods
// that started within the trace; none if Pods is 0.
type Startup struct {
	Median time.Duration
	Pods   int
}

// Series is a value over time, in order of time.
type Series []Value

// Value is a value at a time.
type Value struct {
	At    time.Time
	Value float64
}

// At returns the last value that is not after t, if it is younger than hold.
func (s Series) At(t time.Time, hold time.Duration) (float64, bool) {
	i, found := slices.BinarySearchFunc(s, t, func(v Value, t time.Time) int { return v.At.Compare(t) })
	if !found {
		i--
	}
	if i < 0 || t.Sub(s[i].At) >= hold {
		return 0, false
	}
	return s[i].Value, true
}

// hold is for how long a value of the trace stands.
func (t *Trace) hold() time.Duration { return max(t.Step, time.Second) * 5 / 2 }

// use returns c's series of a resource, nil if it is neither CPU nor memory.
func (c *Container) use(resource string) Series {
	switch resource {
	case "cpu":
		return c.CPU
	case "memory":
		return c.Memory
	}
	return nil
}

// of returns the amount of a resource, unset if it is neither CPU nor memory.
func of(r autoscaler.Requests, resource string) autoscaler.Amount {
	switch resource {
	case "cpu":
		return r.CPU
	case "memory":
		return r.Memory
	}
	return autoscaler.Amount{}
}

// StartupOf returns the median of delays, which it sorts.
func StartupOf(delays []time.Duration) Startup {
	if len(delays) == 0 {
		return Startup{}
	}
	slices.Sort(delays)
	return Startup{Median: delays[len(delays)/2], Pods: len(delays)}
}

// PodsOf returns a regular expression of the names of the pods that a controller of
// that kind and name makes, to be matched whole.
func PodsOf(kind, name string) string {
	name = regexp.QuoteMeta(name)
	switch kind {
	case "Deployment":
		return name + "-[a-z0-9]+-[a-z0-9]{5}"
	case "StatefulSet":
		return name + "-[0-9]+"
	case "ReplicaSet", "ReplicationController":
		return name + "-[a-z0-9]{5}"
	}
	return name + "-.+"
}
