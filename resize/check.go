package resize

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
)

// ResourceChange is the new request, limit or both of a container's resource. An Amount that is not
// set leaves the old value.
type ResourceChange struct {
	Container      string
	Resource       Resource
	Request, Limit Amount
}

// With returns p after changes. It fails if p does not have one of the containers.
func (p *PodResources) With(changes []ResourceChange) (*PodResources, error) {
	after := *p
	after.Containers = slices.Clone(p.Containers)
	for _, change := range changes {
		c := after.Container(change.Container)
		if c == nil {
			return nil, fmt.Errorf("pod %s has no container %s: it has %s", p, change.Container, containerNames(p))
		}
		if change.Request.Set {
			*c.Requests.of(change.Resource) = change.Request
		}
		if change.Limit.Set {
			*c.Limits.of(change.Resource) = change.Limit
			if request := c.Requests.of(change.Resource); !request.Set {
				*request = change.Limit // the API server sets the request to the limit by default
			}
		}
	}
	return &after, nil
}

// Check returns the reasons why changes cannot be made to p in place. It returns none if they can.
// The rules are those of Kubernetes' validation (ValidatePodResize) and of resize policies. It does
// not check what depends on the cluster, such as room on the node. It fails if p does not have one
// of the containers.
func Check(p *PodResources, changes []ResourceChange) ([]Refusal, error) {
	after, err := p.With(changes)
	if err != nil {
		return nil, err
	}
	refusals := p.podRefusals()
	for _, change := range changes {
		refusals = append(refusals, p.changeRefusals(change)...)
		c := after.Container(change.Container)
		request, limit := c.Requests.Get(change.Resource), c.Limits.Get(change.Resource)
		switch {
		case change.Request.Set && request.Value < 0 || change.Limit.Set && limit.Value < 0:
			refusals = append(refusals, Refusal{Invalid, fmt.Sprintf("%s of %s cannot be below zero", change.Resource, change.Container)})
		case request.Set && limit.Set && request.Value > limit.Value:
			refusals = append(refusals, Refusal{Invalid, fmt.Sprintf("%s of %s would request %s, above its limit of %s", change.Resource, change.Container,
				Quantity(change.Resource, request.Value), Quantity(change.Resource, limit.Value))})
		}
	}
	if was, is := p.class(), ClassOf(after); was != is {
		refusals = append(refusals, Refusal{QoSClass, qosChangeMessage(was, is)})
	}
	return refusals, nil
}

// podRefusals returns the reasons why no container of the pod can be changed in place.
func (p *PodResources) podRefusals() []Refusal {
	var all []Refusal
	add := func(reason AdviceReason, message string) { all = append(all, Refusal{reason, message}) }
	if p.Static {
		add(Static, "it is a static pod: change its manifest on the node")
	}
	if p.Windows {
		add(Windows, "it is a Windows pod, and only Linux pods are resized in place")
	}
	if p.OldKubelet {
		add(OldKubelet, "its node's kubelet does not resize in place: that takes Kubernetes 1.33 or later")
	}
	switch {
	case p.Terminating:
		add(NotRunning, "it is being deleted")
	case p.Phase != string(cluster.Running):
		add(NotRunning, "it does not run: its phase is "+p.Phase)
	}
	return all
}

// changeRefusals returns the reasons why a change of one container cannot be made in place.
func (p *PodResources) changeRefusals(change ResourceChange) (all []Refusal) {
	c := p.Container(change.Container)
	if c.Role == cluster.Init {
		all = append(all, Refusal{InitContainer, c.Name + " is an init container, which ends before the others start"})
	}
	if slices.Contains(c.RestartsFor, change.Resource) {
		all = append(all, Refusal{Restarts, fmt.Sprintf("its resizePolicy restarts %s for a change of %s", c.Name, change.Resource)})
	}
	return all
}

// qosChangeMessage returns the text for a change that would change the QoS class.
func qosChangeMessage(was, is Class) string {
	s := fmt.Sprintf("the pod's QoS class would change from %s to %s, which Kubernetes refuses, for its cgroup is below that of its class", was, is)
	if was == Guaranteed {
		s += "; requests and limits of a Guaranteed pod change together"
	}
	return s
}

func containerNames(p *PodResources) string {
	names := make([]string, len(p.Containers))
	for i := range p.Containers {
		names[i] = p.Containers[i].Name
	}
	return strings.Join(names, ", ")
}

// Quantity returns an amount of a resource as Kubernetes writes it: "250m", "64Mi".
func Quantity(r Resource, value int64) *resource.Quantity {
	if r == Memory {
		return resource.NewQuantity(value, resource.BinarySI)
	}
	return resource.NewMilliQuantity(value, resource.DecimalSI)
}
