package eviction

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Notice is a notice to ask a memory cgroup (version 1) for.
type Notice struct {
	// Path is the directory of the cgroup, Attribute the file in it that is watched.
	Path, Attribute string
	// Bytes is the figure that gives notice when it is crossed, of which WorkingSet are
	// without the page cache that the kernel could drop.
	Bytes, WorkingSet int64
}

// Cgroups is where the node's memory cgroups are.
type Cgroups struct {
	// Mount is where the hierarchy is mounted, Pods the cgroup of all pods in it, with a
	// slash in front.
	Mount, Pods string
}

// Notice returns the notice that comes when a memory threshold is crossed, as things are
// now. The kernel counts page cache that it could drop as used, and the threshold does not: the
// figure moves with it, and must be set anew from time to time (Decision.RefreshNotifiers).
func (t *Threshold) Notice(s *stats.Summary, c Cgroups) (Notice, error) {
	n := Notice{Path: c.Mount, Attribute: "memory.usage_in_bytes"}
	m := s.Node.Memory
	switch t.Signal {
	case MemoryAvailable:
	case AllocatableMemoryAvailable:
		n.Path += c.Pods
		m = allPods(s)
	default:
		return Notice{}, errors.New("the kernel gives no notice of " + string(t.Signal))
	}
	if m == nil || m.UsageBytes == nil || m.WorkingSetBytes == nil || m.AvailableBytes == nil {
		return Notice{}, errors.New("compute the notice of " + string(t.Signal) + ": the summary lacks the memory's usage, working set or available bytes")
	}
	droppable := int64(*m.UsageBytes - *m.WorkingSetBytes)
	capacity := int64(*m.AvailableBytes + *m.WorkingSetBytes)
	figure := resource.NewQuantity(capacity, resource.BinarySI)
	figure.Sub(t.Value.of(capacity))
	n.WorkingSet = figure.Value()
	figure.Add(*resource.NewQuantity(droppable, resource.BinarySI))
	n.Bytes = figure.Value()
	return n, nil
}

// Describe is what the kubelet calls the notifier of a threshold.
func (t *Threshold) Describe() string {
	s := "soft "
	if t.Hard() {
		s = "hard "
	}
	if t.Signal == AllocatableMemoryAvailable {
		s += "allocatable "
	}
	return s + "memory eviction threshold"
}
