package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/resize"
)

// Options configures an Applier.
type Options struct {
	// Client is the client of the API server. Required.
	Client kubernetes.Interface
	// Cgroups returns the pod's cgroups on the node. If it is nil or fails, cgroups are not checked, and
	// the result says so.
	Cgroups func(ctx context.Context, node, uid string) ([]Cgroup, error)
	// Restart allows changes for which the container's resizePolicy requires a restart.
	Restart bool
	// Timeout bounds the wait for the kubelet. Default 2 m.
	Timeout time.Duration
	// Progress, if not nil, is called for each change of the state during Apply.
	Progress func(ResizeState)
}

// Applier resizes pods.
type Applier struct{ opts Options }

// New returns an Applier.
func New(o Options) *Applier {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	if o.Progress == nil {
		o.Progress = func(ResizeState) {}
	}
	return &Applier{o}
}

// Request is a change of the resources of one pod.
type Request struct {
	Namespace, Pod string
	// UID is the UID that the pod must have; empty allows any.
	UID     string
	Changes []resize.ResourceChange
}

// Plan is a resize that the API server accepted in a dry run.
type Plan struct {
	Namespace string        `json:"namespace"`
	Pod       string        `json:"pod"`
	UID       string        `json:"uid"`
	Node      string        `json:"node"`
	QoS       resize.Class  `json:"qosClass"`
	Steps     []ValueChange `json:"changes"`

	changes []resize.ResourceChange
	pod     *corev1.Pod // the pod as it was read
}

// ValueChange is the change of one value.
type ValueChange struct {
	Container string          `json:"container"` // empty for the pod itself
	Resource  resize.Resource `json:"resource"`
	Field     string          `json:"field"` // "request" or "limit"
	From      string          `json:"from"`  // empty if there was none
	To        string          `json:"to"`
}

// RefusedError is the error for a change that cannot be made in place.
type RefusedError struct{ Refusals []resize.Refusal }

// Error lists all reasons.
func (e *RefusedError) Error() string {
	all := make([]string, len(e.Refusals))
	for i, r := range e.Refusals {
		all[i] = r.Message
	}
	return strings.Join(all, "; ")
}

// Errors that callers check for.
var (
	// ErrNoChange says that the pod and its containers already have the requested values.
	ErrNoChange = errors.New("the containers are asked to have what they have")
	// ErrReplaced says that another pod now has the name.
	ErrReplaced = errors.New("another pod has that name by now")
)

// Plan returns the plan for a request, after a dry run at the API server. A *RefusedError says why
// the change cannot be made in place. Other errors come from the API server.
func (a *Applier) Plan(ctx context.Context, r Request) (p *Plan, err error) {
	for range maxAttempts {
		// The kubelet may have written the status since the pod was read.
		if p, err = a.plan(ctx, r); !apierrors.IsConflict(err) {
			break
		}
	}
	return p, err
}

// maxAttempts is how often the pod is read if it changes in between.
const maxAttempts = 5

func (a *Applier) plan(ctx context.Context, r Request) (*Plan, error) {
	pod, err := a.opts.Client.CoreV1().Pods(r.Namespace).Get(ctx, r.Pod, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	if r.UID != "" && string(pod.UID) != r.UID {
		return nil, fmt.Errorf("pod %s/%s: %w", r.Namespace, r.Pod, ErrReplaced)
	}
	before := resize.FromPod(pod)
	refusals, err := resize.Check(before, r.Changes)
	if err != nil {
		return nil, err
	}
	var barred []resize.Refusal
	for _, refusal := range refusals {
		if refusal.Reason != resize.Restarts || !a.opts.Restart {
			barred = append(barred, refusal)
		}
	}
	if len(barred) > 0 {
		return nil, &RefusedError{barred}
	}
	p := &Plan{Namespace: r.Namespace, Pod: r.Pod, UID: string(pod.UID), Node: pod.Spec.NodeName, QoS: resize.ClassOf(before), pod: pod}
	for _, c := range r.Changes {
		p.addChange(before, c)
	}
	if len(p.changes) == 0 {
		return nil, ErrNoChange
	}
	if _, err = a.patch(ctx, p, metav1.DryRunAll); err != nil {
		return nil, err
	}
	return p, nil
}

// addChange adds the values that a change modifies. It omits those that stay the same.
func (p *Plan) addChange(before *resize.PodResources, change resize.ResourceChange) {
	requests, limits := before.PodLevel.Requests, before.PodLevel.Limits
	if c := before.Container(change.Container); c != nil {
		requests, limits = c.Requests, c.Limits
	}
	addChange := func(what string, was resize.Amount, is *resize.Amount) {
		if !is.Set || *is == was {
			is.Set = false
			return
		}
		step := ValueChange{Container: change.Container, Resource: change.Resource, Field: what, To: resize.FormatAmount(change.Resource, is.Value)}
		if was.Set {
			step.From = resize.FormatAmount(change.Resource, was.Value)
		}
		p.Steps = append(p.Steps, step)
	}
	addChange("request", requests.Get(change.Resource), &change.Request)
	addChange("limit", limits.Get(change.Resource), &change.Limit)
	if change.Request.Set || change.Limit.Set {
		p.changes = append(p.changes, change)
	}
}

// fieldManager is weir's name in managedFields.
const fieldManager = "weir-resize"

// patch sends the change with the UID and the resourceVersion of the pod that was read.
func (a *Applier) patch(ctx context.Context, p *Plan, dryRun ...string) (*corev1.Pod, error) {
	body, err := json.Marshal(patchOf(p))
	if err != nil {
		return nil, fmt.Errorf("encode the resize: %w", err)
	}
	pod, err := a.opts.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Pod, types.StrategicMergePatchType, body,
		metav1.PatchOptions{DryRun: dryRun, FieldManager: fieldManager}, "resize")
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
