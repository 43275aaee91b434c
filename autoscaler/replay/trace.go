package replay

import (
	"regexp"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/trace"
)

// Trace is the data of a workload over time.
type Trace struct {
	// Namespace and Target identify the workload: "shop", "Deployment/web".
	Namespace, Target string
	From, To          time.Time
	// Step is the usual time between two points, at least a second. A value is valid for two and a
	// half steps; if the next point is later, there is a gap.
	Step time.Duration
	// Containers are the containers of each pod, sorted by name.
	Containers []TraceContainer
	// PodLevel are the pod-level requests, spec.resources.requests; nil if there are none.
	PodLevel *autoscaler.Requests
	// Overhead is the overhead of the pods' RuntimeClass.
	Overhead autoscaler.Requests
	// Named has custom and external metrics, by name. A metric of pods is the sum over the pods, a
	// metric of an object is its value, and an external metric is the sum of its series.
	Named map[string]Series
	// Replicas is the requested number of pods; empty if not known.
	Replicas Series
	// Startup describes how long pods took to become ready.
	Startup Startup
	// Notes are sentences for the reader, from the source of the trace.
	Notes []string
}

// TraceContainer is one container of each pod.
type TraceContainer struct {
	Name string
	// Role is Regular, Init or Sidecar.
	Role     cluster.Role
	Requests autoscaler.Requests
	Limits   autoscaler.Requests
	// CPU in cores and Memory in bytes are the sums over all pods.
	CPU, Memory Series
}

// Startup is the median time from a pod's start until it was ready. Pods is the number of pods that
// started within the trace; if it is 0, Median is not set.
type Startup struct {
	Median time.Duration
	Pods   int
}

// Series is a value over time, in order of time.
type Series = trace.Series

// maxAge is how long a value of the trace is valid.
func (t *Trace) maxAge() time.Duration { return max(t.Step, time.Second) * 5 / 2 }

// usage returns the series of a resource; nil unless it is cpu or memory.
func (c *TraceContainer) usage(resource string) Series {
	switch resource {
	case "cpu":
		return c.CPU
	case "memory":
		return c.Memory
	}
	return nil
}

// StartupOf returns the median of delays. It sorts them.
func StartupOf(delays []time.Duration) Startup {
	if len(delays) == 0 {
		return Startup{}
	}
	slices.Sort(delays)
	return Startup{Median: delays[len(delays)/2], Pods: len(delays)}
}

// PodsOf returns a regular expression for the full names of the pods of a controller with that kind
// and name.
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

// Needs lists the metrics that a trace must have for a specification.
type Needs struct {
	// Resources are the required resources: "cpu" and "memory".
	Resources []string
	// Named are the required custom and external metrics; Pods are those of them that are metrics of
	// pods.
	Named []string
	Pods  []string
}

// Add adds the metrics of spec.
func (n *Needs) Add(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
	add := func(to *[]string, name string) {
		if !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	for i := range spec.Metrics {
		switch m := &spec.Metrics[i]; {
		case m.Resource != nil:
			add(&n.Resources, string(m.Resource.Name))
		case m.ContainerResource != nil:
			add(&n.Resources, string(m.ContainerResource.Name))
		case m.Pods != nil:
			add(&n.Named, m.Pods.Metric.Name)
			add(&n.Pods, m.Pods.Metric.Name)
		case m.Object != nil:
			add(&n.Named, m.Object.Metric.Name)
		case m.External != nil:
			add(&n.Named, m.External.Metric.Name)
		}
	}
}
