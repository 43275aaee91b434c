package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The annotations of the Lease that say how its holder is reached.
const (
	// AddressAnnotation is the holder's HOST:PORT.
	AddressAnnotation = "weir-metrics.github.io/address"
	// CertificateAnnotation is the PEM of the certificate it is known by.
	CertificateAnnotation = "weir-metrics.github.io/certificate"
)

// leaseLock is a resourcelock.Interface on a Lease. The library's own writes no
// annotations, and what holds the Lease must be written together with how it is
// reached: else a reader could see the one of one replica and the other of
// another. One goroutine at a time uses it.
type leaseLock struct {
	opts          Options
	observeLeader func(leaseHolder)
	renewed       func(since time.Time) // the Lease was written when it was this process's
	lease         *coordination.Lease   // as last read or written
}

// Get is part of resourcelock.Interface.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease, err := l.opts.Client.Leases(l.opts.Namespace).Get(ctx, l.opts.Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err // the elector asks what kind it is
	}
	l.observeLease(lease)
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, nil, fmt.Errorf("encode record: %w", err)
	}
	return record, raw, nil
}

// Create is part of resourcelock.Interface.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.opts.Namespace, Name: l.opts.Name}}
	l.fillLease(lease, record)
	begun := time.Now()
	created, err := l.opts.Client.Leases(l.opts.Namespace).Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	l.renewed(begun)
	l.observeLease(created)
	return nil
}

// Update is part of resourcelock.Interface.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.lease == nil {
		return errors.New("update Lease: it was not read yet")
	}
	lease := l.lease.DeepCopy()
	l.fillLease(lease, record)
	begun := time.Now()
	updated, err := l.opts.Client.Leases(l.opts.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	l.renewed(begun)
	l.observeLease(updated)
	return nil
}

// fillLease writes record and how this process is reached; a Lease without a holder
// says nothing of the latter.
func (l *leaseLock) fillLease(lease *coordination.Lease, record resourcelock.LeaderElectionRecord) {
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	if record.HolderIdentity == "" {
		delete(lease.Annotations, AddressAnnotation)
		delete(lease.Annotations, CertificateAnnotation)
		return
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[AddressAnnotation] = l.opts.Address
	lease.Annotations[CertificateAnnotation] = string(l.opts.Certificate)
}

func (l *leaseLock) observeLease(lease *coordination.Lease) {
	l.lease = lease
	now := leaseHolder{address: lease.Annotations[AddressAnnotation], certificate: []byte(lease.Annotations[CertificateAnnotation])}
	if lease.Spec.HolderIdentity != nil {
		now.identity = *lease.Spec.HolderIdentity
	}
	l.observeLeader(now)
}

// RecordEvent is part of resourcelock.Interface. Who leads is logged instead.
func (l *leaseLock) RecordEvent(string) {}

// Identity is part of resourcelock.Interface.
func (l *leaseLock) Identity() string { return l.opts.Identity }

// Describe is part of resourcelock.Interface.
func (l *leaseLock) Describe() string { return l.opts.Namespace + "/" + l.opts.Name }
