package execute

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-metrics/weir/eviction"
)

// ActionOutcome is the result of one Kill or Collection of a decision.
type ActionOutcome struct {
	At     time.Time
	Result Result
	Mode   Mode
	// Pod, Signal and Hard are copied from the Kill.
	Pod    eviction.PodIdentity
	Signal string
	Hard   bool
	// Collection is set instead of Pod if this is the result of a collection.
	Collection eviction.Collection
	// GraceSeconds is the grace period that the pod gets, or would get.
	GraceSeconds int64
	// Budget is the PodDisruptionBudget that blocks the eviction, if the API server names it.
	Budget string
	// NotBefore is the earliest time of the next attempt; zero means at once.
	NotBefore time.Time
	// Removed is set if the pod is gone from the API and from the node. Waited is the time until then,
	// or the time for which Execute waited.
	Removed bool
	Waited  time.Duration
	// Message is a sentence for people, with the next step if there is one.
	Message string
	// Err is the error of the results Failed and Blocked. Message includes it.
	Err error

	sent  bool // whether the eviction or deletion was sent
	ended bool // whether Options.KillAtOnce ended processes of the pod
}

// Denied reports whether the API server refused the request and will refuse it again, because a
// right is missing or a policy forbids it.
func (o *ActionOutcome) Denied() bool {
	return o.Result == Failed && !isAmbiguous(o.Err) && !apierrors.IsTooManyRequests(o.Err) &&
		!apierrors.IsServiceUnavailable(o.Err) && !apierrors.IsUnauthorized(o.Err) && !apierrors.IsConflict(o.Err)
}

// Result is the result of an action.
type Result string

// The results.
const (
	Observed    Result = "Observed"    // nothing was done: the mode is Observe
	Evicted     Result = "Evicted"     // the Eviction API accepted the eviction
	Killed      Result = "Killed"      // the pod was deleted
	Requested   Result = "Requested"   // an EvictionRequest was created
	Terminating Result = "Terminating" // nothing was done: the pod is already terminating
	Gone        Result = "Gone"        // nothing was done: the pod has ended, or was replaced
	Refused     Result = "Refused"     // nothing was done: this pod is never evicted, or not by this agent
	Blocked     Result = "Blocked"     // nothing was done: a PodDisruptionBudget does not allow it
	Deferred    Result = "Deferred"    // nothing was done yet: a limit requires a wait
	Stopped     Result = "Stopped"     // nothing was done: so many nodes evict that all agents only observe
	Failed      Result = "Failed"      // an error; a request that was sent may have had its effect
	Collected   Result = "Collected"   // unused containers or images were removed
	NoReclaimer Result = "NoReclaimer" // nothing was done: there is no Reclaimer
)

// PodLeaves reports whether the pod is terminating, or was asked to, so that Execute waits for it.
func (r Result) PodLeaves() bool {
	return r == Evicted || r == Killed || r == Requested || r == Terminating
}
