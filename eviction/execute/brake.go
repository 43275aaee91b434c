package execute

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-metrics/weir/internal/humanize"
)

const (
	// LeasePrefix begins the names of the Leases; a number from 0 follows.
	LeasePrefix = "weir-eviction-"
	// MaxLeases is the number of Leases that the manifests give a right to.
	MaxLeases = 50
	// leaseTime is how long a node holds a Lease, and may evict with it.
	leaseTime = time.Minute
	// leaseRetry is the time between two attempts to get one.
	leaseRetry = 30 * time.Second
	// leaseTries is how many Leases are tried in a round.
	leaseTries = 3
	// actedAnnotation of a Lease has the nodes that evicted with it in the last actedTime, and when.
	actedAnnotation = "weir.dev/evictions"
	actedTime       = 10 * time.Minute
	// urgentTime limits the requests for a Lease, or for an entry in one, if a pod is to be killed for
	// a hard threshold.
	urgentTime = 2 * time.Second
	// busyRetry is the time between two attempts to enter a Lease that other nodes write all the time.
	busyRetry = time.Second
	// fewNodes may always evict within actedTime.
	fewNodes = 5
)

// clusterBrake limits how many nodes evict pods at one time. The nodes share a few Leases, one for each
// hundred nodes. A node needs one to evict. If many nodes have evicted, no node may. A node that kills
// in an emergency does not wait for a Lease of its own: it enters itself in a Lease of another node, so
// that it counts as one that evicts.
type clusterBrake struct {
	client    kubernetes.Interface
	namespace string // of the Leases; empty means no brake
	node      string

	until   time.Time             // this node holds a Lease until then
	lease   *coordinationv1.Lease // the Lease that this node holds or entered, as long as no pod was evicted with it
	earlier time.Time             // when this node evicted with that Lease before; zero if it did not
	refused error                 // the last answer of request
	retry   time.Time             // no request is made before
	nodes   int                   // of the cluster, at counted
	counted time.Time
	alone   time.Time // when a pod was last killed without holding a Lease
	// aloneBefore is what alone was before the present attempt.
	aloneBefore time.Time
}

// errStopped is the error if so many nodes evict that no other may.
type errStopped struct{ acted, nodes int }

func (e errStopped) Error() string {
	return fmt.Sprintf("%s of %s evicted pods within %v, so all agents only observe until fewer did: look whether a threshold is wrong",
		humanize.Number(e.acted), humanize.Count(e.nodes, "node"), actedTime)
}

// errNoLease is the error if other nodes hold all Leases.
type errNoLease struct{ leases int }

func (e errNoLease) Error() string {
	if e.leases == 1 {
		return "another node evicts pods, and in a cluster of this size one does at a time"
	}
	return fmt.Sprintf("%d other nodes evict pods, and in a cluster of this size no more do at one time", e.leases)
}

// errBusy is the error if other nodes wrote the Lease each time that this node tried to enter it.
var errBusy = errors.New("many nodes evict pods at this moment, and this one could not write its name among theirs yet")

// take gets a Lease for this node, unless the node holds one. If it fails, the error is an errStopped,
// an errNoLease, errBusy or the error of a request, and retry is the time of the next attempt.
//
// If urgent is set, the node may evict without a Lease of its own, but only one pod in actedTime. It
// first enters itself in the Lease of another node. If the API server refuses that, or does not
// answer within urgentTime, the node evicts nevertheless.
func (b *clusterBrake) take(ctx context.Context, now time.Time, urgent bool) (retry time.Time, err error) {
	b.aloneBefore = b.alone
	if b.namespace == "" || now.Before(b.until) {
		return time.Time{}, nil
	}
	// Being urgent changes neither of these refusals before the time to try again.
	final := errors.As(b.refused, new(errStopped)) || errors.Is(b.refused, errBusy)
	alone := urgent && (b.alone.IsZero() || now.Sub(b.alone) >= actedTime)
	if !now.Before(b.retry) || alone && !final {
		if urgent {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, urgentTime)
			defer cancel()
		}
		b.lease = nil
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
		b.alone = now
		return time.Time{}, nil
	}
	return b.retry, b.refused
}

// used records that a pod was evicted with the Lease, which is then not given back.
func (b *clusterBrake) used() { b.lease = nil }

// request asks the API server for a Lease. If alone is set and other nodes hold all Leases, it enters
// this node in one of them.
func (b *clusterBrake) request(ctx context.Context, now time.Time, alone bool) error {
	if err := b.countNodes(ctx, now); err != nil {
		return err
	}
	version := "0" // from the API server's cache
	for {
		leases, err := b.readLeases(ctx, version)
		if err == nil {
			err = b.takeOf(ctx, leases, now, alone)
		}
		switch {
		case !alone || err == nil || errors.As(err, new(errStopped)):
			return err
		case isTakenBefore(err) && ctx.Err() == nil:
			version = "" // one more node has evicted, so read and count again
		case isTakenBefore(err) || version == "":
			return errBusy // the API server answers, and no time is left
		default:
			return err
		}
	}
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
	return nil
}

// readLeases returns the Leases for evictions by name, at least as new as a version.
func (b *clusterBrake) readLeases(ctx context.Context, version string) (map[string]*coordinationv1.Lease, error) {
	list, err := b.client.CoordinationV1().Leases(b.namespace).List(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return nil, fmt.Errorf("list the Leases for evictions: %w", err)
	}
	leases := map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		if l := &list.Items[i]; strings.HasPrefix(l.Name, LeasePrefix) {
			leases[l.Name] = l
		}
	}
	return leases, nil
}

// takeOf takes a free Lease. If there is none and alone is set, it enters this node in one that
// another node holds.
func (b *clusterBrake) takeOf(ctx context.Context, leases map[string]*coordinationv1.Lease, now time.Time, alone bool) error {
	acted := map[string]time.Time{}
	for _, l := range leases {
		maps.Copy(acted, actedNodes(l, now))
	}
	if len(acted) > max(fewNodes, b.nodes/20) {
		return errStopped{len(acted), b.nodes}
	}
	most := min(max(1, b.nodes/100), MaxLeases)
	tries := 0
	for i := range most {
		name := b.leaseName(i, most)
		l := leases[name]
		if l != nil && !isFree(l, b.node, now) {
			continue
		}
		if tries++; tries > leaseTries {
			break
		}
		err := b.write(ctx, name, l, now, true)
		if err == nil || !isTakenBefore(err) || alone {
			return err
		}
	}
	if !alone {
		return errNoLease{most}
	}
	name := b.leaseName(0, most)
	return b.write(ctx, name, leases[name], now, false)
}

// leaseName returns the name of the Lease that this node tries after i others. Nodes differ in the
// one that they try first.
func (b *clusterBrake) leaseName(i, most int) string {
	h := fnv.New32a()
	h.Write([]byte(b.node))
	return LeasePrefix + strconv.Itoa((int(h.Sum32()%MaxLeases)+i)%most)
}

// isTakenBefore reports whether another node wrote the Lease first.
func isTakenBefore(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// write enters this node and the time in a Lease, which is nil if it does not exist yet. With hold it
// also takes the Lease for this node.
func (b *clusterBrake) write(ctx context.Context, name string, found *coordinationv1.Lease, now time.Time, hold bool) (err error) {
	l := found.DeepCopy()
	if found == nil {
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	}
	acted := actedNodes(l, now)
	earlier := acted[b.node]
	acted[b.node] = now
	setActed(l, acted)
	if hold {
		seconds, at := int32(leaseTime/time.Second), metav1.NewMicroTime(now)
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.AcquireTime, l.Spec.RenewTime = &b.node, &seconds, &at, &at
	}
	leases := b.client.CoordinationV1().Leases(b.namespace)
	if found == nil {
		l, err = leases.Create(ctx, l, metav1.CreateOptions{})
	} else {
		l, err = leases.Update(ctx, l, metav1.UpdateOptions{}) // it fails if another node has written it meanwhile
	}
	if err != nil {
		return fmt.Errorf("write Lease %s/%s for evictions: %w", b.namespace, name, err)
	}
	b.lease, b.earlier = l, earlier
	if hold {
		b.until = now.Add(leaseTime)
	} else {
		b.alone = now
	}
	return nil
}

// giveBack undoes take if no pod was evicted: it frees the Lease of this node, and removes the entry.
func (b *clusterBrake) giveBack(ctx context.Context, now time.Time) {
	b.alone = b.aloneBefore
	l := b.lease
	if l == nil {
		return
	}
	b.lease, b.until = nil, time.Time{}
	// If it cannot be written, it ends by itself.
	for l != nil && apierrors.IsConflict(b.remove(ctx, l, now)) {
		leases, err := b.readLeases(ctx, "")
		if err != nil {
			return
		}
		l = leases[l.Name]
	}
}

// remove undoes write.
func (b *clusterBrake) remove(ctx context.Context, l *coordinationv1.Lease, now time.Time) error {
	acted := actedNodes(l, now)
	if acted[b.node] = b.earlier; b.earlier.IsZero() {
		delete(acted, b.node)
	}
	setActed(l, acted)
	if l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == b.node {
		l.Spec.HolderIdentity, l.Spec.RenewTime = nil, nil
	}
	_, err := b.client.CoordinationV1().Leases(b.namespace).Update(ctx, l, metav1.UpdateOptions{})
	return err
}

// isFree reports whether a node may take the Lease. The clocks of nodes differ, so a time in the
// future counts as now.
func isFree(l *coordinationv1.Lease, node string, now time.Time) bool {
	s := &l.Spec
	return s.HolderIdentity == nil || *s.HolderIdentity == "" || *s.HolderIdentity == node || s.RenewTime == nil ||
		now.Sub(s.RenewTime.Time) >= leaseTime || s.RenewTime.Sub(now) >= leaseTime
}

// actedNodes returns the nodes that evicted with the Lease within actedTime, and when.
func actedNodes(l *coordinationv1.Lease, now time.Time) map[string]time.Time {
	acted := map[string]time.Time{}
	for entry := range strings.FieldsSeq(l.Annotations[actedAnnotation]) {
		node, text, _ := strings.Cut(entry, "=")
		if at, err := time.Parse(time.RFC3339, text); err == nil && now.Sub(at).Abs() < actedTime {
			acted[node] = at
		}
	}
	return acted
}

// setActed writes what actedNodes returns.
func setActed(l *coordinationv1.Lease, acted map[string]time.Time) {
	var entries []string
	for _, node := range slices.Sorted(maps.Keys(acted)) {
		entries = append(entries, node+"="+acted[node].UTC().Format(time.RFC3339))
	}
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, actedAnnotation, strings.Join(entries, " "))
}
