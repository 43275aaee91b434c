package replicas

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/weir-metrics/weir/test/cmptest"
)

// TestLeasesBelongToTheAccount checks that a new Lease belongs to the service account that weir's
// token names, and to nobody if the token names none.
func TestLeasesBelongToTheAccount(t *testing.T) {
	f := func(token string, want []metav1.OwnerReference) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir"}}
		var leases coordinationv1.LeasesGetter = fake.NewClientset().CoordinationV1()
		if own := readAccount(file); own != nil {
			leases = ownedLeases{leases, own}
		}
		got, err := leases.Leases("weir-system").Create(t.Context(), lease, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cmptest.Equal(t, fmt.Sprintf("token %q: owners of the Lease", token), want, got.OwnerReferences)
	}
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	f(jwt(`{"aud":["x"],"kubernetes.io":{"namespace":"weir-system","serviceaccount":{"name":"weir","uid":"u1"}}}`)+"\n",
		[]metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "weir", UID: "u1"}})
	f(jwt(`{"sub":"somebody"}`), nil)
	f(jwt(`{"kubernetes.io":{"namespace":"elsewhere","serviceaccount":{"name":"weir","uid":"u1"}}}`), nil)
	f(jwt(`{"kubernetes.io":{"namespace":"weir-system","serviceaccount":{"name":"weir"}}}`), nil)
	f(jwt(`no JSON`), nil)
	f("opaque", nil)
	f("a.!.c", nil)
	f("", nil)
}
