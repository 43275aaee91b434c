package resize

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
)

// ResourceChange is the new request, limit or both of a container's resource, or of the pod's own if
// Container is empty. An Amount that is not set leaves the old value.
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
		requests, limits := after.of(change.Container)
		if requests == nil {
			return nil, fmt.Errorf("pod %s has no container %s: it has %s", p, change.Container, containerNames(p))
		}
		if change.Request.Set {
			*requests.of(change.Resource) = change.Request
		}
		if change.Limit.Set {
			*limits.of(change.Resource) = change.Limit
			if request := requests.of(change.Resource); !request.Set && change.Container != "" {
				*request = change.Limit // the API server sets the request to the limit by default
			}
		}
	}
	if p.PodLevel.Set {
		after.setPodLevelDefaults()
	}
	return &after, nil
}

// setPodLevelDefaults sets the requests and limits of the pod itself that are missing, as the API server
// of Kubernetes 1.37 does: a request to that of the containers, or else to the limit; a limit to that of
// the containers if each has one, and not below the request.
func (p *PodResources) setPodLevelDefaults() {
	for _, r := range Resources() {
		request, limit := p.PodLevel.Requests.of(r), p.PodLevel.Limits.of(r)
		rest := func(amounts func(*ContainerResources) *Amounts) (n int) {
			for i := range p.Containers {
				if !amounts(&p.Containers[i]).Get(r).Set {
					n++
				}
			}
			return n
		}
		switch {
		case request.Set:
		case rest(ownRequests) < len(p.Containers):
			*request = Of(p.together(r, ownRequests))
		default:
			*request = *limit
		}
		if request.Set && !limit.Set && rest(ownLimits) == 0 {
			*limit = Of(max(request.Value, p.together(r, ownLimits)))
		}
	}
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
		requests, limits := after.of(change.Container)
		request, limit := requests.Get(change.Resource), limits.Get(change.Resource)
		name := cmp.Or(change.Container, "the pod")
		switch {
		case change.Request.Set && request.Value < 0 || change.Limit.Set && limit.Value < 0:
			refusals = append(refusals, Refusal{Invalid, fmt.Sprintf("%s of %s cannot be below zero", change.Resource, name)})
		case request.Set && limit.Set && request.Value > limit.Value:
			refusals = append(refusals, Refusal{Invalid, fmt.Sprintf("%s of %s would request %s, above its limit of %s", change.Resource, name,
				Quantity(change.Resource, request.Value), Quantity(change.Resource, limit.Value))})
		}
	}
	if p.PodLevel.Set {
		refusals = append(refusals, after.podLevelConflicts()...)
	}
	if before, changed := p.class(), ClassOf(after); before != changed {
		refusals = append(refusals, Refusal{QoSClass, qosChangeMessage(before, changed)})
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
	if p.PodLevel.Fixed {
		add(PodLevel, "it has requests of its own (spec.resources), and its status does not report them: resizing such a pod takes the feature gate InPlacePodLevelResourcesVerticalScaling at the API server and the kubelet, which is on since Kubernetes 1.36")
	}
	switch {
	case p.Terminating:
		add(NotRunning, "it is being deleted")
	case p.Phase == string(cluster.Pending) && slices.ContainsFunc(p.Containers, func(c ContainerResources) bool { return c.Running }):
		// The others wait, for example for an init container.
	case p.Phase != string(cluster.Running):
		add(NotRunning, "it does not run: its phase is "+p.Phase)
	}
	return all
}

// podLevelConflicts returns how requests and limits of the pod itself contradict those of its
// containers.
func (p *PodResources) podLevelConflicts() (all []Refusal) {
	for _, r := range Resources() {
		request, limit := p.PodLevel.Requests.Get(r), p.PodLevel.Limits.Get(r)
		if sum := p.together(r, ownRequests); request.Set && sum > request.Value {
			all = append(all, Refusal{Invalid, fmt.Sprintf("%s of the pod would request %s, below the %s that its containers request", r, Quantity(r, request.Value), Quantity(r, sum))})
		}
		for i := range p.Containers {
			// Kubernetes compares no limits of init containers.
			if c := &p.Containers[i]; c.Role == cluster.Regular && limit.Set && c.Limits.Get(r).Value > limit.Value {
				all = append(all, Refusal{Invalid, fmt.Sprintf("the %s limit of %s would be %s, above the pod's of %s", r, c.Name, Quantity(r, c.Limits.Get(r).Value), Quantity(r, limit.Value))})
			}
		}
	}
	return all
}

// podLevelRefusals returns the reasons why a change of the pod's own requests or limits cannot be made
// in place.
func (p *PodResources) podLevelRefusals(change ResourceChange) (all []Refusal) {
	if !p.PodLevel.Set {
		all = append(all, Refusal{PodLevel, "the pod has no requests of its own (spec.resources): name a container"})
	}
	if !change.Limit.Set || change.Limit == p.PodLevel.Limits.Get(change.Resource) {
		return all
	}
	for i := range p.Containers {
		// The pod's limit is that of a container without one.
		if c := &p.Containers[i]; c.Role != cluster.Init && !c.Limits.Get(change.Resource).Set && slices.Contains(c.RestartsFor, change.Resource) {
			all = append(all, Refusal{Restarts, fmt.Sprintf("its resizePolicy restarts %s, which has the pod's limit, for a change of %s", c.Name, change.Resource)})
		}
	}
	return all
}

// changeRefusals returns the reasons why a change of one container, or of the pod itself, cannot be
// made in place.
func (p *PodResources) changeRefusals(change ResourceChange) (all []Refusal) {
	if change.Container == "" {
		return p.podLevelRefusals(change)
	}
	c := p.Container(change.Container)
	if c.Role == cluster.Init {
		alters := change.Request.Set && change.Request != c.Requests.Get(change.Resource) || change.Limit.Set && change.Limit != c.Limits.Get(change.Resource)
		if alters && len(c.RestartsFor) > 0 {
			all = append(all, Refusal{InitContainer, c.Name + " is an init container with RestartContainer in its resizePolicy, which Kubernetes does not resize"})
		}
		return all
	}
	if slices.Contains(c.RestartsFor, change.Resource) {
		all = append(all, Refusal{Restarts, fmt.Sprintf("its resizePolicy restarts %s for a change of %s", c.Name, change.Resource)})
	}
	return all
}

// qosChangeMessage returns the text for a change that would change the QoS class.
func qosChangeMessage(from, to Class) string {
	s := fmt.Sprintf("the pod's QoS class would change from %s to %s, which Kubernetes refuses because its cgroup is below that of its class", from, to)
	if from == Guaranteed {
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
