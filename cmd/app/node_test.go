package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodNames(t *testing.T) {
	run := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	web := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u1"},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "setup", ContainerID: "containerd://c1", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
				{Name: "sidecar", ContainerID: "containerd://c2", State: run},
			},
			ContainerStatuses:          []corev1.ContainerStatus{{Name: "app", ContainerID: "cri-o://c3", State: run}, {Name: "waits"}},
			EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", ContainerID: "containerd://c4", State: run}},
		},
	}
	static := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd", UID: "u2", Annotations: map[string]string{"kubernetes.io/config.hash": "0f8ce9ca4e45ee04efb1cd3f24b0b1e9"}}}
	pods := []*corev1.Pod{web, static}
	n := nodePods(func() []*corev1.Pod { return pods })

	got, known := n.running("u1")
	want := map[string]string{"c2": "sidecar", "c3": "app", "c4": "debug"}
	if diff := cmp.Diff(want, got); diff != "" || !known {
		t.Errorf("what runs in web (-want +got), known %v:\n%s", known, diff)
	}
	if n.find("0f8ce9ca4e45ee04efb1cd3f24b0b1e9") != static || n.find("u2") != static {
		t.Errorf("the static pod: %v by its hash, %v by its UID", n.find("0f8ce9ca4e45ee04efb1cd3f24b0b1e9"), n.find("u2"))
	}
	if got, known := n.running("u9"); got != nil || known || n.find("u9") != nil {
		t.Errorf("a pod nobody knows: %v, %v", got, known)
	}
	pods = []*corev1.Pod{static}
	if n.find("u1") != nil || n.find("0f8ce9ca4e45ee04efb1cd3f24b0b1e9") != static {
		t.Errorf("after web is gone: %v, %v", n.find("u1"), n.find("0f8ce9ca4e45ee04efb1cd3f24b0b1e9"))
	}
	pods = nil
	if n.find("0f8ce9ca4e45ee04efb1cd3f24b0b1e9") != nil {
		t.Error("after all are gone, one is there")
	}
}
