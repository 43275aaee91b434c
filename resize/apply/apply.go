package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/resize"
)

// Result is what became of a resize.
type Result struct {
	*Plan
	State
	// Generation is the pod's by asking.
	Generation int64 `json:"generation,omitempty"`
	// TimedOut says that State is only how far it had come when time was up.
	TimedOut    bool    `json:"timedOut,omitempty"`
	TookSeconds float64 `json:"tookSeconds,omitempty"`
	// Containers are all that run, and whether they are the same as before.
	Containers []ContainerCheck `json:"containers,omitempty"`
	Cgroups    *CgroupCheck     `json:"cgroups,omitempty"` // nil unless Done
}

// ContainerCheck is a container before and after.
type ContainerCheck struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Restarts  int32  `json:"restarts"`
	Restarted bool   `json:"restarted,omitempty"` // since before
}

// InPlace reports whether the resize is done, no container was restarted, and nothing
// is wrong with what is known of cgroups.
func (r *Result) InPlace() bool {
	for i := range r.Containers {
		if r.Containers[i].Restarted {
			return false
		}
	}
	return r.Stage == Done && (r.Cgroups == nil || len(r.Cgroups.Problems) == 0)
}

// Apply carries out a plan and waits for the kubelet. The error is about asking; what the
// kubelet made of it is in the result, which is there whenever it was asked.
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

// wait follows the pod until the kubelet is done or time is up.
func (a *Applier) wait(ctx context.Context, pod *corev1.Pod, r *Result) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.opts.Timeout, errTimeout)
	defer cancel()
	asked := &PendingResize{UID: r.UID, Generation: r.Generation, Changes: r.changes}
	began := time.Now()
	for {
		if s := StageOf(pod, asked); s != r.State {
			r.State = s
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
		next, err := a.opts.Client.CoreV1().Pods(r.Namespace).Get(ctx, r.Pod, metav1.GetOptions{})
		switch {
		case err == nil:
			pod = next
		case apierrors.IsNotFound(err):
			pod = nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return pod, fmt.Errorf("follow the pod: %w", err)
		}
		// Any other error passes: the kubelet does not wait for us.
	}
}

var errTimeout = errors.New("time is up")

// pollInterval returns how long to wait between two looks. Most resizes take a fifth of a second.
func pollInterval(waited time.Duration) time.Duration {
	if waited < 5*time.Second {
		return 100 * time.Millisecond
	}
	return time.Second
}

// checkContainers compares the containers of a pod before and after.
func checkContainers(before, after *corev1.Pod) (list []ContainerCheck) {
	for _, of := range [][]corev1.Container{after.Spec.InitContainers, after.Spec.Containers} {
		for i := range of {
			is := containerStatus(after, of[i].Name)
			if is == nil || is.State.Terminated != nil && is.RestartCount == 0 { // as an init container that is over
				continue
			}
			k := ContainerCheck{Name: is.Name, ID: is.ContainerID, Restarts: is.RestartCount}
			if was := containerStatus(before, is.Name); was != nil {
				k.Restarted = was.RestartCount != is.RestartCount || was.ContainerID != is.ContainerID
			}
			list = append(list, k)
		}
	}
	return list
}

// cgroups asks the node.
func (a *Applier) cgroups(ctx context.Context, pod *corev1.Pod, p *Plan) *CgroupCheck {
	if a.opts.Cgroups == nil {
		return &CgroupCheck{UncheckedReason: "no weir was asked about the node"}
	}
	found, err := a.opts.Cgroups(ctx, p.Node, p.UID)
	if err != nil {
		return &CgroupCheck{UncheckedReason: err.Error()}
	}
	return checkCgroups(found, resize.FromPod(pod), p.changes)
}
