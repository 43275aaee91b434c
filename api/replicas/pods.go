package replicas

import (
	"context"
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// replicaPods are the pods of weir's replicas. Others may have the right to write Leases in weir's
// namespace. That right gives no pod weir's account, and only the kubelet writes a pod's address, so a
// Lease is believed if it names the address of a pod with that account. A replica that is called must
// also show the certificate of the Lease: with another one, the call fails.
type replicaPods struct {
	pods          typedcorev1.PodInterface // of weir's namespace
	account, port string
}

// verify returns an error unless a running pod of weir's account has this identity and address.
func (p replicaPods) verify(ctx context.Context, identity, address string) error {
	name, _, _ := strings.Cut(identity, "_")
	pod, err := p.pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the pod of replica %q: %w", identity, err)
	}
	at := net.JoinHostPort(pod.Status.PodIP, p.port)
	switch {
	case pod.Spec.ServiceAccountName != p.account:
		return fmt.Errorf("pod %s has the service account %s, want %s", name, pod.Spec.ServiceAccountName, p.account)
	case pod.Status.Phase != corev1.PodRunning: // another pod can have its address
		return fmt.Errorf("pod %s is %s, want it to run", name, pod.Status.Phase)
	case address != at:
		return fmt.Errorf("pod %s is at %s, and not at %s", name, at, address)
	}
	return nil
}
