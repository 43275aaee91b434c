package execute

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/internal/humanize"
)

const (
	// LeasePrefix begins the name of a node's Lease; the node's name follows. An admission policy lets an
	// agent write no other.
	LeasePrefix = "weir-evictions-"
	// leaseLabel is on the Leases of nodes that evicted.
	leaseLabel = "weir.dev/evictions"
	// maxPlaces is the largest number of nodes that may evict at one time, in a cluster of any size.
	maxPlaces = 50
	// leaseTime is how long a node has a place, and may evict.
	leaseTime = time.Minute
	// leaseRetry is the time between two attempts to get one.
	leaseRetry = 30 * time.Second
	// actedTime is how long a node counts as one that evicted.
	actedTime = 10 * time.Minute
	// urgentTime limits the requests for Leases if a pod is to be killed for a hard threshold.
	urgentTime = 2 * time.Second
	// busyRetry is the time between two attempts if the API server is too slow for urgentTime.
	busyRetry = time.Second
	// fewNodes may always evict within actedTime.
	fewNodes = 5
)

// clusterBrake limits how many nodes evict pods at one time. There is a place for each hundred nodes,
// and a node needs one to evict. If many nodes have evicted, no node may. A node that kills in an
// emergency does not wait for a place, but it counts as one that evicts.
//
// Each node has a Lease of its own. It writes the Lease first and then reads those of all nodes: the
// nodes that wrote before it, by the resource version, go first. So two nodes that write at the same
// moment agree who is first, and no node changes the Lease of another.
//
// No clock of another node counts. A place and an eviction end when this node has seen the Lease
// without a change for leaseTime and actedTime. A node deletes its Lease when actedTime has passed, so
// that nodes which see it for the first time later do not wait for it.
type clusterBrake struct {
	client    kubernetes.Interface
	namespace string // of the Leases; empty means no brake
	node      string

	until   time.Time // this node has a place until then
	pending bool      // the Lease is written, and no pod was evicted with it yet
	claimed bool      // the place was obtained by claim, and not used yet
	// nextClaim is the earliest time of the next claim.
	nextClaim time.Time
	acted     time.Time // when this node last evicted
	refused   error     // the last answer of request
	retry     time.Time // no request is made before
	nodes     int       // of the cluster, at counted
	counted   time.Time
	uid       types.UID // of the Node
	aloneAt   time.Time // when a pod was last killed without a place
	// aloneBefore is what aloneAt was before the present attempt.
	aloneBefore time.Time
	// seen has the Leases of other nodes by name.
	seen map[string]observedLease

	// own is this node's Lease; nil if there is none. expire reads it at any time.
	own atomic.Pointer[observedLease]
	// looked is set if own is known. It is not at the start, since an earlier agent of this node may have
	// left a Lease, nor after a write whose answer was lost.
	looked atomic.Bool
}

// observedLease is a version of a Lease, and when this process first saw it.
type observedLease struct {
	version string
	since   time.Time
}

// errStopped is the error if so many nodes evict that no other may.
type errStopped struct{ acted, nodes int }

func (e errStopped) Error() string {
	return fmt.Sprintf("%s of %s evicted pods within %v, so all agents only observe until fewer did: look whether a threshold is wrong",
		humanize.Number(e.acted), humanize.Count(e.nodes, "node"), actedTime)
}

// errNoLease is the error if other nodes have all places.
type errNoLease struct{ places int }

func (e errNoLease) Error() string {
	if e.places == 1 {
		return "another node evicts pods, and in a cluster of this size one does at a time"
	}
	return fmt.Sprintf("%d other nodes evict pods, and in a cluster of this size no more do at one time", e.places)
}

// errBusy is the error if the API server did not answer in time whether other nodes were first.
var errBusy = errors.New("the API server did not answer in time which other nodes evict pods")

// take gets a place for this node, unless the node has one. If it fails, the error is an errStopped,
// an errNoLease, errBusy or the error of a request, and retry is the time of the next attempt.
//
// If urgent is set, the node may evict without a place, but only one pod in actedTime. It first writes
// its Lease. If the API server refuses that, or does not answer within urgentTime, the node evicts
// nevertheless.
func (b *clusterBrake) take(ctx context.Context, now time.Time, urgent bool) (retry time.Time, err error) {
	b.aloneBefore, b.claimed = b.aloneAt, false
	if b.namespace == "" || now.Before(b.until) {
		return time.Time{}, nil
	}
	// Being urgent changes neither of these refusals before the time to try again.
	final := errors.As(b.refused, new(errStopped)) || errors.Is(b.refused, errBusy)
	alone := urgent && (b.aloneAt.IsZero() || now.Sub(b.aloneAt) >= actedTime)
	if !now.Before(b.retry) || alone && !final {
		if urgent {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, urgentTime)
			defer cancel()
		}
		b.pending = false
		b.refused = b.request(ctx, now, alone)
		wait := leaseRetry
		if errors.Is(b.refused, errBusy) {
			wait = busyRetry
		}
		b.retry = time.Now().Add(wait)
	}
	switch {
	case b.refused == nil:
		b.retry = time.Time{}
	case alone && !errors.Is(b.refused, errBusy) && !errors.As(b.refused, new(errStopped)):
		b.aloneAt = now
		return time.Time{}, nil
	}
	return b.retry, b.refused
}

// claim takes a place for a kill that may be needed soon. It takes none without a place, so the nodes that
// claim are never more than the places of the cluster.
func (b *clusterBrake) claim(ctx context.Context, now time.Time) {
	_, err := b.take(ctx, now, false)
	b.claimed = err == nil && b.pending
}

// endClaim gives back a claimed place that was not used in its time. Then other nodes come first.
func (b *clusterBrake) endClaim(ctx context.Context, now time.Time) {
	if b.claimed && !now.Before(b.until) {
		b.claimed, b.nextClaim = false, now.Add(leaseTime)
		b.withdraw(ctx, now)
	}
}

// request writes this node's Lease, unless other nodes leave no place for it. If alone is set, it needs
// no place.
func (b *clusterBrake) request(ctx context.Context, now time.Time, alone bool) error {
	if err := b.countNodes(ctx, now); err != nil {
		return err
	}
	leases, err := b.readLeases(ctx, "0") // from the API server's cache
	if err != nil {
		return err
	}
	err = b.compare(leases, "", now, alone)
	full := alone && errors.As(err, new(errNoLease))
	if err != nil && !full {
		return err
	}
	written, err := b.write(ctx, now, !full)
	if err != nil {
		return err
	}
	b.pending = true
	if leases, err = b.readLeases(ctx, ""); err == nil {
		err = b.compare(leases, written, now, alone)
	} else if alone {
		err = errBusy
	}
	switch {
	case err == nil && !full:
		b.until = now.Add(leaseTime)
	case err == nil, alone && errors.As(err, new(errNoLease)):
		b.aloneAt = now
	default:
		b.withdraw(context.WithoutCancel(ctx), now)
		return err
	}
	return nil
}

// compare returns an errStopped or an errNoLease if the Leases of other nodes do not let this node
// evict. Only Leases written before a version count; an empty version means all.
func (b *clusterBrake) compare(leases []coordinationv1.Lease, version string, now time.Time, alone bool) error {
	acted, held := 0, 0
	if !b.acted.IsZero() && now.Sub(b.acted) < actedTime {
		acted++
	}
	for i := range leases {
		l := &leases[i]
		if order, err := resourceversion.CompareResourceVersion(l.ResourceVersion, version); l.Name == LeasePrefix+b.node || err == nil && order > 0 {
			continue
		}
		age := now.Sub(b.seen[l.Name].since)
		if age < actedTime {
			acted++
		}
		if age < leaseTime && l.Spec.HolderIdentity != nil {
			held++
		}
	}
	places := min(max(1, b.nodes/100), maxPlaces)
	full := held >= places
	switch {
	case acted > max(fewNodes, b.nodes/20) && (alone || !full):
		return errStopped{acted, b.nodes}
	case full:
		return errNoLease{places}
	}
	return nil
}

// countNodes counts the nodes of the cluster, once in actedTime.
func (b *clusterBrake) countNodes(ctx context.Context, now time.Time) error {
	if !b.counted.IsZero() && now.Sub(b.counted) < actedTime {
		return nil
	}
	// The answer describes how many nodes there are beside the first.
	list, err := b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("count the cluster's nodes: %w", err)
	}
	b.nodes, b.counted = len(list.Items), now
	if more := list.RemainingItemCount; more != nil {
		b.nodes += int(*more)
	}
	if b.uid != "" {
		return nil
	}
	list, err = b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, b.node).String()})
	if err != nil {
		return fmt.Errorf("list node %s: %w", b.node, err)
	}
	if len(list.Items) == 1 {
		b.uid = list.Items[0].UID
	}
	return nil
}

// readLeases returns the Leases of all nodes that evicted, at least as new as a version. It remembers
// since when it sees each of them without a change.
func (b *clusterBrake) readLeases(ctx context.Context, version string) ([]coordinationv1.Lease, error) {
	list, err := b.client.CoordinationV1().Leases(b.namespace).List(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: leaseLabel})
	if err != nil {
		return nil, fmt.Errorf("list the Leases for evictions: %w", err)
	}
	now, seen := time.Now(), map[string]observedLease{}
	for i := range list.Items {
		l := &list.Items[i]
		seen[l.Name] = observedLease{l.ResourceVersion, now}
		if earlier := b.seen[l.Name]; earlier.version == l.ResourceVersion {
			seen[l.Name] = earlier
		}
	}
	b.seen = seen
	return list.Items, nil
}

// write writes this node's Lease, and returns its version. With hold this node has a place.
func (b *clusterBrake) write(ctx context.Context, now time.Time, hold bool) (version string, err error) {
	// The times are for people who look at the Lease.
	spec := applycoordinationv1.LeaseSpec().WithLeaseDurationSeconds(int32(leaseTime / time.Second)).WithRenewTime(metav1.NewMicroTime(now))
	if hold {
		spec.WithHolderIdentity(b.node)
	}
	l := applycoordinationv1.Lease(LeasePrefix+b.node, b.namespace).WithSpec(spec).WithLabels(map[string]string{leaseLabel: ""})
	if b.uid != "" { // the Lease goes with the Node
		l.WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Node").WithName(b.node).WithUID(b.uid))
	}
	stored, err := b.client.CoordinationV1().Leases(b.namespace).Apply(ctx, l, metav1.ApplyOptions{FieldManager: "weir-agent", Force: true})
	if err != nil {
		b.looked.Store(false)
		return "", fmt.Errorf("write Lease %s/%s for evictions: %w", b.namespace, *l.Name, err)
	}
	b.own.Store(&observedLease{stored.ResourceVersion, now})
	return stored.ResourceVersion, nil
}

// used records that a pod was evicted.
func (b *clusterBrake) used(now time.Time) { b.pending, b.acted = false, now }

// giveBack undoes take if no pod was evicted.
func (b *clusterBrake) giveBack(ctx context.Context, now time.Time) {
	b.aloneAt = b.aloneBefore
	if b.pending {
		b.withdraw(ctx, now)
	}
}

// withdraw gives the place back. The Lease remains if this node evicted before. If it cannot be
// written, it counts until expire deletes it.
func (b *clusterBrake) withdraw(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, urgentTime)
	defer cancel()
	b.pending, b.until = false, time.Time{}
	if !b.acted.IsZero() && now.Sub(b.acted) < actedTime {
		_, _ = b.write(ctx, now, false)
		return
	}
	_ = b.deleteOwn(ctx, b.own.Load())
}

// expire deletes this node's Lease when actedTime has passed since it was written. An agent that
// starts does not know when an earlier one wrote it, and takes the time when it first sees it. expire
// may run beside the other methods, but not beside itself.
func (b *clusterBrake) expire(ctx context.Context, now time.Time) error {
	if b.namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, urgentTime)
	defer cancel()
	if !b.looked.Load() {
		list, err := b.client.CoordinationV1().Leases(b.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, LeasePrefix+b.node).String(), ResourceVersion: "0",
		})
		if err != nil {
			return fmt.Errorf("look for an earlier Lease for evictions: %w", err)
		}
		b.looked.Store(true)
		for i := range list.Items {
			b.own.CompareAndSwap(nil, &observedLease{list.Items[i].ResourceVersion, now})
		}
	}
	if own := b.own.Load(); own != nil && now.Sub(own.since) >= actedTime {
		return b.deleteOwn(ctx, own)
	}
	return nil
}

// deleteOwn deletes a version of this node's Lease.
func (b *clusterBrake) deleteOwn(ctx context.Context, own *observedLease) error {
	err := b.client.CoordinationV1().Leases(b.namespace).Delete(ctx, LeasePrefix+b.node, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &own.version},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete Lease %s/%s: %w", b.namespace, LeasePrefix+b.node, err)
	}
	b.own.CompareAndSwap(own, nil)
	return nil
}
