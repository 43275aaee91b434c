package apply

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/resize"
)

// Stage is the progress of a resize.
type Stage string

// The stages.
const (
	// Asked means that the kubelet has not seen the resize yet.
	Asked Stage = "Asked"
	// Deferred means that the node has no room now. The kubelet tries again when there is room.
	Deferred Stage = "Deferred"
	// Infeasible means that the kubelet refuses the resize. This is final.
	Infeasible Stage = "Infeasible"
	// InProgress means that the kubelet has accepted the resize and is changing the containers.
	InProgress Stage = "InProgress"
	// Failing means that the kubelet failed to change the containers. It tries again.
	Failing Stage = "Failing"
	// Done means that the containers have the requested values.
	Done Stage = "Done"
	// Superseded means that the pod was changed again later. This is final.
	Superseded Stage = "Superseded"
	// Gone means that the pod has ended, or another pod has its name. This is final.
	Gone Stage = "Gone"
)

// Final reports whether the stage cannot change any more.
func (s Stage) Final() bool { return s == Infeasible || s == Done || s == Superseded || s == Gone }

// ResizeState is a stage with the kubelet's message.
type ResizeState struct {
	Stage   Stage  `json:"stage,omitempty"`
	Message string `json:"message,omitempty"`
}

// PendingResize is a resize that the API server accepted.
type PendingResize struct {
	UID string
	// Generation is the pod's generation (metadata.generation) after the patch.
	Generation int64
	Changes    []resize.ResourceChange
}

// StageOf returns the stage of a resize. p is the pod in the API server; nil if the pod was
// deleted. Conditions of an earlier generation are ignored.
func StageOf(p *corev1.Pod, asked *PendingResize) ResizeState {
	switch {
	case p == nil:
		return ResizeState{Gone, "the pod was deleted"}
	case string(p.UID) != asked.UID:
		return ResizeState{Gone, "the pod was deleted, and another has its name"}
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return ResizeState{Gone, "the pod ended: its phase is " + string(p.Status.Phase)}
	}
	for _, c := range asked.Changes {
		if words := difference(specResources(p, c.Container), c); words != "" {
			return ResizeState{Superseded, "a later request changed it: " + words}
		}
	}
	if s := conditionStage(p, asked); s.Stage != "" {
		return s
	}
	if !asked.seenBy(p.Status.ObservedGeneration) {
		return ResizeState{Stage: Asked}
	}
	for _, c := range asked.Changes {
		stage := containerStage
		if c.Container == "" {
			stage = podLevelStage
		}
		if s := stage(p, c); s.Stage != Done {
			return s
		}
	}
	return ResizeState{Stage: Done}
}

// seenBy reports whether an observed generation includes the resize; 0 means that none is reported.
func (r *PendingResize) seenBy(generation int64) bool {
	return generation == 0 || generation >= r.Generation
}

// conditionStage returns the stage that the pod's conditions show; empty if they show none.
func conditionStage(p *corev1.Pod, asked *PendingResize) ResizeState {
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue || !asked.seenBy(c.ObservedGeneration) {
			continue
		}
		switch {
		case c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible:
			return ResizeState{Infeasible, c.Message}
		case c.Type == corev1.PodResizePending:
			return ResizeState{Deferred, c.Message}
		case c.Type == corev1.PodResizeInProgress && c.Reason == corev1.PodReasonError:
			return ResizeState{Failing, c.Message}
		case c.Type == corev1.PodResizeInProgress:
			return ResizeState{InProgress, c.Message}
		}
	}
	return ResizeState{}
}

// containerStage returns the stage of a change of one container, by its status.
func containerStage(p *corev1.Pod, c resize.ResourceChange) ResizeState {
	s := containerStatus(p, c.Container)
	if s == nil || s.Resources == nil {
		return ResizeState{Asked, "the kubelet does not report the resources of " + c.Container}
	}
	allocated := s.AllocatedResources[corev1.ResourceName(c.Resource)]
	if c.Request.Set && !sameAmount(c.Resource, allocated, c.Request) {
		return ResizeState{Asked, fmt.Sprintf("the kubelet has %s of %s allocated to %s", allocated.String(), c.Resource, c.Container)}
	}
	if words := difference(s.Resources, c); words != "" {
		return ResizeState{InProgress, "the kubelet reports " + words}
	}
	return ResizeState{Stage: Done}
}

// podLevelStage returns the stage of a change of the pod's own requests and limits. The status has them
// with the overhead of the RuntimeClass, and limits as the pod's cgroup has them, in whole pages.
func podLevelStage(p *corev1.Pod, c resize.ResourceChange) ResizeState {
	name := corev1.ResourceName(c.Resource)
	withOverhead := func(a resize.Amount) *resource.Quantity {
		q := resize.Quantity(c.Resource, a.Value)
		q.Add(p.Spec.Overhead[name])
		return q
	}
	allocated := p.Status.AllocatedResources[name]
	switch {
	case p.Status.Resources == nil:
		return ResizeState{Asked, "the kubelet does not report the resources of the pod"}
	case c.Request.Set && allocated.Cmp(*withOverhead(c.Request)) != 0:
		return ResizeState{Asked, fmt.Sprintf("the kubelet has %s of %s allocated to the pod", allocated.String(), c.Resource)}
	}
	got, want := p.Status.Resources.Limits[name], withOverhead(c.Limit)
	if c.Limit.Set && got.Cmp(*want) != 0 && (name != corev1.ResourceMemory || !slices.Contains(memoryLimits(want.Value()), got.Value())) {
		return ResizeState{InProgress, fmt.Sprintf("the kubelet reports a %s limit of %s for the pod", c.Resource, got.String())}
	}
	return ResizeState{Stage: Done}
}

// difference describes how the resources differ from a change. It is empty if they do not.
func difference(r *corev1.ResourceRequirements, c resize.ResourceChange) string {
	subject := cmp.Or(c.Container, "the pod")
	if r == nil {
		return "no resources of " + subject
	}
	name := corev1.ResourceName(c.Resource)
	for _, v := range []struct {
		what string
		got  resource.Quantity
		want resize.Amount
	}{{"request", r.Requests[name], c.Request}, {"limit", r.Limits[name], c.Limit}} {
		if v.want.Set && !sameAmount(c.Resource, v.got, v.want) {
			return fmt.Sprintf("a %s %s of %s for %s", c.Resource, v.what, v.got.String(), subject)
		}
	}
	return ""
}

func sameAmount(r resize.Resource, actual resource.Quantity, want resize.Amount) bool {
	return actual.Cmp(*resize.Quantity(r, want.Value)) == 0
}

// specResources returns the resources of a container, or those of the pod itself if the name is empty;
// nil if there are none.
func specResources(p *corev1.Pod, container string) *corev1.ResourceRequirements {
	if container == "" {
		return p.Spec.Resources
	}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				return &list[i].Resources
			}
		}
	}
	return nil
}

func containerStatus(p *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}
