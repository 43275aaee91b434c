package informer

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// nodeFacts returns what weir keeps of a node. The facts share only strings with n.
func nodeFacts(n *v1.Node) *cluster.Node {
	f := &cluster.Node{
		Name:          metric.NodeName(n.Name),
		KubeletPort:   n.Status.DaemonEndpoints.KubeletEndpoint.Port,
		Unschedulable: n.Spec.Unschedulable,
		Swap:          n.Status.NodeInfo.Swap != nil && ptr.Deref(n.Status.NodeInfo.Swap.Capacity, 0) > 0,
		Labels:        n.Labels,
	}
	if path, ok := n.Annotations[cluster.PathAnnotation]; ok {
		f.Annotations = map[string]string{cluster.PathAnnotation: path}
	}
	for _, a := range n.Status.Addresses {
		f.Addresses = append(f.Addresses, cluster.NodeAddress{Type: string(a.Type), Address: a.Address})
	}
	for i := range n.Status.Conditions {
		switch c := &n.Status.Conditions[i]; c.Type {
		case v1.NodeReady:
			f.Ready = c.Status == v1.ConditionTrue
		case v1.NodeGracefulNodeShutdownInProgress, v1.NodeDrainInProgress, v1.NodeDrained, v1.NodeMaintenancePlanned, v1.NodeMaintenanceInProgress:
			if c.Status == v1.ConditionTrue {
				f.Lifecycle = append(f.Lifecycle, cluster.NodeLifecycle(c.Type))
			}
		}
	}
	setResources(&f.Spec, n.Status.Capacity, resourceIDs{
		cpu: metric.CPUNodeCapacity, memory: metric.MemoryNodeCapacity, storage: metric.EphemeralStorageNodeCapacity,
	})
	setResources(&f.Spec, n.Status.Allocatable, resourceIDs{
		cpu: metric.CPUNodeAllocatable, memory: metric.MemoryNodeAllocatable, storage: metric.EphemeralStorageNodeAllocatable,
	})
	return f
}

// ConfigHashAnnotation is an annotation on the API server's copy of a static pod. The kubelet and
// cgroups identify the pod by its value, not by the UID that the copy has.
const ConfigHashAnnotation = "kubernetes.io/config.hash"

// podFacts returns what weir keeps of a pod that was first known at knownAt. Through shared, the
// facts share strings, label sets, requests and limits with those of other pods. They share nothing
// with p.
func podFacts(p *v1.Pod, knownAt time.Time, shared *pool) *cluster.Pod {
	f := &cluster.Pod{
		PodRef: metric.PodRef{
			Namespace: metric.Namespace(shared.text(p.Namespace)),
			Name:      metric.PodName(p.Name),
		},
		UID:         metric.PodUID(p.UID),
		ConfigHash:  cluster.NewConfigHash(metric.PodUID(p.Annotations[ConfigHashAnnotation])),
		Node:        metric.NodeName(shared.text(p.Spec.NodeName)),
		Phase:       cluster.Phase(shared.text(string(p.Status.Phase))),
		HostNetwork: p.Spec.HostNetwork,
		QoS:         shared.text(string(p.Status.QOSClass)),
		Labels:      shared.labels(p.Labels),
		KnownAt:     knownAt,
	}
	for i := range p.OwnerReferences {
		if o := &p.OwnerReferences[i]; o.Controller != nil && *o.Controller {
			f.Owner = shared.owner(o.Kind, o.Name)
		}
	}
	_, f.Mirror = p.Annotations[v1.MirrorPodAnnotationKey]
	if p.Status.StartTime != nil {
		f.Started = p.Status.StartTime.Time
	}
	if p.DeletionTimestamp != nil {
		f.Deleted = p.DeletionTimestamp.Time
	}
	f.Ready, f.ReadySince = readiness(p.Status.Conditions)
	f.Stop = podStop(&p.Status, shared)
	f.NoResize = slices.ContainsFunc(p.Status.ContainerStatuses, func(s v1.ContainerStatus) bool {
		return s.State.Running != nil && s.Resources == nil
	})
	if p.Spec.Resources != nil {
		f.Spec = shared.requirements(func(v *metric.Values) { setRequirements(v, p.Spec.Resources) })
		f.PodLevel = podLevel(p.Spec.Resources.Requests)
	}
	f.Overhead = shared.requirements(func(v *metric.Values) {
		setResources(v, p.Spec.Overhead, resourceIDs{
			cpu: metric.CPURequest, memory: metric.MemoryRequest, storage: metric.EphemeralStorageRequest,
		})
	})

	f.Containers = make([]cluster.Container, 0, len(p.Spec.InitContainers)+len(p.Spec.Containers)+len(p.Spec.EphemeralContainers))
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		f.Containers = append(f.Containers, containerFacts(c.Name, c.Image, cluster.InitRole(c.RestartPolicy), &c.Resources, p.Status.InitContainerStatuses, shared))
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		f.Containers = append(f.Containers, containerFacts(c.Name, c.Image, cluster.Regular, &c.Resources, p.Status.ContainerStatuses, shared))
	}
	for i := range p.Spec.EphemeralContainers {
		c := &p.Spec.EphemeralContainers[i]
		f.Containers = append(f.Containers, containerFacts(c.Name, c.Image, cluster.Ephemeral, &c.Resources, p.Status.EphemeralContainerStatuses, shared))
	}
	f.Resize = resizeOf(p, f, shared)
	shared.gather(f)
	return f
}

// readiness returns the status of the condition Ready, and since when it has this status.
func readiness(conditions []v1.PodCondition) (cluster.Readiness, time.Time) {
	for i := range conditions {
		c := &conditions[i]
		if c.Type != v1.PodReady {
			continue
		}
		switch c.Status {
		case v1.ConditionTrue:
			return cluster.ReadyTrue, c.LastTransitionTime.Time
		case v1.ConditionFalse:
			return cluster.ReadyFalse, c.LastTransitionTime.Time
		default:
			return cluster.ReadyUnknown, c.LastTransitionTime.Time
		}
	}
	return cluster.ReadyAbsent, time.Time{}
}

// The limits of the texts about its end that a pod's status has, in bytes. A kubelet takes 4,096 bytes of
// what a container writes.
const maxStopMessage, maxEndMessage = 1024, 512

// podStop returns what the status reports about why the pod is stopped; nil if it has nothing about it.
func podStop(s *v1.PodStatus, shared *pool) *cluster.PodStop {
	stop := cluster.PodStop{Reason: s.Reason, Message: s.Message}
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue {
			stop.Disruption, stop.Message = shared.text(c.Reason), cmp.Or(stop.Message, c.Message)
		}
	}
	if stop.Reason == "" && stop.Disruption == "" {
		return nil
	}
	stop.Reason, stop.Message = shared.text(stop.Reason), atMost(stop.Message, maxStopMessage)
	return &stop
}

// atMost returns a text with at most limit bytes. The rest of a longer one does not stay in memory.
func atMost(text string, limit int) string {
	if len(text) > limit {
		text = strings.ToValidUTF8(strings.Clone(text[:limit]), "")
	}
	return text
}

// podLevel reports whether requests contain a resource that makes them pod-level resources.
func podLevel(requests v1.ResourceList) bool {
	for name := range requests {
		if name == v1.ResourceCPU || name == v1.ResourceMemory || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			return true
		}
	}
	return false
}

func containerFacts(name, image string, role cluster.Role, r *v1.ResourceRequirements, statuses []v1.ContainerStatus, shared *pool) cluster.Container {
	f := cluster.Container{Name: shared.text(name), Image: shared.text(image), Role: role}
	// These are the requested values, not what a resize has achieved so far: users and the
	// scheduler use these.
	f.Spec = shared.requirements(func(v *metric.Values) { setRequirements(v, r) })
	for i := range statuses {
		if statuses[i].Name == name {
			setState(&f, &statuses[i], shared)
			break
		}
	}
	return f
}

func setState(f *cluster.Container, s *v1.ContainerStatus, shared *pool) {
	f.Restarts = s.RestartCount
	f.ID = bareID(s.ContainerID)
	var past cluster.PreviousRun
	if last := s.LastTerminationState.Terminated; last != nil {
		past = cluster.PreviousRun{LastID: bareID(last.ContainerID), StartedAt: last.StartedAt.Time, EndedAt: last.FinishedAt.Time, EndReason: shared.text(last.Reason), ExitCode: last.ExitCode, Signal: last.Signal, EndMessage: atMost(last.Message, maxEndMessage)}
	}
	switch state := &s.State; {
	case state.Running != nil:
		f.State = cluster.StateRunning
		f.StartedAt = state.Running.StartedAt.Time
	case state.Terminated != nil:
		t := state.Terminated
		f.State = cluster.StateTerminated
		f.StartedAt, past.EndedAt = t.StartedAt.Time, t.FinishedAt.Time
		past.StateReason = shared.text(t.Reason)
		past.EndReason, past.ExitCode, past.Signal, past.EndMessage = past.StateReason, t.ExitCode, t.Signal, atMost(t.Message, maxEndMessage)
		if t.ContainerID != "" {
			f.ID = bareID(t.ContainerID)
		}
	default: // by the API, no state means waiting
		f.State = cluster.StateWaiting
		if state.Waiting != nil {
			past.StateReason = shared.text(state.Waiting.Reason)
		}
		f.ID = cmp.Or(f.ID, past.LastID)
	}
	f.Previous = past.OrNil()
}

// bareID removes the name of the runtime from an ID: "containerd://4e00" becomes "4e00".
func bareID(id string) metric.ContainerID {
	if _, bare, found := strings.Cut(id, "://"); found {
		id = bare
	}
	return metric.ContainerID(id)
}

// resourceIDs are the metrics that hold the quantities of a ResourceList.
type resourceIDs struct {
	cpu, memory, storage metric.ID
	accelerators         metric.ID // 0 if not wanted
}

func setRequirements(v *metric.Values, r *v1.ResourceRequirements) {
	setResources(v, r.Requests, resourceIDs{
		cpu: metric.CPURequest, memory: metric.MemoryRequest, storage: metric.EphemeralStorageRequest,
		accelerators: metric.AcceleratorRequest,
	})
	setResources(v, r.Limits, resourceIDs{
		cpu: metric.CPULimit, memory: metric.MemoryLimit, storage: metric.EphemeralStorageLimit,
	})
}

// setResources adds the quantities of list to v. CPU is rounded up to the nanocore, exactly up to 9
// million cores. Memory is rounded by amountOfBytes, and storage is rounded up to the byte.
// Resources that are not in list stay absent.
func setResources(v *metric.Values, list v1.ResourceList, ids resourceIDs) {
	if q, ok := list[v1.ResourceCPU]; ok {
		v.Set(ids.cpu, float64(q.ScaledValue(resource.Nano)))
	}
	if q, ok := list[v1.ResourceMemory]; ok {
		v.Set(ids.memory, amountOfBytes(&q))
	}
	if q, ok := list[v1.ResourceEphemeralStorage]; ok {
		v.Set(ids.storage, float64(q.Value()))
	}
	if ids.accelerators == 0 {
		return
	}
	var n int64
	for name, q := range list {
		if isAccelerator(string(name)) {
			n += q.Value()
		}
	}
	if n > 0 {
		v.Set(ids.accelerators, float64(n))
	}
}

// wholeBytes is 4 TiB. From there on a float64 cannot represent thousandths of a byte.
const wholeBytes = 1 << 42

// amountOfBytes returns q rounded up to a thousandth of a byte, above 4 TiB to a byte, and above 8
// PiB to the nearest float64. An autoscaler counts in thousandths, and some manifests contain
// 128974848000m.
func amountOfBytes(q *resource.Quantity) float64 {
	if whole := q.Value(); whole >= wholeBytes || whole <= -wholeBytes {
		return float64(whole)
	}
	return float64(q.MilliValue()) / 1000
}

// isAccelerator reports whether an extended resource counts accelerators: nvidia.com/gpu,
// nvidia.com/mig-1g.5gb, amd.com/gpu, google.com/tpu, aws.amazon.com/neuroncore, habana.ai/gaudi
// and similar ones. There is no registry of such names.
func isAccelerator(name string) bool {
	domain, device, found := strings.Cut(name, "/")
	if !found || strings.HasSuffix(domain, "kubernetes.io") {
		return false
	}
	if domain == "gpu.intel.com" {
		return device == "i915" || device == "xe" // the others count its memory and millicores
	}
	return slices.ContainsFunc([]string{"gpu", "tpu", "npu", "mig-", "neuron", "gaudi"}, func(prefix string) bool {
		return strings.HasPrefix(device, prefix)
	})
}
