//go:build e2e

package apis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// leader returns the pod that has weir's Lease, and the Lease's duration.
func (w *testCluster) leader(ctx context.Context) (*corev1.Pod, time.Duration, error) {
	lease, err := w.kube.CoordinationV1().Leases("weir-system").Get(ctx, "weir", metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	if lease.Spec.HolderIdentity == nil || lease.Spec.LeaseDurationSeconds == nil {
		return nil, 0, errors.New("nobody holds the Lease")
	}
	pods, err := w.kube.CoreV1().Pods("weir-system").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=weir"})
	if err != nil {
		return nil, 0, err
	}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil && strings.HasPrefix(*lease.Spec.HolderIdentity, p.Name+"_") {
			return &p, time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second, nil
		}
	}
	return nil, 0, fmt.Errorf("the Lease is held by %s, which is none of %d pods", *lease.Spec.HolderIdentity, len(pods.Items))
}

// by returns the name of the pod that wrote, from the token of the request.
func by(e *auditv1.Event) string {
	if names := e.User.Extra["authentication.kubernetes.io/pod-name"]; len(names) == 1 {
		return names[0]
	}
	return "no pod"
}

// TestLeaderKilled kills the leader of two weirs during an Autoscaler's
// stabilization window. The other has the same history: it scales the target
// down when the window is over, and not before.
func TestLeaderKilled(t *testing.T) {
	const window = 75 * time.Second
	w := sharedCluster
	w.twoReplicas(t)
	namespace := w.namespace(t, "leader")
	w.loadable(t, namespace, "web")
	seen := w.watchScales(t, namespace)
	spec := following("web", 5, onCPU(50))
	seconds := int32(window.Seconds())
	spec.Behavior.ScaleDown.StabilizationWindowSeconds = &seconds
	// One reading of a busy machine does not scale up.
	twoReadings := int32(15)
	spec.Behavior.ScaleUp = &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &twoReadings}
	w.autoscaler(t, namespace, "web", "Active", spec)
	w.weirKnowsCPU(t, namespace, "web")
	began := time.Now()
	if err := w.load(t.Context(), namespace, "web", busy); err != nil {
		t.Fatal(err)
	}
	_, up, err := seen.waitForReplicas(t.Context(), "web", many, began, 90*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, 30*time.Second) // all three pods are read, and the number of replicas no longer changes
	if _, after := seen.of("web", up.Add(time.Millisecond)); len(after) > 0 {
		e, err := w.explanation(t.Context(), namespace, "autoscalers", "web")
		t.Fatalf("the load is steady, and the count is not: %s; weir explains it by %+v, %v", inWords(after, up), e, err)
	}

	dropped := time.Now()
	if err := w.load(t.Context(), namespace, "web", idle); err != nil {
		t.Fatal(err)
	}
	eventually(t, "weir sees that the load is gone, and waits", time.Minute, func() error {
		e, err := w.explanation(t.Context(), namespace, "autoscalers", "web")
		if err != nil {
			return err
		}
		if len(e.Metrics) != 1 || e.Metrics[0].Proposal == nil || *e.Metrics[0].Proposal > few {
			return fmt.Errorf("it says: %s", e.Summary)
		}
		if e.Desired != many {
			t.Errorf("in the window weir desires %d replicas, want %d: %s", e.Desired, many, e.Summary)
		}
		return nil
	})
	led, lease, err := w.leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	// The processes are killed first, because on an orderly end weir would release
	// the Lease.
	if err := w.PodCgroup(led.Status.QOSClass, led.UID).Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.deleteByForce(t, led)
	var follows *corev1.Pod
	took := eventually(t, "the other leads", lease+10*time.Second, func() (err error) {
		if follows, _, err = w.leader(t.Context()); err == nil && follows.UID == led.UID {
			err = fmt.Errorf("%s does still", led.Name)
		}
		return err
	})
	t.Logf("the leader was killed %.1fs after the load was gone; the other took over %.1fs later (the Lease holds for %v)",
		killed.Sub(dropped).Seconds(), took.Seconds(), lease)
	if took > lease+8*time.Second { // a replica tries every 2 to 4.4 s, and needs two tries
		t.Errorf("taking over took %v, want the Lease's %v and 8s at most", took, lease)
	}

	_, down, err := seen.waitForReplicas(t.Context(), "web", few, dropped, window+2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, after := seen.of("web", dropped)
	t.Logf("the load was gone, and the Deployment was scaled: %s", inWords(after, dropped))
	// The last recommendation of three was made when the load was removed, or in
	// the five seconds before.
	if early := window - 5*time.Second; after[0].at.Sub(dropped) < early {
		t.Errorf("scaled down %v after the load was gone, want it to wait for the window of %v", after[0].at.Sub(dropped), window)
	}
	for i, c := range after {
		if i > 0 && c.replicas > after[i-1].replicas || c.replicas > many || c.replicas < few {
			t.Errorf("without load the Deployment was scaled: %s", inWords(after, dropped))
		}
	}
	// The end of the load is visible after two reads of the node, and the new
	// leader may begin its window when it takes over.
	if late := window + 45*time.Second + lease; down.Sub(dropped) > late {
		t.Errorf("scaled down %v after the load was gone, want it within %v", down.Sub(dropped), late)
	}

	eventually(t, "the audit log has both leaders' writes", 10*time.Second, func() error {
		var writers []string
		for _, e := range w.writes(t, namespace) {
			if !ofScale(&e, "web") {
				continue
			}
			if who := by(&e); len(writers) == 0 || writers[len(writers)-1] != who {
				writers = append(writers, who)
			}
		}
		if len(writers) != 2 || writers[0] != led.Name || writers[1] != follows.Name {
			return fmt.Errorf("the scale was written by %q, want it by %s and then %s", writers, led.Name, follows.Name)
		}
		return nil
	})
}
