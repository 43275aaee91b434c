package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// evict uses the Eviction API. The only precondition is the UID. The API server itself checks
// whether the pod becomes ready in the meantime. With a resourceVersion the request would fail
// after every status update of the kubelet.
func (e *Executor) evict(ctx context.Context, o *ActionOutcome) {
	pod, ok := e.readLivePod(ctx, o)
	if !ok {
		return
	}
	o.sent = true
	requested, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := e.opts.Client.CoreV1().Pods(pod.Namespace).EvictV1(requested, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: &o.GraceSeconds,
			Preconditions:      &metav1.Preconditions{UID: &pod.UID},
		},
	})
	switch {
	case err == nil:
		o.setResult(Evicted, "evicted pod %s with a grace period of %d s, for %s", o.Pod, o.GraceSeconds, o.Signal)
	case apierrors.IsTooManyRequests(err) && setBlocked(err, o):
		o.Err = fmt.Errorf("ask for its eviction: %w", err)
	case hasSeveralBudgets(err):
		o.Err = fmt.Errorf("ask for its eviction: %w", err)
		o.setResult(Blocked, "did not evict pod %s for %s: several PodDisruptionBudgets select it, and the Eviction API then refuses: keep only one of them", o.Pod, o.Signal)
	case apierrors.IsConflict(err):
		// The pod was replaced, or the API server gave up after too many conflicts.
		if _, ok := e.readPod(ctx, o); ok {
			o.setFailed(err, "ask for its eviction")
		}
	default:
		o.setFailed(err, "ask for its eviction")
	}
}

// isConfined reports whether the admission policies of the manifests apply to this agent, which they
// no longer do if its account has another name. It asks for a dry run of what they forbid: to delete
// without a grace period, or to evict whichever pod has the name. If not, it sets the outcome.
func (e *Executor) isConfined(ctx context.Context, deletes bool, o *ActionOutcome) bool {
	if e.opts.Namespace == "" || e.confined[deletes] {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options, none := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, int64(0)
	pods := e.opts.Client.CoreV1().Pods(o.Pod.Namespace)
	var err error
	if deletes {
		options.GracePeriodSeconds = &none
		err = pods.Delete(ctx, o.Pod.Name, options)
	} else {
		err = pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: o.Pod.Name, Namespace: o.Pod.Namespace}, DeleteOptions: &options})
	}
	switch {
	// The status of a refusal is Invalid, unless the policy gives another reason.
	case (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") && strings.Contains(err.Error(), "an agent"):
		e.confined[deletes] = true
		return true
	case err == nil, apierrors.IsTooManyRequests(err) && setBlocked(err, o), apierrors.IsConflict(err):
		o.setRefused("no admission policy confines this agent to the pods of its node: apply those of deploy/kustomize/components/agent with the name and the namespace of the agent's account, or choose --eviction=observe")
	default:
		o.setFailed(err, "try whether admission policies apply to this agent")
	}
	return false
}

// setBlocked reports whether a PodDisruptionBudget is the reason for the refusal. If so, it sets
// the outcome. An overloaded API server answers with the same status code.
func setBlocked(err error, o *ActionOutcome) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	for _, cause := range answer.Status().Details.Causes {
		if cause.Type != policyv1.DisruptionBudgetCause {
			continue
		}
		o.Budget = budgetName(cause.Message)
		name := "a PodDisruptionBudget"
		if o.Budget != "" {
			name = "PodDisruptionBudget " + o.Pod.Namespace + "/" + o.Budget
		}
		o.setResult(Blocked, "did not evict pod %s for %s: %s does not allow it (%s)", o.Pod, o.Signal, name, cause.Message)
		return true
	}
	return false
}

// hasSeveralBudgets reports whether the eviction was refused because several budgets select the
// pod. Only the text shows it: the status code is that of an internal error.
func hasSeveralBudgets(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && strings.Contains(answer.Status().Message, "more than one PodDisruptionBudget")
}

// budgetName returns the name of the budget in the API server's message, "The disruption budget
// NAME needs 2 healthy pods and has 2 currently". The answer has no field for it.
func budgetName(message string) string {
	rest, ok := strings.CutPrefix(message, "The disruption budget ")
	name, _, found := strings.Cut(rest, " ")
	if !ok || !found {
		return ""
	}
	return name
}

// readPod reads the pod, and reports whether it may be evicted. If not, it sets the outcome.
func (e *Executor) readPod(ctx context.Context, o *ActionOutcome) (*corev1.Pod, bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pod, err := e.opts.Client.CoreV1().Pods(o.Pod.Namespace).Get(ctx, o.Pod.Name, metav1.GetOptions{})
	if err != nil {
		o.setFailed(err, "read the pod")
		return nil, false
	}
	return pod, e.mayEvict(pod, o)
}

// readLivePod is readPod for a pod that is not yet terminating. If it is, that is the outcome.
func (e *Executor) readLivePod(ctx context.Context, o *ActionOutcome) (*corev1.Pod, bool) {
	pod, ok := e.readPod(ctx, o)
	if ok && pod.DeletionTimestamp != nil {
		o.setTerminating(pod)
		return nil, false
	}
	return pod, ok
}

// mayEvict reports whether the pod may be evicted, independent of the decision. The agent's own pod
// is refused earlier, by its UID.
func (e *Executor) mayEvict(pod *corev1.Pod, o *ActionOutcome) bool {
	switch {
	case pod.UID != types.UID(o.Pod.UID):
		o.setResult(Gone, "did not evict pod %s: it is gone, and another (UID %s) has its name", o.Pod, pod.UID)
	case pod.Spec.NodeName != e.opts.Node:
		o.setRefused(fmt.Sprintf("it is on node %q, not on %q", pod.Spec.NodeName, e.opts.Node))
	case eviction.CriticalReason(pod) != "":
		o.setRefused(eviction.CriticalReason(pod))
	case hasEnded(pod) && !o.ended:
		o.setResult(Gone, "did not evict pod %s: it has ended (%s)", o.Pod, pod.Status.Phase)
	default:
		return true
	}
	return false
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// setTerminating sets the outcome of a pod that is already terminating.
func (o *ActionOutcome) setTerminating(pod *corev1.Pod) {
	o.setResult(Terminating, "did not evict pod %s: it is already terminating, until %s", o.Pod, formatTime(pod.DeletionTimestamp.Time))
}

// ConditionReason is the reason of the condition DisruptionTarget of a killed pod. It differs from
// the kubelet's reason, so that the status shows that weir evicted the pod.
const ConditionReason = "TerminationByWeir"

// killAtOnce ends the pod's processes if that frees what is short, and an option is set for it. It does not
// read the pod again, because the processes belong to this UID on this node, and no others. It returns what
// to add to the outcome's message.
func (e *Executor) killAtOnce(ctx context.Context, o *ActionOutcome) string {
	c := eviction.Signal(o.Signal).Condition()
	if e.opts.KillAtOnce == nil || c != corev1.NodeMemoryPressure && c != corev1.NodePIDPressure {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, urgentTime)
	defer cancel()
	killed, err := e.opts.KillAtOnce(ctx, types.UID(o.Pod.UID))
	if o.ended = killed; err != nil {
		return fmt.Sprintf("; its processes could not be killed at once: %v", err)
	}
	return "; its processes were killed before that"
}

// kill deletes the pod and ignores budgets. It writes the condition before that, because a Job with
// a podFailurePolicy that ignores disruptions must find it when the pod fails. If the condition
// cannot be written, the pod is not deleted. After killAtOnce the kubelet may be first to report the end of
// a pod that is not restarted.
func (e *Executor) kill(ctx context.Context, k *eviction.Kill, o *ActionOutcome) {
	for try := 1; ; try++ {
		pod, ok := e.readPod(ctx, o)
		if !ok {
			return
		}
		shortened := ""
		if pod.DeletionTimestamp != nil {
			grace := pod.DeletionGracePeriodSeconds
			if grace == nil || *grace <= o.GraceSeconds {
				o.setTerminating(pod)
				return
			}
			shortened = fmt.Sprintf("; it was already terminating, with a grace period of %d s", *grace)
		}
		o.sent = false
		doing := "set its condition DisruptionTarget"
		version, err := e.writeCondition(ctx, pod, k.Condition)
		if err == nil {
			doing = "delete it"
			o.sent = true
			err = e.delete(ctx, pod, version, o.GraceSeconds)
		}
		switch {
		case err == nil:
			o.setResult(Killed, "deleted pod %s with a grace period of %d s, for %s%s", o.Pod, o.GraceSeconds, o.Signal, shortened)
			return
		case apierrors.IsConflict(err) && try < maxAttempts:
			continue // the pod changed since it was read, so it is read again
		}
		o.setFailed(err, doing)
		return
	}
}

// writeCondition writes the condition to the pod's status, unless it is nil or already there. It
// returns the pod's resourceVersion after that.
func (e *Executor) writeCondition(ctx context.Context, pod *corev1.Pod, decided *corev1.PodCondition) (string, error) {
	if decided == nil {
		return pod.ResourceVersion, nil
	}
	c := *decided
	c.Reason = ConditionReason
	c.ObservedGeneration = pod.Generation
	c.LastTransitionTime = metav1.NewTime(time.Now())
	if hasCondition(pod, &c) {
		return pod.ResourceVersion, nil
	}
	// Conditions merge by type, so the others stay. With UID and resourceVersion the patch fails if
	// the pod has changed since it was read.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status":   map[string]any{"conditions": []corev1.PodCondition{c}},
	})
	if err != nil {
		return "", fmt.Errorf("encode the condition: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	marked, err := e.opts.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return "", err
	}
	return marked.ResourceVersion, nil
}

func (e *Executor) delete(ctx context.Context, pod *corev1.Pod, version string, grace int64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return e.opts.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &grace,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &version},
	})
}
