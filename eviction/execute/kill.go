package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// ConditionReason is the reason of a killed pod's condition DisruptionTarget. The kubelet's
// own is another: whoever reads the status should know whom to ask.
const ConditionReason = "TerminationByWeir"

// kill deletes the pod, without asking budgets. The condition goes first: a Job that is
// told to ignore disruptions (podFailurePolicy) must find it by the time the pod has failed.
// If it cannot be written, the pod stays.
func (x *Executor) kill(ctx context.Context, k *eviction.Kill, o *Outcome) {
	for try := 1; ; try++ {
		pod, ok := x.look(ctx, o)
		if !ok {
			return
		}
		shortened := ""
		if pod.DeletionTimestamp != nil {
			had := pod.DeletionGracePeriodSeconds
			if had == nil || *had <= o.GraceSeconds {
				o.terminating(pod)
				return
			}
			shortened = fmt.Sprintf("; it was told to end before, within %d s", *had)
		}
		o.sent = false
		doing := "set its condition DisruptionTarget"
		version, err := x.mark(ctx, pod, k.Condition)
		if err == nil {
			doing = "delete it"
			o.sent = true
			err = x.delete(ctx, pod, version, o.GraceSeconds)
		}
		switch {
		case err == nil:
			o.say(Killed, "deleted pod %s with %d s to end, for %s%s", o.Pod, o.GraceSeconds, o.Signal, shortened)
			return
		case apierrors.IsConflict(err) && try < tries:
			continue // it changed since it was read: read it again
		}
		o.fail(err, doing)
		return
	}
}

// mark writes the condition to the pod's status, if there is one to write and the pod has it
// not, and returns the pod's resourceVersion after it.
func (x *Executor) mark(ctx context.Context, pod *corev1.Pod, decided *corev1.PodCondition) (string, error) {
	if decided == nil {
		return pod.ResourceVersion, nil
	}
	c := *decided
	c.Reason = ConditionReason
	c.ObservedGeneration = pod.Generation
	c.LastTransitionTime = metav1.NewTime(time.Now())
	if sameCondition(pod, &c) {
		return pod.ResourceVersion, nil
	}
	// Conditions merge by type, so that all others stay as they are. The UID and the
	// resourceVersion make it fail for any pod but the one that was looked at.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status":   map[string]any{"conditions": []corev1.PodCondition{c}},
	})
	if err != nil {
		return "", fmt.Errorf("encode the condition: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, x.opts.RequestTimeout)
	defer cancel()
	marked, err := x.opts.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return "", err
	}
	return marked.ResourceVersion, nil
}

func (x *Executor) delete(ctx context.Context, pod *corev1.Pod, version string, grace int64) error {
	ctx, cancel := context.WithTimeout(ctx, x.opts.RequestTimeout)
	defer cancel()
	return x.opts.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &grace,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &version},
	})
}
