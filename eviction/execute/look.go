package execute

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// look reads the pod as it is now, and says whether it may go. If not, the outcome is set.
func (x *Executor) look(ctx context.Context, o *Outcome) (*corev1.Pod, bool) {
	ctx, cancel := context.WithTimeout(ctx, x.opts.RequestTimeout)
	defer cancel()
	pod, err := x.opts.Client.CoreV1().Pods(o.Pod.Namespace).Get(ctx, o.Pod.Name, metav1.GetOptions{})
	if err != nil {
		o.fail(err, "read the pod")
		return nil, false
	}
	return pod, x.may(pod, o)
}

// may says whether the pod may be evicted. What the decision says of it counts for
// nothing here. That it is not the agent's own is known from its UID before it is asked for.
func (x *Executor) may(pod *corev1.Pod, o *Outcome) bool {
	switch {
	case pod.UID != types.UID(o.Pod.UID):
		o.say(Gone, "did not evict pod %s: it is gone, and another (UID %s) has its name", o.Pod, pod.UID)
	case pod.Spec.NodeName != x.opts.Node:
		o.refuse(fmt.Sprintf("it is on node %q, not on %q", pod.Spec.NodeName, x.opts.Node))
	case eviction.CriticalOf(pod) != eviction.NotCritical:
		o.refuse(never(eviction.CriticalOf(pod)))
	case ended(pod):
		o.say(Gone, "did not evict pod %s: it has ended (%s)", o.Pod, pod.Status.Phase)
	default:
		return true
	}
	return false
}

func never(c eviction.Critical) string {
	switch c {
	case eviction.StaticPod:
		return "it is a static pod, which nobody would bring back"
	case eviction.MirrorPod:
		return "it is the mirror of a static pod, which nobody would bring back"
	case eviction.CriticalPriority:
		return "its priority is that of the system's own pods, or above"
	}
	return "it is critical: " + c.String()
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// terminating sets the outcome of a pod that was told to end before.
func (o *Outcome) terminating(pod *corev1.Pod) {
	o.say(Terminating, "did not evict pod %s: it was told to end already, by %s", o.Pod, clock(pod.DeletionTimestamp.Time))
}
