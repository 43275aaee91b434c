// Package members maintains the list of weir's replicas. Each replica has its own Lease, with its
// address and its certificate.
//
// A replica that did not renew its Lease in time is removed from the list. Each process measures
// that time with its own clock, from when it first saw the Lease unchanged, because the times in a
// Lease come from other clocks. While the API server cannot be reached, the list stays as it is,
// because no replica can renew.
package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-metrics/weir/api/replicas/leader"
)

// Label marks the Leases of one weir's replicas. Its value is the weir's name.
const Label = "weir-metrics.github.io/members-of"

// Member is a replica.
type Member struct {
	// Identity is the name of the process. A restarted process has another one.
	Identity string
	// Address is the HOST:PORT where other replicas reach it.
	Address string
	// Certificate is the PEM that it shows to other replicas.
	Certificate string
}

// Options configure a Membership. Fields without a default are required, but Verify.
type Options struct {
	// Client reads and writes Leases. It needs list, create, update and delete.
	Client coordinationv1.LeasesGetter
	// Namespace is where the Leases are.
	Namespace string
	// Name is the weir's name, which its replicas have in common.
	Name string
	// Replica is the pod's name. The Lease of this replica is called Name-Replica.
	Replica string
	// Self is this process.
	Self Member
	// Changed is called with all members, Self included, sorted by identity, when the list
	// changes.
	Changed func([]Member)
	// Verify returns an error unless another replica, which a Lease names, is at that address. Nil: Leases
	// are believed.
	Verify func(ctx context.Context, identity, address string) error
	// Logger logs changes of the list. The zero Logger discards them.
	Logger logr.Logger
}

const (
	leaseTime  = 10 * time.Second // how long a replica stays a member without renewing
	renewEvery = 2 * time.Second  // and looks at the others
	removeAge  = 10 * time.Minute // of the Lease of a gone replica
)

// Membership maintains the list of members. Only one goroutine may call its methods.
type Membership struct {
	o        Options
	lease    *coordination.Lease      // of this replica, as last written
	seen     map[string]observedLease // by the Lease's name
	reported []Member
	failing  bool
}

// observedLease holds when a Lease was first seen in its present state.
type observedLease struct {
	renewed metav1.MicroTime
	holder  string
	since   time.Time
	// checked is the member that was last verified, and refused whether it is not a replica of this weir.
	checked Member
	refused bool
}

// New returns a Membership. It does nothing before Run.
func New(o Options) (*Membership, error) {
	if o.Client == nil || o.Changed == nil || o.Namespace == "" || o.Name == "" || o.Replica == "" || o.Self == (Member{}) {
		return nil, errors.New("the list of replicas needs Options.Client, Changed, Namespace, Name, Replica and Self")
	}
	return &Membership{o: o, seen: map[string]observedLease{}}, nil
}

// Run renews this replica's Lease until ctx ends. Then it deletes the Lease, so that the others do
// not wait until it expires. Errors are logged and retried.
func (m *Membership) Run(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) { m.logChange(m.renewAndList(ctx)) }, renewEvery)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	err := m.leases().Delete(ctx, m.ownLeaseName(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		m.o.Logger.Info("the Lease of this replica could not be deleted; it expires by itself", "err", err.Error())
	}
	return nil
}

// logChange logs when updating the list starts to fail and when it works again.
func (m *Membership) logChange(err error) {
	switch {
	case err != nil && !m.failing:
		m.o.Logger.Error(err, "the list of replicas cannot be updated; the last known list stays in use")
	case err == nil && m.failing:
		m.o.Logger.Info("the list of replicas is updated again")
	}
	m.failing = err != nil
}

func (m *Membership) leases() coordinationv1.LeaseInterface { return m.o.Client.Leases(m.o.Namespace) }
func (m *Membership) ownLeaseName() string                  { return m.o.Name + "-" + m.o.Replica }

// renewAndList renews this replica's Lease and reads all of them.
func (m *Membership) renewAndList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTime/2)
	defer cancel()
	if err := m.renewLease(ctx); err != nil {
		return err
	}
	list, err := m.leases().List(ctx, metav1.ListOptions{LabelSelector: labels.Set{Label: m.o.Name}.String()})
	if err != nil {
		return fmt.Errorf("list the Leases of replicas: %w", err)
	}
	now := time.Now()
	all := []Member{m.o.Self}
	observed := make(map[string]observedLease, len(list.Items))
	for i := range list.Items {
		l := &list.Items[i]
		if l.Name == m.ownLeaseName() {
			continue
		}
		s := m.observeLease(l, now)
		age := now.Sub(s.since)
		switch {
		case age < leaseTime:
			m.verify(ctx, &s, Member{s.holder, l.Annotations[leader.AddressAnnotation], l.Annotations[leader.CertificateAnnotation]})
			if !s.refused {
				all = append(all, s.checked)
			}
		case age > removeAge:
			// The first replica that sees it deletes it.
			_ = m.leases().Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &l.ResourceVersion}})
		}
		observed[l.Name] = s
	}
	m.seen = observed
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Identity, b.Identity) })
	if !slices.Equal(all, m.reported) {
		m.o.Logger.Info("the replicas have changed", "now", len(all), "before", len(m.reported))
		m.reported = all
		m.o.Changed(slices.Clone(all))
	}
	return nil
}

// observeLease returns since when a Lease has its present state.
func (m *Membership) observeLease(l *coordination.Lease, now time.Time) observedLease {
	s := observedLease{renewed: ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}), holder: ptr.Deref(l.Spec.HolderIdentity, ""), since: now}
	before, ok := m.seen[l.Name]
	if ok && before.holder == s.holder && before.renewed.Equal(&s.renewed) {
		return before
	}
	s.checked, s.refused = before.checked, before.refused
	return s
}

// verify verifies a member, unless that was done.
func (m *Membership) verify(ctx context.Context, s *observedLease, member Member) {
	isNew := s.checked != member
	if m.o.Verify == nil || !isNew && !s.refused {
		s.checked = member
		return
	}
	err := m.o.Verify(ctx, member.Identity, member.Address)
	if s.checked, s.refused = member, err != nil; err != nil && isNew {
		m.o.Logger.Error(err, "a Lease names a member that is not a replica of this weir, so nothing is read from it; find out who may write Leases in this namespace", "replica", member.Identity, "address", member.Address)
	}
}

// renewLease writes this replica's Lease.
func (m *Membership) renewLease(ctx context.Context) error {
	if m.lease != nil {
		updated, err := m.leases().Update(ctx, m.fillLease(m.lease.DeepCopy()), metav1.UpdateOptions{})
		if err == nil {
			m.lease = updated
			return nil
		}
		m.lease = nil
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("renew the Lease of this replica: %w", err)
		}
	}
	fresh := m.fillLease(&coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.o.Namespace, Name: m.ownLeaseName()}})
	created, err := m.leases().Create(ctx, fresh, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // it is from this pod before its restart
		created, err = m.leases().Update(ctx, fresh, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("take the Lease of this replica: %w", err)
	}
	m.lease = created
	return nil
}

func (m *Membership) fillLease(l *coordination.Lease) *coordination.Lease {
	now, seconds := metav1.NowMicro(), int32(leaseTime/time.Second)
	l.Labels = map[string]string{Label: m.o.Name}
	l.Annotations = map[string]string{leader.AddressAnnotation: m.o.Self.Address, leader.CertificateAnnotation: m.o.Self.Certificate}
	l.Spec = coordination.LeaseSpec{HolderIdentity: &m.o.Self.Identity, LeaseDurationSeconds: &seconds, RenewTime: &now}
	return l
}
