package informer

import (
	"cmp"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// resizable are the requests and limits that a resize in place changes. A difference below what the node can
// apply is none: cgroups have memory limits in whole pages.
var resizable = [...]struct {
	id       metric.ID
	overhead metric.ID // where the facts have the overhead of the pod
	smallest float64
}{
	{metric.CPURequest, metric.CPURequest, 1e6}, {metric.CPULimit, metric.CPURequest, 1e6},
	{metric.MemoryRequest, metric.MemoryRequest, 4096}, {metric.MemoryLimit, metric.MemoryRequest, 4096},
}

// resizeOf returns the resize of a pod that its node has not applied; nil if there is none, as for most pods.
// f are the facts of p.
func resizeOf(p *v1.Pod, f *cluster.Pod, shared *pool) *cluster.Resize {
	if p.Status.Phase != v1.PodRunning {
		return nil
	}
	var r cluster.Resize
	for _, c := range p.Status.Conditions {
		if c.Status == v1.ConditionTrue && (c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress && r.State == "") {
			r.State, r.Message = cmp.Or(c.Reason, "InProgress"), c.Message
		}
	}
	for i := range f.Containers {
		c := &f.Containers[i]
		if s := statusOf(p, c.Name); c.Role != cluster.Ephemeral && s != nil && s.State.Running != nil && s.Resources != nil {
			addApplied(&r, c.Name, c.Spec.Values(), nil, s.Resources)
		}
	}
	if status := &p.Status; status.Resources != nil && f.Spec.Len() > 0 {
		// The requests in status.resources are read from the pod's cgroup, which rounds them.
		addApplied(&r, "", f.Spec.Values(), f.Overhead.Values(), &v1.ResourceRequirements{Requests: status.AllocatedResources, Limits: status.Resources.Limits})
	}
	if len(r.Applied) == 0 && r.State == "" {
		return nil
	}
	r.State, r.Message = shared.text(r.State), atMost(r.Message, maxEndMessage)
	return &r
}

// addApplied adds the values of actual that differ from those of spec and overhead.
func addApplied(r *cluster.Resize, container string, spec, overhead *metric.Values, actual *v1.ResourceRequirements) {
	var applied metric.Values
	setRequirements(&applied, actual)
	for _, k := range resizable {
		want, asked := spec.Get(k.id)
		got, known := applied.Get(k.id)
		switch {
		case !asked:
			continue
		case !known && r.State != "":
			got = -1
		case !known:
			continue // this node does not report it
		}
		if overhead != nil {
			more, _ := overhead.Get(k.overhead)
			want += more
		}
		if got < 0 || got-want >= k.smallest || want-got >= k.smallest {
			r.Applied = append(r.Applied, cluster.Applied{Container: container, ID: k.id, Spec: want, Value: got})
		}
	}
}

// statusOf returns the status of a container, or nil.
func statusOf(p *v1.Pod, container string) *v1.ContainerStatus {
	for _, list := range [...][]v1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}
