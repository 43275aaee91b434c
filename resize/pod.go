package resize

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Resource is a resource that can be resized in place.
type Resource string

// The resources. Kubernetes cannot resize others.
const (
	CPU    Resource = "cpu"
	Memory Resource = "memory"
)

// Resources returns all resources.
func Resources() []Resource { return []Resource{CPU, Memory} }

// Amount is an optional amount of a resource, in millicores or bytes. An amount that is not set is
// different from zero.
type Amount struct {
	Value int64
	Set   bool
}

// Of returns an amount that is set to value.
func Of(value int64) Amount { return Amount{value, true} }

// Amounts is an amount of each resource.
type Amounts struct{ CPU, Memory Amount }

// Get returns the amount of a resource.
func (a *Amounts) Get(r Resource) Amount { return *a.of(r) }

func (a *Amounts) of(r Resource) *Amount {
	if r == Memory {
		return &a.Memory
	}
	return &a.CPU
}

// PodResources is the part of a pod that a resize needs.
type PodResources struct {
	Namespace, Name, UID, Node string
	// QoS is the class in the pod's status. The kubelet has chosen the pod's cgroup by it. If it is
	// empty, ClassOf is used.
	QoS Class
	// Phase is the phase in the pod's status.
	Phase       string
	Terminating bool
	// Static means that the pod comes from a file on the node, not from the API server.
	Static  bool
	Windows bool
	// PodLevel has the requests and limits of the pod itself (spec.resources). If there are any, they
	// determine the class and what the scheduler reserves.
	PodLevel struct {
		Requests, Limits Amounts
		Set              bool
		// Fixed means that the cluster cannot resize a pod with them, or the node's kubelet cannot: the
		// pod's status does not report them.
		Fixed bool
	}
	// Overhead is that of the pod's RuntimeClass. The kubelet adds it in the pod's cgroup.
	Overhead Amounts
	// Resizing describes a resize in progress, from its conditions; empty if there is none.
	Resizing string
	// OldKubelet means that the node's kubelet cannot resize in place: it does not report the
	// resources of containers.
	OldKubelet bool
	Containers []ContainerResources // init containers first, in the order in which they start
}

// ContainerResources is a container of a pod.
type ContainerResources struct {
	Name             string
	Role             cluster.Role
	Running          bool
	Requests, Limits Amounts
	// RestartsFor are the resources that restart the container when they are resized, by its
	// resizePolicy.
	RestartsFor []Resource
}

// Container returns the container of that name, or nil.
func (p *PodResources) Container(name string) *ContainerResources {
	i := slices.IndexFunc(p.Containers, func(c ContainerResources) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Containers[i]
}

// of returns the requests and limits of a container, or those of the pod itself if the name is empty.
// Both are nil if there is no such container.
func (p *PodResources) of(container string) (requests, limits *Amounts) {
	if container == "" {
		return &p.PodLevel.Requests, &p.PodLevel.Limits
	}
	if c := p.Container(container); c != nil {
		return &c.Requests, &c.Limits
	}
	return nil, nil
}

// String returns namespace/name.
func (p *PodResources) String() string { return p.Namespace + "/" + p.Name }

// FromPod converts a pod of the API server. Requests and limits come from the spec, even if the
// kubelet has not applied them yet.
func FromPod(p *corev1.Pod) *PodResources {
	to := &PodResources{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Node: p.Spec.NodeName,
		QoS: Class(p.Status.QOSClass), Phase: string(p.Status.Phase), Terminating: p.DeletionTimestamp != nil,
		Windows: p.Spec.OS != nil && p.Spec.OS.Name == corev1.Windows, Resizing: resizing(p), OldKubelet: oldKubelet(p),
	}
	to.Overhead = amounts(p.Spec.Overhead)
	_, to.Static = p.Annotations[corev1.MirrorPodAnnotationKey]
	if r := p.Spec.Resources; resourcehelper.IsPodLevelResourcesSet(p) {
		to.PodLevel.Set = true
		to.PodLevel.Requests, to.PodLevel.Limits = amounts(r.Requests), amounts(r.Limits)
		to.PodLevel.Fixed = p.Status.Phase == corev1.PodRunning && p.Status.Resources == nil
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		to.Containers = append(to.Containers, newContainer(c, cluster.InitRole(c.RestartPolicy), p.Status.InitContainerStatuses))
	}
	for i := range p.Spec.Containers {
		to.Containers = append(to.Containers, newContainer(&p.Spec.Containers[i], cluster.Regular, p.Status.ContainerStatuses))
	}
	return to
}

func newContainer(c *corev1.Container, role cluster.Role, statuses []corev1.ContainerStatus) ContainerResources {
	to := ContainerResources{Name: c.Name, Role: role, Requests: amounts(c.Resources.Requests), Limits: amounts(c.Resources.Limits)}
	for _, s := range statuses {
		to.Running = to.Running || s.Name == c.Name && s.State.Running != nil
	}
	for _, policy := range c.ResizePolicy {
		if policy.RestartPolicy == corev1.RestartContainer {
			to.RestartsFor = append(to.RestartsFor, Resource(policy.ResourceName))
		}
	}
	return to
}

// amounts converts quantities. It rounds up, as the scheduler and the kubelet do.
func amounts(list corev1.ResourceList) (a Amounts) {
	if q, ok := list[corev1.ResourceCPU]; ok {
		a.CPU = Of(q.MilliValue())
	}
	if q, ok := list[corev1.ResourceMemory]; ok {
		a.Memory = Of(q.Value())
	}
	return a
}

// resizing describes the conditions of a resize in progress.
func resizing(p *corev1.Pod) string {
	var texts []string
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue || c.Type != corev1.PodResizePending && c.Type != corev1.PodResizeInProgress {
			continue
		}
		text := string(c.Type)
		if c.Reason != "" {
			text += fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// oldKubelet reports whether the kubelet cannot resize in place. It uses the same sign as the API
// server: a kubelet that can resize reports the resources of running containers.
func oldKubelet(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil {
			return s.Resources == nil
		}
	}
	return false
}

// FromFacts converts a pod of the cluster facts. The facts have no resize policies and no resources in
// the status, so RestartsFor, Resizing, PodLevel.Fixed and Windows are not set.
func FromFacts(p *cluster.Pod) *PodResources {
	to := &PodResources{
		Namespace: string(p.Namespace), Name: string(p.Name), UID: string(p.UID), Node: string(p.Node),
		QoS: Class(p.QoS), Phase: string(p.Phase), Terminating: !p.Deleted.IsZero(), Static: p.Mirror,
		Overhead: requests(p.Overhead), OldKubelet: p.NoResize,
	}
	to.PodLevel.Requests, to.PodLevel.Limits = requests(p.Spec), limits(p.Spec)
	to.PodLevel.Set = p.PodLevel || p.Spec.Len() > 0
	for i := range p.Containers {
		if c := &p.Containers[i]; c.Role != cluster.Ephemeral { // an ephemeral container cannot have requests
			to.Containers = append(to.Containers, ContainerResources{
				Name: c.Name, Role: c.Role, Running: c.State == cluster.StateRunning, Requests: requests(c.Spec), Limits: limits(c.Spec),
			})
		}
	}
	return to
}

func requests(v cluster.Requirements) Amounts {
	return Amounts{millicores(v, metric.CPURequest), bytes(v, metric.MemoryRequest)}
}

func limits(v cluster.Requirements) Amounts {
	return Amounts{millicores(v, metric.CPULimit), bytes(v, metric.MemoryLimit)}
}

func millicores(v cluster.Requirements, id metric.ID) Amount {
	nano, ok := v.Get(id)
	return Amount{int64(math.Ceil(nano / 1e6)), ok}
}

func bytes(v cluster.Requirements, id metric.ID) Amount {
	n, ok := v.Get(id)
	return Amount{int64(math.Ceil(n)), ok}
}

// Class is the quality-of-service class of a pod, with Kubernetes' name. The kubelet creates a
// pod's cgroup below the cgroup of its class.
type Class string

// The classes.
const (
	Guaranteed Class = "Guaranteed"
	Burstable  Class = "Burstable"
	BestEffort Class = "BestEffort"
)

// ClassOf returns the class that follows from p's requests and limits, as the API server of Kubernetes
// 1.37 computes it (k8s.io/kubernetes/pkg/apis/core/v1/helper/qos). A pod is Guaranteed if each
// container has equal requests and limits of both resources, and BestEffort if no container has any;
// zero counts as not set. Requests and limits of the pod itself replace those of its containers.
// Earlier releases add over the containers, with the same class for every pod that they accept.
func ClassOf(p *PodResources) Class {
	list := p.Containers
	if p.PodLevel.Set {
		list = []ContainerResources{{Requests: p.PodLevel.Requests, Limits: p.PodLevel.Limits}}
	}
	class := BestEffort
	for i := range list {
		for k, r := range Resources() {
			request, limit := list[i].Requests.Get(r).Value, list[i].Limits.Get(r).Value
			own := Guaranteed
			switch {
			case request != limit:
				return Burstable
			case request == 0:
				own = BestEffort
			}
			if first := i == 0 && k == 0; !first && own != class {
				return Burstable
			}
			class = own
		}
	}
	return class
}

// class returns the class in the pod's status. If there is none, it returns ClassOf(p).
func (p *PodResources) class() Class {
	if p.QoS != "" {
		return p.QoS
	}
	return ClassOf(p)
}

// Reserved returns what the scheduler reserves on the node for p, without the overhead of its
// RuntimeClass. It is the sum of the containers that run at once. If an init container, with the
// sidecars started before it, needs more, it is that amount (KEP 753).
func Reserved(p *PodResources) (sum Amounts) {
	for _, r := range Resources() {
		if own := p.PodLevel.Requests.Get(r); own.Set {
			*sum.of(r) = own
			continue
		}
		*sum.of(r) = Of(p.together(r, ownRequests))
	}
	return sum
}

func ownRequests(c *ContainerResources) *Amounts { return &c.Requests }
func ownLimits(c *ContainerResources) *Amounts   { return &c.Limits }

// together returns the requests or limits of the containers of p together: what they have at one time.
func (p *PodResources) together(r Resource, amounts func(*ContainerResources) *Amounts) int64 {
	var sidecars, most int64
	for i := range p.Containers {
		c := &p.Containers[i]
		amount := amounts(c).Get(r).Value
		switch c.Role {
		case cluster.Init:
			most = max(most, sidecars+amount)
		case cluster.Sidecar:
			sidecars += amount
			most = max(most, sidecars)
		}
	}
	together := sidecars
	for i := range p.Containers {
		if c := &p.Containers[i]; c.Role == cluster.Regular {
			together += amounts(c).Get(r).Value
		}
	}
	return max(together, most)
}

// Plus returns a+b. What is not set in a stays so.
func (a Amounts) Plus(b Amounts) Amounts {
	a.CPU.Value += b.CPU.Value
	a.Memory.Value += b.Memory.Value
	return a
}

// minus returns a-b.
func (a Amounts) minus(b Amounts) Amounts {
	return Amounts{Of(a.CPU.Value - b.CPU.Value), Of(a.Memory.Value - b.Memory.Value)}
}
