package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/resize"
)

// fieldManager is weir's name in managedFields.
const fieldManager = "weir-resize"

// patch sends the change with the UID and the resourceVersion of the pod that was read.
func (a *Applier) patch(ctx context.Context, p *Plan, dryRun ...string) (*corev1.Pod, error) {
	body, err := json.Marshal(patchOf(p))
	if err != nil {
		return nil, fmt.Errorf("encode the resize: %w", err)
	}
	pod, err := a.opts.Client.ResizePod(ctx, p.Namespace, p.Pod, body, metav1.PatchOptions{DryRun: dryRun, FieldManager: fieldManager})
	switch {
	case unknownSubresource(err):
		return nil, fmt.Errorf("this API server cannot resize pods in place, which takes Kubernetes 1.33 or later: %w", err)
	case err != nil && len(dryRun) > 0:
		return nil, fmt.Errorf("try the resize: %w", err)
	case err != nil:
		return nil, fmt.Errorf("resize the pod: %w", err)
	}
	return pod, nil
}

// unknownSubresource reports whether a 404 means that the server does not have pods/resize. The 404
// for a deleted pod names the pod.
func unknownSubresource(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// podPatch is a strategic merge patch. Containers and resources merge by name, so everything else
// stays unchanged.
type podPatch struct {
	Metadata struct {
		ResourceVersion string    `json:"resourceVersion"`
		UID             types.UID `json:"uid"`
	} `json:"metadata"`
	Spec specPatch `json:"spec"`
}

// specPatch is the patch of the spec of a pod, or of a pod template.
type specPatch struct {
	Resources      *corev1.ResourceRequirements `json:"resources,omitempty"`
	InitContainers []containerPatch             `json:"initContainers,omitempty"`
	Containers     []containerPatch             `json:"containers,omitempty"`
}

type containerPatch struct {
	Name      string                      `json:"name"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

func patchOf(p *Plan) (patch podPatch) {
	patch.Metadata.UID, patch.Metadata.ResourceVersion = p.pod.UID, p.pod.ResourceVersion
	patch.Spec = specPatchOf(resize.FromPod(p.pod), p.changes)
	return patch
}

// specPatchOf returns the patch for changes of a pod with these containers.
func specPatchOf(pod *resize.PodResources, changes []resize.ResourceChange) (patch specPatch) {
	if own := changedResources("", changes); own != nil {
		patch.Resources = own
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		list := &patch.InitContainers
		if c.Role == cluster.Regular {
			list = &patch.Containers
		}
		if own := changedResources(c.Name, changes); own != nil {
			*list = append(*list, containerPatch{c.Name, *own})
		}
	}
	return patch
}

// changedResources returns the changed requests and limits of a container, or of the pod itself if the
// name is empty; nil if there are none.
func changedResources(container string, changes []resize.ResourceChange) *corev1.ResourceRequirements {
	r := &corev1.ResourceRequirements{}
	set := func(list *corev1.ResourceList, c resize.ResourceChange, amount resize.Amount) {
		if c.Container != container || !amount.Set {
			return
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceName(c.Resource)] = *resize.Quantity(c.Resource, amount.Value)
	}
	for _, c := range changes {
		set(&r.Requests, c, c.Request)
		set(&r.Limits, c, c.Limit)
	}
	if len(r.Requests)+len(r.Limits) == 0 {
		return nil
	}
	return r
}
