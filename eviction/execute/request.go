package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	lifecycle "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// Requester is weir's name in EvictionRequests (KEP-4563).
const Requester = "weir.dev/agent"

// requestPrefix begins the names of weir's EvictionRequests. The pod's UID follows, so that a pod
// has one at most.
const requestPrefix = "weir-"

// ErrNoRequests is the error of a cluster that does not serve EvictionRequests.
var ErrNoRequests = errors.New("the API server does not serve EvictionRequests (lifecycle.k8s.io/v1alpha1)")

// CheckRequests returns ErrNoRequests if the cluster does not serve EvictionRequests, and another
// error if the API server does not report whether it does.
func CheckRequests(ctx context.Context, api discovery.ServerResourcesInterfaceWithContext) error {
	list, err := api.ServerResourcesForGroupVersionWithContext(ctx, lifecycle.SchemeGroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask for the resources of %s: %w", lifecycle.SchemeGroupVersion, err)
	}
	if list != nil && err == nil {
		for i := range list.APIResources {
			if list.APIResources[i].Name == "evictionrequests" {
				return nil
			}
		}
	}
	return ErrNoRequests
}

// request creates an EvictionRequest for the pod. An earlier one of weir's for the same pod counts as
// created.
func (e *Executor) request(ctx context.Context, o *ActionOutcome) {
	pod, ok := e.readLivePod(ctx, o)
	if !ok {
		return
	}
	if pod.Spec.SchedulingGroup != nil {
		o.setRefused("it is part of a PodGroup, and EvictionRequests are not for such pods: use --eviction=evict or --eviction=kill")
		return
	}
	o.GraceSeconds = 0 // whoever evicts the pod chooses it
	o.sent = true
	requested, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := e.opts.Client.LifecycleV1alpha1().EvictionRequests(pod.Namespace).Create(requested, &lifecycle.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: requestPrefix + string(pod.UID),
			// The request goes with the pod, also if weir cannot withdraw it.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: lifecycle.EvictionRequestSpec{
			Target:    lifecycle.EvictionRequestTarget{Pod: &lifecycle.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: Requester,
			Intent:    lifecycle.EvictionRequestIntentEviction,
		},
	}, metav1.CreateOptions{})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		o.setResult(Requested, "requested the eviction of pod %s by EvictionRequest %s%s, for %s", o.Pod, requestPrefix, pod.UID, o.Signal)
	case apierrors.IsNotFound(err):
		o.Err = fmt.Errorf("create an EvictionRequest: %w (%w)", ErrNoRequests, err)
		o.setResult(Failed, "could not request the eviction of pod %s: %v", o.Pod, o.Err)
	default:
		o.setFailed(err, "create an EvictionRequest")
		if isAmbiguous(err) {
			e.deleteRequest(ctx, o)
		}
	}
}

// requestFailed returns why a pod's EvictionRequest will not be followed; empty if it may be.
func (e *Executor) requestFailed(ctx context.Context, o *ActionOutcome) string {
	r, err := e.readRequest(ctx, o)
	if err != nil {
		return ""
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, string(lifecycle.EvictionConditionFailed)); c != nil && c.Status == metav1.ConditionTrue {
		return fmt.Sprintf("was still in the API, and its EvictionRequest has failed (%s: %s)", c.Reason, c.Message)
	}
	return ""
}

func (e *Executor) readRequest(ctx context.Context, o *ActionOutcome) (*lifecycle.EvictionRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return e.opts.Client.LifecycleV1alpha1().EvictionRequests(o.Pod.Namespace).Get(ctx, requestPrefix+o.Pod.UID, metav1.GetOptions{})
}

// withdrawTimeout bounds the withdrawal of an EvictionRequest, also while the agent stops.
const withdrawTimeout = 5 * time.Second

// withdraw ends the request for a pod after the wait for it. It adds to the message what was wrong.
func (e *Executor) withdraw(ctx context.Context, o *ActionOutcome) {
	ctx = context.WithoutCancel(ctx)
	if !o.Removed {
		if r, err := e.readRequest(ctx, o); err == nil && r.Status.ObservedGeneration == nil {
			o.Message += "; no controller has taken up its EvictionRequest: run an evictionrequest-controller, which kube-controller-manager 1.37 does not have, or use --eviction=evict"
		}
	}
	e.deleteRequest(ctx, o)
}

// deleteRequest deletes the pod's EvictionRequest, which withdraws it: the pod is then not evicted
// later, when the node may no longer need that.
func (e *Executor) deleteRequest(ctx context.Context, o *ActionOutcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	err := e.opts.Client.LifecycleV1alpha1().EvictionRequests(o.Pod.Namespace).Delete(ctx, requestPrefix+o.Pod.UID, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		o.Message += fmt.Sprintf("; its EvictionRequest %s%s could not be withdrawn: delete it (%v)", requestPrefix, o.Pod.UID, err)
	}
}
