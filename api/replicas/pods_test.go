package replicas

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestOnlyReplicasAreBelieved names what a Lease can say of its holder.
func TestOnlyReplicasAreBelieved(t *testing.T) {
	pod := func(name, account, ip string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: name},
			Spec:       corev1.PodSpec{ServiceAccountName: account}, Status: corev1.PodStatus{Phase: phase, PodIP: ip},
		}
	}
	elsewhere := pod("weir-9", "weir", "10.0.0.9", corev1.PodRunning)
	elsewhere.Namespace = "other"
	client := fake.NewClientset(
		pod("weir-1", "weir", "10.0.0.1", corev1.PodRunning), pod("weir-6", "weir", "fd00::6", corev1.PodRunning),
		pod("evicted", "weir", "10.0.0.2", corev1.PodFailed), pod("new", "weir", "", corev1.PodPending),
		pod("other", "default", "10.0.0.3", corev1.PodRunning), elsewhere,
	)
	replicas := replicaPods{client.CoreV1().Pods("weir-system"), "weir", "10250"}
	f := func(identity, address, want string) {
		t.Helper()
		err := replicas.verify(t.Context(), identity, address)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q at %s: got %v, want %q", identity, address, err, want)
		}
	}
	f("weir-1_a7e1", "10.0.0.1:10250", "")
	f("weir-6_a7e1", "[fd00::6]:10250", "")
	f("weir-1_a7e1", "192.0.2.1:10250", "pod weir-1 is at 10.0.0.1:10250, and not at 192.0.2.1:10250")
	f("weir-1_a7e1", "10.0.0.1:30443", "and not at 10.0.0.1:30443") // a NodePort, if the pod has its node's address
	f("evicted_a7e1", "10.0.0.2:10250", "pod evicted is Failed")
	f("new_a7e1", ":10250", "pod new is Pending")
	f("other_a7e1", "10.0.0.3:10250", "pod other has the service account default, want weir")
	f("weir-9_a7e1", "10.0.0.9:10250", "not found")
	f("nobody", "192.0.2.1:10250", "not found")
}
