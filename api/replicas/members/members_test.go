package members

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/test/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica is a running Membership with the last list that it reported.
type replica struct {
	now   atomic.Pointer[[]string]
	leave func()
}

func join(t *testing.T, client *fake.Clientset, name string) *replica {
	t.Helper()
	r := &replica{}
	registry, err := New(Options{
		Client: client.CoordinationV1(), Namespace: "weir-system", Name: "weir", Replica: "pod-" + name,
		Self: Member{Identity: name, Address: "10.0.0.1:443", Certificate: "PEM of " + name},
		Verify: func(_ context.Context, _, address string) error {
			if address != "10.0.0.1:443" {
				return errors.New("no such pod")
			}
			return nil
		},
		Changed: func(all []Member) {
			var now []string
			for _, m := range all {
				if m.Address != "10.0.0.1:443" || m.Certificate != "PEM of "+m.Identity {
					t.Errorf("member %+v", m)
				}
				now = append(now, m.Identity)
			}
			r.now.Store(&now)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.leave = background.Run(t, registry.Run)
	return r
}

func knows(t *testing.T, r *replica, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	if now := r.now.Load(); now == nil || !slices.Equal(*now, want) {
		t.Errorf("%s: members %v, want %v", when, now, want)
	}
}

func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var away atomic.Bool
		var dead atomic.Value // the name of a Lease
		dead.Store("")
		client.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if away.Load() {
				return true, nil, errors.New("the API server is away")
			}
			if u, ok := a.(clienttesting.UpdateAction); ok && u.GetObject().(metav1.Object).GetName() == dead.Load() {
				return true, nil, errors.New("it is dead")
			}
			return false, nil, nil
		})
		a := join(t, client, "a")
		knows(t, a, "alone", "a")
		b := join(t, client, "b")
		time.Sleep(3 * time.Second)
		knows(t, a, "b has come", "a", "b")
		knows(t, b, "b has come", "a", "b")

		away.Store(true)
		time.Sleep(time.Minute)
		knows(t, a, "the API server is away", "a", "b")
		away.Store(false)
		time.Sleep(3 * time.Second)
		knows(t, a, "the API server is back", "a", "b")

		dead.Store("weir-pod-b")
		time.Sleep(7 * time.Second)
		knows(t, a, "b is dead for 7 s", "a", "b")
		time.Sleep(6 * time.Second)
		knows(t, a, "b is dead for 13 s", "a")
		time.Sleep(11 * time.Minute)
		leases, err := client.CoordinationV1().Leases("weir-system").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(leases.Items) != 1 {
			t.Errorf("%d Leases, %v; b's should have been removed", len(leases.Items), err)
		}
		dead.Store("")
		time.Sleep(3 * time.Second)
		knows(t, a, "b is back", "a", "b")

		forge := func(address string) {
			t.Helper()
			lease, err := client.CoordinationV1().Leases("weir-system").Get(t.Context(), "weir-pod-b", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lease.Name, lease.ResourceVersion = "weir-pod-c", ""
			*lease.Spec.HolderIdentity = "c"
			lease.Annotations[leader.AddressAnnotation], lease.Annotations[leader.CertificateAnnotation] = address, "PEM of c"
			_ = client.CoordinationV1().Leases("weir-system").Delete(t.Context(), lease.Name, metav1.DeleteOptions{})
			if _, err := client.CoordinationV1().Leases("weir-system").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
		forge("evil:443")
		knows(t, a, "a Lease names what is no replica", "a", "b")
		forge("10.0.0.1:443")
		knows(t, a, "it names a replica", "a", "b", "c")
		forge("evil:443")
		knows(t, a, "it names another address", "a", "b")

		b.leave()
		time.Sleep(3 * time.Second)
		knows(t, a, "b has left", "a")
	})
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no error")
	}
}
