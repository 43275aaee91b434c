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
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

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

// Options configure a Membership. All fields without a default are required.
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
	// Lease is how long a replica stays a member without renewing; default 10 s.
	Lease time.Duration
	// Renew is the time between two renewals, and two looks at the others; default 2 s.
	Renew time.Duration
	// Remove is the age at which the Lease of a gone replica is deleted; default 10 min.
	Remove time.Duration
	// Logger logs changes of the list. The zero Logger discards them.
	Logger logr.Logger
	// Now returns the time; default time.Now.
	Now func() time.Time
}

// Membership maintains the list of members. Only one goroutine may call its methods.
type Membership struct {
	o        Options
	lease    *coordination.Lease      // of this replica, as last written
	seen     map[string]observedLease // by the Lease's name
	reported []Member
	failing  bool
}

// observedLease says when a Lease was first seen in its present state.
type observedLease struct {
	renewed metav1.MicroTime
	holder  string
	since   time.Time
}

// New returns a Membership. It does nothing before Run.
func New(o Options) (*Membership, error) {
	if o.Client == nil || o.Changed == nil || o.Namespace == "" || o.Name == "" || o.Replica == "" || o.Self == (Member{}) {
		return nil, errors.New("the list of replicas needs Options.Client, Changed, Namespace, Name, Replica and Self")
	}
	o.Lease, o.Renew, o.Remove = cmp.Or(o.Lease, 10*time.Second), cmp.Or(o.Renew, 2*time.Second), cmp.Or(o.Remove, 10*time.Minute)
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Membership{o: o, seen: map[string]observedLease{}}, nil
}

// Run renews this replica's Lease until ctx ends. Then it deletes the Lease, so that the others do
// not wait until it expires. Errors are logged and retried.
func (r *Membership) Run(ctx context.Context) error {
	tick := time.NewTicker(r.o.Renew)
	defer tick.Stop()
	for {
		r.logChange(r.renewAndList(ctx))
		select {
		case <-tick.C:
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Renew)
			defer cancel()
			err := r.leases().Delete(ctx, r.ownLeaseName(), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				r.o.Logger.Info("the Lease of this replica could not be deleted; it expires by itself", "err", err.Error())
			}
			return nil
		}
	}
}

// logChange logs when updating the list starts to fail and when it works again.
func (r *Membership) logChange(err error) {
	switch {
	case err != nil && !r.failing:
		r.o.Logger.Error(err, "the list of replicas cannot be updated; the last known list stays in use")
	case err == nil && r.failing:
		r.o.Logger.Info("the list of replicas is updated again")
	}
	r.failing = err != nil
}

func (r *Membership) leases() coordinationv1.LeaseInterface { return r.o.Client.Leases(r.o.Namespace) }
func (r *Membership) ownLeaseName() string                  { return r.o.Name + "-" + r.o.Replica }

// renewAndList renews this replica's Lease and reads all of them.
func (r *Membership) renewAndList(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Lease/2)
	defer cancel()
	if err := r.renewLease(ctx); err != nil {
		return err
	}
	list, err := r.leases().List(ctx, metav1.ListOptions{LabelSelector: labels.Set{Label: r.o.Name}.String()})
	if err != nil {
		return fmt.Errorf("list the Leases of replicas: %w", err)
	}
	now := r.o.Now()
	all := []Member{r.o.Self}
	there := make(map[string]observedLease, len(list.Items))
	for i := range list.Items {
		l := &list.Items[i]
		if l.Name == r.ownLeaseName() {
			continue
		}
		s := r.observeLease(l, now)
		there[l.Name] = s
		age := now.Sub(s.since)
		switch {
		case age < r.o.Lease:
			all = append(all, Member{s.holder, l.Annotations[leader.AddressAnnotation], l.Annotations[leader.CertificateAnnotation]})
		case age > r.o.Remove:
			// The first replica that sees it deletes it.
			_ = r.leases().Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &l.ResourceVersion}})
		}
	}
	r.seen = there
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.Identity, b.Identity) })
	if !slices.Equal(all, r.reported) {
		r.o.Logger.Info("the replicas have changed", "now", len(all), "before", len(r.reported))
		r.reported = all
		r.o.Changed(slices.Clone(all))
	}
	return nil
}

// observeLease returns since when a Lease has its present state.
func (r *Membership) observeLease(l *coordination.Lease, now time.Time) observedLease {
	s := observedLease{since: now}
	if l.Spec.RenewTime != nil {
		s.renewed = *l.Spec.RenewTime
	}
	if l.Spec.HolderIdentity != nil {
		s.holder = *l.Spec.HolderIdentity
	}
	if before, ok := r.seen[l.Name]; ok && before.holder == s.holder && before.renewed.Equal(&s.renewed) {
		return before
	}
	return s
}

// renewLease writes this replica's Lease.
func (r *Membership) renewLease(ctx context.Context) error {
	if r.lease != nil {
		updated, err := r.leases().Update(ctx, r.fillLease(r.lease.DeepCopy()), metav1.UpdateOptions{})
		if err == nil {
			r.lease = updated
			return nil
		}
		r.lease = nil
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("renew the Lease of this replica: %w", err)
		}
	}
	fresh := r.fillLease(&coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.o.Namespace, Name: r.ownLeaseName()}})
	created, err := r.leases().Create(ctx, fresh, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // it is from this pod before its restart
		created, err = r.leases().Update(ctx, fresh, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("take the Lease of this replica: %w", err)
	}
	r.lease = created
	return nil
}

func (r *Membership) fillLease(l *coordination.Lease) *coordination.Lease {
	now, seconds := metav1.NewMicroTime(r.o.Now()), int32((r.o.Lease+time.Second-1)/time.Second)
	l.Labels = map[string]string{Label: r.o.Name}
	l.Annotations = map[string]string{leader.AddressAnnotation: r.o.Self.Address, leader.CertificateAnnotation: r.o.Self.Certificate}
	l.Spec = coordination.LeaseSpec{HolderIdentity: &r.o.Self.Identity, LeaseDurationSeconds: &seconds, RenewTime: &now}
	return l
}
