package autoscaler

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
)

// RequestOf returns what utilization of a pod, or of one of its containers, is
// measured against, in thousandths, or why it has no such request. Pod-level requests
// are honoured: see Settings.PodLevelResources.
func RequestOf(p *Pod, container string, resource corev1.ResourceName) (int64, error) {
	return requestOf(p, container, resource, true)
}

func requestOf(p *Pod, container string, resource corev1.ResourceName, podLevel bool) (int64, error) {
	if podLevel && p.PodLevel && container == "" {
		a := whole(p, resource)
		if !a.Set {
			return 0, fmt.Errorf("pod %s has no request of %s: set spec.resources.requests.%s", p.Name, resource, resource)
		}
		if a.Milli == math.MaxInt64 {
			return 0, nil // Kubernetes adds quantities up, and one that does not fit is none
		}
		return a.Milli, nil
	}
	if container != "" {
		return ofContainer(p, container, resource)
	}
	var sum int64
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Role != cluster.Regular && c.Role != cluster.Sidecar {
			continue
		}
		a := c.Requests.of(resource)
		if !a.Set {
			return 0, unrequested(p, resource)
		}
		sum += a.Milli
	}
	return sum, nil
}

func ofContainer(p *Pod, name string, resource corev1.ResourceName) (int64, error) {
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Name != name || c.Role != cluster.Regular && c.Role != cluster.Sidecar {
			continue
		}
		a := c.Requests.of(resource)
		if !a.Set {
			return 0, noRequest(p, c, resource)
		}
		return a.Milli, nil
	}
	return 0, fmt.Errorf("pod %s has no container %s", p.Name, name)
}

// unrequested names the first container without a request: a regular one, if there
// is one, as Kubernetes does.
func unrequested(p *Pod, resource corev1.ResourceName) error {
	for _, role := range [...]cluster.Role{cluster.Regular, cluster.Sidecar} {
		for i := range p.Containers {
			if c := &p.Containers[i]; c.Role == role && !c.Requests.of(resource).Set {
				return noRequest(p, c, resource)
			}
		}
	}
	return nil
}

func noRequest(p *Pod, c *Container, resource corev1.ResourceName) error {
	return fmt.Errorf("container %s of pod %s has no request of %s: set resources.requests.%s", c.Name, p.Name, resource, resource)
}

// whole is what the scheduler counts for a pod with pod-level requests: those, or the
// containers' where it has none of this resource; and the overhead.
func whole(p *Pod, resource corev1.ResourceName) Amount {
	sum := p.Requests.of(resource)
	if !sum.Set {
		sum = ofContainers(p, resource)
	}
	return plus(sum, p.Overhead.of(resource))
}

// ofContainers adds containers' requests up as the scheduler does: regular containers
// and sidecars run together; a plain init container runs beside the sidecars that
// stand before it, and counts only where that is more.
func ofContainers(p *Pod, resource corev1.ResourceName) Amount {
	var sum, sidecars, most Amount
	for i := range p.Containers {
		c := &p.Containers[i]
		a := c.Requests.of(resource)
		switch c.Role {
		case cluster.Regular:
			sum = plus(sum, a)
		case cluster.Sidecar:
			sum = plus(sum, a)
			sidecars = plus(sidecars, a)
			most = larger(most, sidecars)
		case cluster.Init:
			most = larger(most, plus(a, sidecars))
		}
	}
	return larger(sum, most)
}

// plus adds up, to no more than the largest number there is.
func plus(a, b Amount) Amount {
	sum := a.Milli + b.Milli
	if a.Milli > 0 && b.Milli > 0 && sum < 0 {
		sum = math.MaxInt64
	}
	return Amount{sum, a.Set || b.Set}
}

func larger(a, b Amount) Amount {
	if b.Set && (!a.Set || b.Milli > a.Milli) {
		return b
	}
	return a
}

func (r *Requests) of(name corev1.ResourceName) Amount {
	switch name {
	case corev1.ResourceCPU:
		return r.CPU
	case corev1.ResourceMemory:
		return r.Memory
	}
	return Amount{}
}
