package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// await waits until the pod is gone, and adds to the outcome what came of it.
func (x *Executor) await(ctx context.Context, o *Outcome) {
	began := time.Now()
	timeout := x.opts.CleanupTimeout
	if o.Did != Terminating { // that one's time to end is another's, and may be hours
		timeout += time.Duration(o.GraceSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(x.opts.CleanupPoll)
	defer tick.Stop()
	where := "was not looked for"
	for !o.Cleaned {
		select {
		case <-ctx.Done():
			o.Waited = time.Since(began)
			o.Words += fmt.Sprintf("; after %v it %s: %s", o.Waited.Round(time.Millisecond), where, ending(ctx))
			x.metrics.cleaned(o)
			return
		case <-tick.C:
			o.Cleaned, where = x.cleaned(ctx, o, where)
		}
	}
	o.Waited = time.Since(began)
	o.Words += fmt.Sprintf("; it was gone after %v", o.Waited.Round(time.Millisecond))
	x.metrics.cleaned(o)
}

func ending(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return "stopped waiting for it"
	}
	return "waited no longer"
}

// cleaned says whether the pod is gone, or where it still is; was is what is known of
// that from before.
func (x *Executor) cleaned(ctx context.Context, o *Outcome, was string) (bool, string) {
	requested, cancel := context.WithTimeout(ctx, x.opts.RequestTimeout)
	defer cancel()
	uid := types.UID(o.Pod.UID)
	pod, err := x.opts.Client.CoreV1().Pods(o.Pod.Namespace).Get(requested, o.Pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil && ctx.Err() != nil:
		return false, was
	case err != nil:
		return false, fmt.Sprintf("could not be read (%v)", err)
	case pod.UID != uid:
	case !ended(pod): // one that has ended may be kept in the API by a finalizer
		return false, "was still in the API"
	}
	if x.opts.OnNode == nil {
		return true, ""
	}
	on, err := x.opts.OnNode(requested, uid)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, was
	case err != nil:
		return false, fmt.Sprintf("was gone from the API, and the node's statistics could not be read (%v)", err)
	case on:
		return false, "was still in the node's statistics"
	}
	return true, ""
}
