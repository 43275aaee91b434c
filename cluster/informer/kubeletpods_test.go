package informer

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/weir-metrics/weir/test/background"
)

// kubeletPods is a kubelet's Pods API.
type kubeletPods struct {
	podsv1alpha1.UnimplementedPodsServer
	pods []*v1.Pod
}

func (k *kubeletPods) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	answer := &podsv1alpha1.ListPodsResponse{}
	for _, p := range k.pods {
		b, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		answer.Pods = append(answer.Pods, b)
	}
	return answer, nil
}

// serveKubeletPods serves the Pods API of a kubelet with these pods, and returns its socket.
func serveKubeletPods(t *testing.T, pods ...*v1.Pod) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "pods-api.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podsv1alpha1.RegisterPodsServer(server, &kubeletPods{pods: pods})
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// Until the API server has listed the pods, they are the kubelet's. Afterwards they are the API
// server's.
func TestPodsOfTheKubelet(t *testing.T) {
	socket := serveKubeletPods(t, pod("web", "u1", "n1"))
	client := fake.NewClientset(node("n1"), pod("web", "u1", "n1"), pod("cart", "u2", "n1"))
	var back atomic.Bool
	client.PrependReactor("list", "*", func(ktesting.Action) (bool, runtime.Object, error) {
		return !back.Load(), nil, errors.New("the API server is away")
	})
	c := NewForClient(client, Options{Node: "n1", KubeletPods: socket, Debounce: time.Millisecond})
	background.Run(t, c.Run)
	until := func(want string) {
		t.Helper()
		for strings.Join(active(c), ", ") != want || c.Facts() == nil {
			select {
			case <-c.Changed():
			case <-time.After(time.Minute):
				t.Fatalf("pods are %v, want %s", active(c), want)
			}
		}
	}
	until("shop/web u1 Running")
	if f := c.Facts(); f.Synced || !f.At.IsZero() || len(f.PodsOn("n1")) != 1 {
		t.Errorf("synced %t at %v with %d pods, want the pod alone", f.Synced, f.At, len(f.PodsOn("n1")))
	}
	back.Store(true)
	until("shop/cart u2 Running, shop/web u1 Running")
	if !c.queue.fromKubelet(nil, true, c.converter()) {
		t.Error("the kubelet is asked again")
	}
	if got := active(c); len(got) != 2 {
		t.Errorf("the kubelet's late answer replaces the API server's: %v", got)
	}
}

// A kubelet without the API leaves the pods unknown, and says what is missing.
func TestNoPodsAPI(t *testing.T) {
	_, err := ListKubeletPods(t.Context(), filepath.Join(t.TempDir(), "pods-api.sock"))
	if err == nil || !strings.Contains(err.Error(), "feature gate PodsAPI") {
		t.Errorf("got %v", err)
	}
	q := newQueue()
	if q.fromKubelet(nil, false, nil) || q.take().listedPods {
		t.Error("an error counts as a list of no pods")
	}
}
