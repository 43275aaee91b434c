package autoscaler

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// RequestOf returns the request that the utilization of a pod or container is a share of, in
// thousandths. If a request is missing, the error says which one. With podLevel it uses pod-level
// requests; see Settings.PodLevelResources.
func RequestOf(p *PodInput, container string, resource corev1.ResourceName, podLevel bool) (int64, error) {
	if podLevel && p.PodLevel && container == "" {
		a := podLevelRequest(p, resource)
		if !a.Set {
			return 0, fmt.Errorf("pod %s has no request of %s: set spec.resources.requests.%s", p.Name, resource, resource)
		}
		if a.Milli == math.MaxInt64 {
			return 0, nil // Kubernetes counts a request that does not fit into its integer as 0
		}
		return a.Milli, nil
	}
	if container != "" {
		return containerRequest(p, container, resource)
	}
	var sum int64
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Role != cluster.Regular && c.Role != cluster.Sidecar {
			continue
		}
		a := c.Requests.Amount(resource)
		if !a.Set {
			return 0, firstMissingRequest(p, resource)
		}
		sum += a.Milli
	}
	return sum, nil
}

func containerRequest(p *PodInput, name string, resource corev1.ResourceName) (int64, error) {
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Name != name || c.Role != cluster.Regular && c.Role != cluster.Sidecar {
			continue
		}
		a := c.Requests.Amount(resource)
		if !a.Set {
			return 0, missingRequestError(p, c, resource)
		}
		return a.Milli, nil
	}
	return 0, fmt.Errorf("pod %s has no container %s", p.Name, name)
}

// firstMissingRequest returns an error that names the first container without a request. Like
// Kubernetes it prefers regular containers.
func firstMissingRequest(p *PodInput, resource corev1.ResourceName) error {
	for _, role := range [...]cluster.Role{cluster.Regular, cluster.Sidecar} {
		for i := range p.Containers {
			if c := &p.Containers[i]; c.Role == role && !c.Requests.Amount(resource).Set {
				return missingRequestError(p, c, resource)
			}
		}
	}
	return nil
}

func missingRequestError(p *PodInput, c *ContainerInput, resource corev1.ResourceName) error {
	return fmt.Errorf("container %s of pod %s has no request of %s: set resources.requests.%s", c.Name, p.Name, resource, resource)
}

// podLevelRequest returns the request that the scheduler uses for a pod with pod-level requests:
// the pod-level request, or the sum of the containers if the pod level does not have the resource,
// plus the overhead.
func podLevelRequest(p *PodInput, resource corev1.ResourceName) MilliQuantity {
	sum := p.Requests.Amount(resource)
	if !sum.Set {
		sum = sumContainers(p, resource)
	}
	return addCapped(sum, p.Overhead.Amount(resource))
}

// sumContainers adds up the requests of the containers as the scheduler does. Regular containers
// and sidecars run together. An init container runs together with the sidecars before it, and
// counts only if that sum is larger.
func sumContainers(p *PodInput, resource corev1.ResourceName) MilliQuantity {
	var sum, sidecars, most MilliQuantity
	for i := range p.Containers {
		c := &p.Containers[i]
		a := c.Requests.Amount(resource)
		switch c.Role {
		case cluster.Regular:
			sum = addCapped(sum, a)
		case cluster.Sidecar:
			sum = addCapped(sum, a)
			sidecars = addCapped(sidecars, a)
			most = largerAmount(most, sidecars)
		case cluster.Init:
			most = largerAmount(most, addCapped(a, sidecars))
		}
	}
	return largerAmount(sum, most)
}

// addCapped adds two amounts, up to math.MaxInt64.
func addCapped(a, b MilliQuantity) MilliQuantity {
	sum := a.Milli + b.Milli
	if a.Milli > 0 && b.Milli > 0 && sum < 0 {
		sum = math.MaxInt64
	}
	return MilliQuantity{sum, a.Set || b.Set}
}

func largerAmount(a, b MilliQuantity) MilliQuantity {
	if b.Set && (!a.Set || b.Milli > a.Milli) {
		return b
	}
	return a
}

// Amount returns the request for a resource. It is not set unless the resource is CPU or memory.
func (r *Requests) Amount(name corev1.ResourceName) MilliQuantity {
	switch name {
	case corev1.ResourceCPU:
		return r.CPU
	case corev1.ResourceMemory:
		return r.Memory
	}
	return MilliQuantity{}
}

// RequestsOf returns the requests of CPU and memory in the cluster facts.
func RequestsOf(r cluster.Requirements) Requests {
	return amounts(r, metric.CPURequest, metric.MemoryRequest)
}

// LimitsOf returns the limits of CPU and memory in the cluster facts.
func LimitsOf(r cluster.Requirements) Requests {
	return amounts(r, metric.CPULimit, metric.MemoryLimit)
}

// amounts returns CPU and memory rounded up to thousandths, as quantities are.
func amounts(v cluster.Requirements, cpu, memory metric.ID) (r Requests) {
	if nanocores, ok := v.Get(cpu); ok {
		r.CPU = MilliQuantity{Milli: int64(math.Ceil(nanocores / 1e6)), Set: true}
	}
	if bytes, ok := v.Get(memory); ok {
		r.Memory = MilliQuantity{Milli: milliBytes(bytes), Set: true}
	}
	return r
}

// milliBytes converts bytes to thousandths. Facts keep fractions of bytes below 4 TiB. Above 8 PiB
// the result is math.MaxInt64.
func milliBytes(bytes float64) int64 {
	switch {
	case bytes < 1<<42:
		return int64(math.Round(bytes * 1000))
	case bytes < 1<<53:
		return int64(bytes) * 1000
	default:
		return math.MaxInt64
	}
}
