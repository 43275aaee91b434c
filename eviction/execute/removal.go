package execute

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// awaitRemoval waits until the pod is gone, and adds the result to the outcome.
func (e *Executor) awaitRemoval(ctx context.Context, o *ActionOutcome) {
	began := time.Now()
	timeout := e.opts.CleanupTimeout
	if o.Result == Requested {
		timeout = requestWait
	}
	if o.Result != Terminating { // somebody else set its grace period, which may be hours
		timeout += time.Duration(o.GraceSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(e.opts.CleanupPoll)
	defer tick.Stop()
	where := "was not checked"
	for !o.Removed && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			o.Removed, where = e.isRemoved(ctx, o, where)
			if o.Removed || o.Result != Requested {
				continue
			}
			if failed := e.requestFailed(ctx, o); failed != "" {
				where = failed
				cancel()
			}
		}
	}
	o.Waited = time.Since(began)
	if waited := o.Waited.Round(time.Millisecond); o.Removed {
		o.Message += fmt.Sprintf("; it was gone after %v", waited)
	} else {
		o.Message += fmt.Sprintf("; after %v it %s: stopped waiting for it", waited, where)
	}
	e.metrics.observeRemoval(o)
}

// isRemoved reports whether the pod is gone. If not, it returns where the pod still is. old is the
// previous answer.
func (e *Executor) isRemoved(ctx context.Context, o *ActionOutcome, old string) (bool, string) {
	requested, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	uid := types.UID(o.Pod.UID)
	pod, err := e.opts.Client.CoreV1().Pods(o.Pod.Namespace).Get(requested, o.Pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil && ctx.Err() != nil:
		return false, old
	case err != nil:
		return false, fmt.Sprintf("could not be read (%v)", err)
	case pod.UID != uid:
	case !hasEnded(pod): // a finalizer may keep an ended pod in the API
		return false, "was still in the API"
	}
	if e.opts.OnNode == nil {
		return true, ""
	}
	onNode, err := e.opts.OnNode(requested, uid)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, old
	case err != nil:
		return false, fmt.Sprintf("was gone from the API, and the node's statistics could not be read (%v)", err)
	case onNode:
		return false, "was still in the node's statistics"
	}
	return true, ""
}
