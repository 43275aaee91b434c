package replicas

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// ownedLeases creates Leases that belong to an account: Kubernetes deletes them with it. Whoever
// removes weir then need not know their names.
type ownedLeases struct {
	coordinationv1.LeasesGetter
	owner *account
}

// account is a service account.
type account struct {
	namespace string
	reference metav1.OwnerReference
}

// readAccount returns the account of weir, which its token names. It is nil without such a token, as
// outside of pods.
func readAccount(tokenFile string) *account {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil
	}
	return accountOf(string(token))
}

// accountOf returns the service account for which the API server issued a token, or nil. It verifies
// nothing.
func accountOf(token string) *account {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	var claims struct {
		Kubernetes struct {
			Namespace string `json:"namespace"`
			Account   struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	err = json.Unmarshal(text, &claims)
	named := claims.Kubernetes.Account
	if err != nil || named.Name == "" || named.UID == "" {
		return nil
	}
	return &account{claims.Kubernetes.Namespace, metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: named.Name, UID: named.UID}}
}

// Leases implements coordinationv1.LeasesGetter. Leases in other namespaces than the owner's belong
// to nobody: Kubernetes would delete them at once.
func (l ownedLeases) Leases(namespace string) coordinationv1.LeaseInterface {
	leases := l.LeasesGetter.Leases(namespace)
	if namespace != l.owner.namespace {
		return leases
	}
	return ownedLease{leases, l.owner.reference}
}

type ownedLease struct {
	coordinationv1.LeaseInterface
	owner metav1.OwnerReference
}

// Create creates a Lease that belongs to the owner. Existing Leases keep the owner that they have:
// to change it, one needs the right to delete them.
func (l ownedLease) Create(ctx context.Context, lease *coordination.Lease, o metav1.CreateOptions) (*coordination.Lease, error) {
	lease = lease.DeepCopy()
	lease.OwnerReferences = []metav1.OwnerReference{l.owner}
	return l.LeaseInterface.Create(ctx, lease, o)
}
