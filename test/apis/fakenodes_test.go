//go:build e2e

package apis

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fakeNode is a node that exists only in the API server, which has it as ready.
type fakeNode struct {
	name    string
	address string // none if empty
	port    int32  // of its kubelet
	labels  map[string]string
}

// addFakeNodes creates fake nodes, and on each a pod of the same name that the
// API server has as running. The nodes stay ready until the test ends.
func (w *testCluster) addFakeNodes(t *testing.T, namespace string, nodes ...fakeNode) {
	t.Helper()
	for _, g := range nodes {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: g.name, Labels: g.labels},
			Status: corev1.NodeStatus{
				DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: g.port}},
				Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Ghost",
					LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
				}},
			},
		}
		if g.address != "" {
			node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: g.address}}
		}
		if _, err := w.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.deleteNode(t, g.name) })
		w.pretend(t, namespace, g.name, g.name)
	}
	// kube-controller-manager makes a node not ready that sends no heartbeat for 50 s.
	background(t, 10*time.Second, func() bool {
		beat := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		for _, g := range nodes {
			// An error is temporary: a test may have stopped the API server.
			w.kube.CoreV1().Nodes().Patch(t.Context(), g.name, types.StrategicMergePatchType, beat, metav1.PatchOptions{}, "status")
		}
		return true
	})
}

// pretend creates a pod that runs on a node only in the API server.
func (w *testCluster) pretend(t *testing.T, namespace, name, node string) {
	t.Helper()
	p := pod(name, container("app", "pause"))
	p.Spec.NodeName = node
	p, err := w.kube.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Ready: true, Image: p.Spec.Containers[0].Image, ContainerID: "containerd://" + name,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	if _, err := w.kube.CoreV1().Pods(namespace).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // no kubelet will confirm that the pod has ended
		none := int64(0)
		err := w.kube.CoreV1().Pods(namespace).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &none})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}
