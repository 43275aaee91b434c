package leader

import (
	"context"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// readComparison is what an Elector knows of its own reads beside the leader's. Only the goroutine
// of Run uses it.
type readComparison struct {
	mayLead bool
	yield   context.CancelFunc // ends the present term
	// leader is the holder than which this process has read clearly more since a time.
	leader string
	since  time.Time
}

// readsClearlyMore reports whether a is at least half as much again as b. Two replicas that read
// about the same never change places.
func readsClearlyMore(a, b int) bool { return 2*a > 3*b }

// patience is for how long another replica must read clearly more nodes than the leader before the leader gives
// the Lease up. A third of it is enough if the leader reads none.
const patience = time.Minute

// patienceWith returns for how long this process must have read clearly more than a leader that reads
// so many nodes. If the leader reads none, all its numbers are about to be stale.
func patienceWith(reads int) time.Duration {
	if reads == 0 {
		return patience / 3
	}
	return patience
}

// compareReads compares the reads of this process with those in the Lease. If it does not hold the
// Lease and has read clearly more for long enough, it reports that in the Lease. If it holds the Lease
// and another replica reports that, it gives the Lease up.
func (e *Elector) compareReads(ctx context.Context, lease *coordination.Lease, leases coordinationv1.LeaseInterface) {
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if e.opts.Reads == nil || !e.reader.mayLead || holder == "" {
		return
	}
	own := e.opts.Reads()
	if holder == e.opts.Identity {
		if other, err := strconv.Atoi(lease.Annotations[moreAnnotation]); err == nil && readsClearlyMore(other, own) {
			e.giveUp(own, other)
		}
		return
	}
	r := &e.reader
	theirs, err := strconv.Atoi(lease.Annotations[readsAnnotation])
	switch {
	case err != nil || !readsClearlyMore(own, theirs):
		r.leader = ""
		return
	case r.leader != holder:
		r.leader, r.since = holder, time.Now()
		return
	case time.Since(r.since) < patienceWith(theirs):
		return
	}
	lease = lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, moreAnnotation, strconv.Itoa(own))
	// If the leader has renewed the Lease meanwhile, the next attempt follows soon.
	_, _ = leases.Update(ctx, lease, metav1.UpdateOptions{})
}

// giveUp ends the present term. What began while IsLeader was true can end before another replica
// leads.
func (e *Elector) giveUp(own, other int) {
	if e.yields.Swap(true) {
		return
	}
	e.opts.Logger.Info("this replica releases the Lease, because another one reads more nodes", "reads", own, "other", other)
	time.AfterFunc(e.opts.Lease-e.opts.Renew, e.reader.yield)
}

// letAnotherLead waits until another replica holds the Lease, at most for as long as a Lease is
// valid.
func (e *Elector) letAnotherLead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Lease)
	defer cancel()
	e.wait(ctx, func() bool {
		address, _, self := e.Leader()
		return address != "" && !self
	})
}
