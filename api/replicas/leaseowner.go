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
	owner     metav1.OwnerReference
	namespace string // of the owner
}

// ownLeases returns a client that creates Leases which belong to weir's service account. The token in
// tokenFile names the account. Without such a token, as outside of pods, Leases belong to nobody.
func ownLeases(c coordinationv1.LeasesGetter, tokenFile string) coordinationv1.LeasesGetter {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return c
	}
	namespace, owner, ok := accountOf(string(token))
	if !ok {
		return c
	}
	return ownedLeases{c, owner, namespace}
}

// accountOf returns the namespace and the reference of the service account for which the API server
// issued a token. It verifies nothing.
func accountOf(token string) (namespace string, owner metav1.OwnerReference, ok bool) {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return "", owner, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", owner, false
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
	account := claims.Kubernetes.Account
	owner = metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}
	return claims.Kubernetes.Namespace, owner, err == nil && account.Name != "" && account.UID != ""
}

// Leases implements coordinationv1.LeasesGetter. Leases in other namespaces than the owner's belong
// to nobody: Kubernetes would delete them at once.
func (l ownedLeases) Leases(namespace string) coordinationv1.LeaseInterface {
	leases := l.LeasesGetter.Leases(namespace)
	if namespace != l.namespace {
		return leases
	}
	return ownedLease{leases, l.owner}
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
