package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evict asks the Eviction API. The precondition is the UID alone: the API server itself
// guards against a pod that becomes ready meanwhile, and with a resourceVersion it would
// fail for every heartbeat of the kubelet.
func (x *Executor) evict(ctx context.Context, o *Outcome) {
	pod, ok := x.look(ctx, o)
	if !ok {
		return
	}
	if pod.DeletionTimestamp != nil {
		o.terminating(pod)
		return
	}
	o.sent = true
	requested, cancel := context.WithTimeout(ctx, x.opts.RequestTimeout)
	defer cancel()
	err := x.opts.Client.CoreV1().Pods(pod.Namespace).EvictV1(requested, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: &o.GraceSeconds,
			Preconditions:      &metav1.Preconditions{UID: &pod.UID},
		},
	})
	switch {
	case err == nil:
		o.say(Evicted, "evicted pod %s with %d s to end, for %s", o.Pod, o.GraceSeconds, o.Signal)
	case apierrors.IsTooManyRequests(err) && blocked(err, o):
		o.Err = fmt.Errorf("ask for its eviction: %w", err)
	case severalBudgets(err):
		o.Err = fmt.Errorf("ask for its eviction: %w", err)
		o.say(Blocked, "did not evict pod %s for %s: several PodDisruptionBudgets select it, and the Eviction API then lets nobody go: leave it one", o.Pod, o.Signal)
	case apierrors.IsConflict(err):
		// The pod is another by now, or changes faster than the API server could follow.
		if _, ok := x.look(ctx, o); ok {
			o.fail(err, "ask for its eviction")
		}
	default:
		o.fail(err, "ask for its eviction")
	}
}

// blocked says whether the answer is that of a budget, and not of an API server which has
// too much to do; if so, the outcome is set.
func blocked(err error, o *Outcome) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	for _, cause := range answer.Status().Details.Causes {
		if cause.Type != policyv1.DisruptionBudgetCause {
			continue
		}
		o.Budget = budget(cause.Message)
		name := "a PodDisruptionBudget"
		if o.Budget != "" {
			name = "PodDisruptionBudget " + o.Pod.Namespace + "/" + o.Budget
		}
		o.say(Blocked, "did not evict pod %s for %s: %s does not let it go (%s)", o.Pod, o.Signal, name, cause.Message)
		return true
	}
	return false
}

// severalBudgets says whether the answer is that more than one budget selects the pod. There is only
// its sentence to know it by: its code is that of an error inside the API server.
func severalBudgets(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && strings.Contains(answer.Status().Message, "more than one PodDisruptionBudget")
}

// budget takes the name of the budget from the API server's sentence: "The disruption
// budget NAME needs 2 healthy pods and has 2 currently". There is no field for it.
func budget(message string) string {
	rest, ok := strings.CutPrefix(message, "The disruption budget ")
	if !ok {
		return ""
	}
	name, _, ok := strings.Cut(rest, " ")
	if !ok {
		return ""
	}
	return name
}
