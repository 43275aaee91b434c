package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/resize"
)

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

// Undo returns the request that takes the plan back. ok is false if the pod has a limit that it did not
// have before: Kubernetes removes no limit in place.
func (p *Plan) Undo() (r Request, ok bool) {
	changes, ok := earlier(resize.FromPod(p.pod), p.changes)
	return Request{p.Namespace, p.Pod, p.UID, changes}, ok
}

// earlier returns the changes that take changes of a pod back. ok is false if a value was not set before.
func earlier(before *resize.PodResources, changes []resize.ResourceChange) (back []resize.ResourceChange, ok bool) {
	ok = true
	for _, c := range changes {
		requests, limits := before.PodLevel.Requests, before.PodLevel.Limits
		if container := before.Container(c.Container); container != nil {
			requests, limits = container.Requests, container.Limits
		}
		set := c
		if c.Request.Set {
			set.Request = requests.Get(c.Resource)
		}
		if c.Limit.Set {
			set.Limit = limits.Get(c.Resource)
		}
		ok = ok && set.Request.Set == c.Request.Set && set.Limit.Set == c.Limit.Set
		back = append(back, set)
	}
	return back, ok
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
	// ErrNoChange reports that the pod and its containers already have the requested values.
	ErrNoChange = errors.New("the containers are asked to have what they have")
	// ErrReplaced reports that another pod now has the name.
	ErrReplaced = errors.New("another pod has that name by now")
)

// Plan returns the plan for a request, after a dry run at the API server. A *RefusedError explains why
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
	pod, err := a.opts.Client.GetPod(ctx, r.Namespace, r.Pod)
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
	addChange := func(what string, old resize.Amount, now *resize.Amount) {
		if !now.Set || *now == old {
			now.Set = false
			return
		}
		step := ValueChange{Container: change.Container, Resource: change.Resource, Field: what, To: resize.FormatAmount(change.Resource, now.Value)}
		if old.Set {
			step.From = resize.FormatAmount(change.Resource, old.Value)
		}
		p.Steps = append(p.Steps, step)
	}
	addChange("request", requests.Get(change.Resource), &change.Request)
	addChange("limit", limits.Get(change.Resource), &change.Limit)
	if change.Request.Set || change.Limit.Set {
		p.changes = append(p.changes, change)
	}
}
