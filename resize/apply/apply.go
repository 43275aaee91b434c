package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/resize"
)

// PodClient reads and resizes pods. Its errors are those of Kubernetes.
type PodClient interface {
	GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// ResizePod sends a strategic merge patch to the subresource resize.
	ResizePod(ctx context.Context, namespace, name string, patch []byte, o metav1.PatchOptions) (*corev1.Pod, error)
}

// Options configures an Applier.
type Options struct {
	// Client is the client of the API server. Required.
	Client PodClient
	// Cgroups returns the pod's cgroups on the node. If it is nil or fails, cgroups are not checked, and
	// the result reports that.
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

// Result is the result of a resize.
type Result struct {
	*Plan
	ResizeState
	// Generation is the pod's generation after the patch.
	Generation int64 `json:"generation,omitempty"`
	// TimedOut reports that the wait ended with the timeout. The state is the one at that time.
	TimedOut    bool    `json:"timedOut,omitempty"`
	TookSeconds float64 `json:"tookSeconds,omitempty"`
	// Containers are all running containers. Each reports whether it was restarted.
	Containers []ContainerCheck `json:"containers,omitempty"`
	Cgroups    *CgroupCheck     `json:"cgroups,omitempty"` // nil unless Done
}

// ContainerCheck compares a container before and after the resize.
type ContainerCheck struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Restarts  int32  `json:"restarts"`
	Restarted bool   `json:"restarted,omitempty"` // since the patch
}

// InPlace reports whether the resize is done, no container was restarted, and the cgroups have no
// known problem.
func (r *Result) InPlace() bool {
	for i := range r.Containers {
		if r.Containers[i].Restarted {
			return false
		}
	}
	return r.Stage == Done && (r.Cgroups == nil || len(r.Cgroups.Problems) == 0)
}

// Apply carries out a plan and waits for the kubelet. It returns an error if the patch fails, or if
// the pod cannot be read after it. The result describes what the kubelet did; it is not nil once the
// patch was made.
func (a *Applier) Apply(ctx context.Context, p *Plan) (*Result, error) {
	began := time.Now()
	var pod *corev1.Pod
	for try := 1; ; try++ {
		var err error
		if pod, err = a.patch(ctx, p); err == nil {
			break
		}
		if !apierrors.IsConflict(err) || try == maxAttempts {
			return nil, err
		}
		if p, err = a.Plan(ctx, Request{p.Namespace, p.Pod, p.UID, p.changes}); err != nil {
			return nil, err
		}
	}
	r := &Result{Plan: p, Generation: pod.Generation}
	last, err := a.wait(ctx, pod, r)
	r.TookSeconds = time.Since(began).Seconds()
	if last != nil {
		r.Containers = checkContainers(p.pod, last)
	}
	if r.Stage == Done {
		r.Cgroups = a.cgroups(ctx, last, p)
	}
	return r, err
}

// wait reads the pod until the kubelet is done or the timeout has passed.
func (a *Applier) wait(ctx context.Context, pod *corev1.Pod, r *Result) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.Timeout, errTimeout)
	defer cancel()
	asked := &PendingResize{UID: r.UID, Generation: r.Generation, Changes: r.changes}
	began := time.Now()
	for {
		if s := StageOf(pod, asked); s != r.ResizeState {
			r.ResizeState = s
			a.opts.Progress(s)
		}
		if r.Stage.Final() {
			return pod, nil
		}
		select {
		case <-ctx.Done():
			if r.TimedOut = errors.Is(context.Cause(ctx), errTimeout); r.TimedOut {
				return pod, nil
			}
			return pod, ctx.Err()
		case <-time.After(pollInterval(time.Since(began))):
		}
		next, err := a.opts.Client.GetPod(ctx, r.Namespace, r.Pod)
		switch {
		case err == nil:
			pod = next
		case apierrors.IsNotFound(err):
			pod = nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return pod, fmt.Errorf("follow the pod: %w", err)
		}
		// Other errors are temporary, because the kubelet continues.
	}
}

var errTimeout = errors.New("time is up")

// pollInterval returns the time until the next read. Most resizes take 0.2 s.
func pollInterval(waited time.Duration) time.Duration {
	if waited < 5*time.Second {
		return 100 * time.Millisecond
	}
	return time.Second
}

// checkContainers compares the containers of a pod before and after.
func checkContainers(before, after *corev1.Pod) (list []ContainerCheck) {
	for _, containers := range [][]corev1.Container{after.Spec.InitContainers, after.Spec.Containers} {
		for i := range containers {
			status := containerStatus(after, containers[i].Name)
			if status == nil || status.State.Terminated != nil && status.RestartCount == 0 { // for example an init container that has ended
				continue
			}
			k := ContainerCheck{Name: status.Name, ID: status.ContainerID, Restarts: status.RestartCount}
			if earlier := containerStatus(before, status.Name); earlier != nil {
				k.Restarted = earlier.RestartCount != status.RestartCount || earlier.ContainerID != status.ContainerID
			}
			list = append(list, k)
		}
	}
	return list
}

// cgroups checks the pod's cgroups on the node.
func (a *Applier) cgroups(ctx context.Context, pod *corev1.Pod, p *Plan) *CgroupCheck {
	if a.opts.Cgroups == nil {
		return &CgroupCheck{UncheckedReason: "no agent of weir was asked about the node"}
	}
	found, err := a.opts.Cgroups(ctx, p.Node, p.UID)
	if err != nil {
		return &CgroupCheck{UncheckedReason: err.Error()}
	}
	return checkCgroups(found, resize.FromPod(pod), p.changes)
}
