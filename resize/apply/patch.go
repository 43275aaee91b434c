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
	Spec struct {
		Resources      *corev1.ResourceRequirements `json:"resources,omitempty"`
		Containers     []containerPatch             `json:"containers,omitempty"`
		InitContainers []containerPatch             `json:"initContainers,omitempty"`
	} `json:"spec"`
}

type containerPatch struct {
	Name      string                      `json:"name"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

func patchOf(p *Plan) (patch podPatch) {
	patch.Metadata.UID, patch.Metadata.ResourceVersion = p.pod.UID, p.pod.ResourceVersion
	if own := p.patchResources(""); len(own.Requests)+len(own.Limits) > 0 {
		patch.Spec.Resources = &own
	}
	patch.Spec.InitContainers = p.patchContainers(p.pod.Spec.InitContainers)
	patch.Spec.Containers = p.patchContainers(p.pod.Spec.Containers)
	return patch
}

// patchContainers returns the patches for the containers that change.
func (p *Plan) patchContainers(containers []corev1.Container) (patches []containerPatch) {
	for i := range containers {
		patch := containerPatch{containers[i].Name, p.patchResources(containers[i].Name)}
		if len(patch.Resources.Requests)+len(patch.Resources.Limits) > 0 {
			patches = append(patches, patch)
		}
	}
	return patches
}

// patchResources returns the changed requests and limits of a container, or of the pod itself if the
// name is empty.
func (p *Plan) patchResources(container string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, c := range p.changes {
		if c.Container == container && c.Request.Set {
			r.Requests[corev1.ResourceName(c.Resource)] = *resize.Quantity(c.Resource, c.Request.Value)
		}
		if c.Container == container && c.Limit.Set {
			r.Limits[corev1.ResourceName(c.Resource)] = *resize.Quantity(c.Resource, c.Limit.Value)
		}
	}
	return r
}
