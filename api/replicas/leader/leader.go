// Package leader elects one of several replicas with a Lease. Annotations of the Lease have the
// address and the certificate of the leader.
//
// Leader shows which replica answers, and IsLastKnownLeader which one sends. Both keep the last known
// leader until they see another one, so nothing changes while the API server cannot be reached.
// IsLeader is for work that only one replica may do. It depends on the time of the last renewal,
// because a process that was stopped may have lost the Lease without noticing.
//
// The leader writes into the Lease how many nodes it reads. A replica that has read clearly more for
// a minute, or for 20 s if the leader reads none, reports that in the Lease, and the leader gives the Lease
// up.
package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// DefaultRenew is how long a leader tries to renew its Lease before it stops.
const DefaultRenew = 10 * time.Second

// ClientConfig returns a copy of a configuration for the client of an Elector that renews its Lease
// every renew. A request that is not answered ends in half of that time, so that a second one can
// follow. Requests use HTTP/1.1: one that ends early closes its connection, and the next does not
// wait on a connection that swallows what is sent.
func ClientConfig(kube *rest.Config, renew time.Duration) *rest.Config {
	kube = rest.CopyConfig(kube)
	kube.Timeout = renew / 2
	kube.NextProtos = []string{"http/1.1"}
	return kube
}

// Options configure an Elector.
type Options struct {
	// Client reads and writes Leases. It needs get, create and update, and the configuration that
	// ClientConfig returns: an election waits for each answer. Required.
	Client coordinationv1.LeasesGetter
	// Namespace and Name are those of the Lease. Required.
	Namespace, Name string
	// Identity is the name of this process. No other process may have it, not even an earlier one
	// in the same pod. Required.
	Identity string
	// Address is the HOST:PORT where the other replicas reach this one. Required.
	Address string
	// Certificate is the PEM by which they recognise it. Required.
	Certificate []byte
	// Verify returns an error unless another process, which the Lease names, is at that address. It is
	// asked again until it returns none. Nil: the Lease is believed.
	Verify func(ctx context.Context, identity, address string) error
	// Ready reports whether this process can lead. Until then it only watches the Lease. Nil: it
	// always can.
	Ready func() bool
	// Reads returns how many nodes this process reads at present. Nil: the leader keeps the Lease
	// however few it reads.
	Reads func() int
	// Lease is how long a leader stays leader without renewing; 15s if 0.
	Lease time.Duration
	// Renew is how long a leader tries to renew before it stops; DefaultRenew if 0.
	Renew time.Duration
	// Retry is the time between two attempts to renew or to take over; 2s if 0.
	Retry time.Duration
	// Logger logs who leads. The zero Logger discards it.
	Logger logr.Logger
}

// Elector takes part in an election. Several goroutines may call its methods.
type Elector struct {
	opts    Options
	lock    *resourcelock.LeaseLock
	leader  atomic.Pointer[leaseHolder]
	renewed atomic.Pointer[time.Time] // when this process last wrote the Lease
	yields  atomic.Bool               // this process is about to give the Lease up
	reader  readComparison
	unread  unreadLease
}

// leaseHolder is the content of a Lease, and whether it is verified.
type leaseHolder struct {
	identity, address, certificate string
	verified                       bool
}

// New returns an Elector. It does nothing before Run.
func New(o Options) (*Elector, error) {
	if o.Client == nil || o.Namespace == "" || o.Name == "" || o.Identity == "" || o.Address == "" || len(o.Certificate) == 0 {
		return nil, errors.New("an election needs a client, a namespace, a name, an identity, an address and a certificate")
	}
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	o.Lease, o.Renew, o.Retry = cmp.Or(o.Lease, 15*time.Second), cmp.Or(o.Renew, DefaultRenew), cmp.Or(o.Retry, 2*time.Second)
	e := &Elector{opts: o}
	e.lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Client:     &leaseClient{o.Client.Leases(o.Namespace), e},
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}
	return e, nil
}

// Run takes part in the election until ctx ends, and then releases the Lease if this process holds
// it. End it after the server has ended, because until then the other replicas forward requests to
// this one. Errors are retried and logged.
func (e *Elector) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, e.opts.Logger.V(1)) // this package itself logs who leads
	if !e.wait(ctx, e.opts.Ready) {
		return nil
	}
	e.reader.mayLead = true
	for ctx.Err() == nil {
		term, yield := context.WithCancel(ctx)
		e.reader.yield = yield
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: e.lock, Name: e.opts.Name, ReleaseOnCancel: true,
			LeaseDuration: e.opts.Lease, RenewDeadline: e.opts.Renew, RetryPeriod: e.opts.Retry,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return fmt.Errorf("begin election: %w", err)
		}
		// It returns when ctx ends and when the Lease is lost or given up. In the other cases this
		// process becomes a candidate again.
		elector.Run(term)
		yield()
		if e.yields.Swap(false) {
			e.letAnotherLead(ctx)
		}
	}
	return nil
}

// wait watches the Lease until a condition is true. It returns false if ctx ends first.
func (e *Elector) wait(ctx context.Context, until func() bool) bool {
	err := wait.PollUntilContextCancel(ctx, e.opts.Retry, true, func(ctx context.Context) (bool, error) {
		if until() {
			return true, nil
		}
		// An error means that there is no Lease yet, or that the API server does not answer.
		_, _, _ = e.lock.Get(ctx)
		return false, nil
	})
	return err == nil
}

// Leader returns the leader's address and certificate, and whether it is this process. The
// address is empty if no leader is known, or if it is not verified.
func (e *Elector) Leader() (address string, certificate []byte, self bool) {
	l := ptr.Deref(e.leader.Load(), leaseHolder{})
	if l.identity == "" || !l.verified {
		return "", nil, false
	}
	return l.address, []byte(l.certificate), l.identity == e.opts.Identity
}

// IsLeader reports whether this process leads and no other can: it renewed the Lease less than
// Renew ago, and others cannot take the Lease before it expires. Work that begins while IsLeader is
// true must end within the difference between Lease and Renew.
func (e *Elector) IsLeader() bool {
	_, _, self := e.Leader()
	since := e.renewed.Load()
	return self && since != nil && time.Since(*since) < e.opts.Renew && !e.yields.Load()
}

// IsLastKnownLeader reports whether this process held the Lease when it last read it. It is for work
// that two replicas had better do at the same time than none: a leader that loses the API server
// goes on, and does not notice if another replica takes over.
func (e *Elector) IsLastKnownLeader() bool {
	_, _, self := e.Leader()
	return self
}

// unreadLease is for how long the Lease could not be read. Only the goroutine of Run uses it.
type unreadLease struct {
	since  time.Time // zero if it could be read last
	logged bool
}

// noteRead logs if the Lease could not be read for as long as a leader tries to renew it, and when it
// can be read again. A Lease that does not exist yet was read, too.
func (e *Elector) noteRead(err error) {
	u := &e.unread
	switch {
	case err == nil || apierrors.IsNotFound(err):
		if u.logged {
			e.opts.Logger.Info("the Lease can be read again")
		}
		*u = unreadLease{}
	case u.since.IsZero():
		u.since = time.Now()
	case u.logged || time.Since(u.since) < e.opts.Renew:
	default:
		u.logged = true
		if l := ptr.Deref(e.leader.Load(), leaseHolder{}); l.identity != "" {
			e.opts.Logger.Error(err, "the Lease cannot be read: its last known holder goes on to answer and to send, and no replica acts", "leader", l.identity, "self", l.identity == e.opts.Identity)
		} else {
			e.opts.Logger.Error(err, "the Lease cannot be read, and no leader is known: this replica does not send until it can be read")
		}
	}
}

// observe verifies and stores the content of the Lease.
func (e *Elector) observe(ctx context.Context, lease *coordination.Lease) {
	before := ptr.Deref(e.leader.Load(), leaseHolder{})
	now := leaseHolder{ptr.Deref(lease.Spec.HolderIdentity, ""), lease.Annotations[AddressAnnotation], lease.Annotations[CertificateAnnotation], true}
	self, log := now.identity == e.opts.Identity, e.opts.Logger.WithValues("leader", now.identity, "address", now.address)
	var err error
	if now != before && now.identity != "" && !self && e.opts.Verify != nil {
		err = e.opts.Verify(ctx, now.identity, now.address)
		now.verified = err == nil
	}
	e.leader.Store(&now)
	switch {
	case now.identity == "" || now.identity == before.identity && now.verified == before.verified:
	case now.verified:
		log.Info("the leader is known", "self", self)
	default:
		log.Error(err, "the Lease names a leader that is not a replica of this weir, so this replica answers itself; find out who may write Leases in this namespace")
	}
}
