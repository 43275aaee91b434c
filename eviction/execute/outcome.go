package execute

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-metrics/weir/eviction"
)

// Outcome is what became of one Kill or Collection of a decision.
type Outcome struct {
	At   time.Time `json:"at"`
	Did  Did       `json:"did"`
	Mode Mode      `json:"mode"`
	// Pod and Signal are those of the Kill; Hard says that it may not wait.
	Pod    eviction.PodRef `json:"pod,omitzero"`
	Signal string          `json:"signal"`
	Hard   bool            `json:"hard,omitempty"`
	// Collection is set instead of Pod if it is one; Freed is what it gave.
	Collection eviction.Collection `json:"collection,omitempty"`
	Freed      Freed               `json:"freed,omitzero"`
	// GraceSeconds is the time to end that the pod was given, or would be.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// Budget is the PodDisruptionBudget in the way, if the API server named it.
	Budget string `json:"budget,omitempty"`
	// NotBefore is when it is tried again, if it is decided again; zero for at once.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Cleaned: the pod is gone from the API and the node. Waited is how long that was
	// waited for.
	Cleaned bool          `json:"cleaned,omitempty"`
	Waited  time.Duration `json:"waitedNanoseconds,omitempty"`
	// Words tell all that in a sentence, with the next step where there is one.
	Words string `json:"words"`
	// Err is the error of Failed and Blocked; Words include it.
	Err error `json:"-"`

	sent bool // the request that makes the pod go
}

// Denied says that it Failed by an answer of the API server that will be the same when it
// is asked again soon: a right is missing, or a policy forbids it.
func (o *Outcome) Denied() bool {
	return o.Did == Failed && !unanswered(o.Err) && !apierrors.IsTooManyRequests(o.Err) &&
		!apierrors.IsServiceUnavailable(o.Err) && !apierrors.IsUnauthorized(o.Err) && !apierrors.IsConflict(o.Err)
}

// Did is what was done.
type Did string

// What may be done.
const (
	Observed    Did = "Observed"    // nothing: the mode is Observe
	Evicted     Did = "Evicted"     // the Eviction API took the pod
	Killed      Did = "Killed"      // the pod was deleted
	Terminating Did = "Terminating" // nothing: the pod ends already
	Gone        Did = "Gone"        // nothing: the pod has ended, or is another by now
	Refused     Did = "Refused"     // nothing: this pod is never evicted, or not from here
	Blocked     Did = "Blocked"     // nothing: a PodDisruptionBudget is in the way
	Deferred    Did = "Deferred"    // nothing yet: a limit says to wait
	Failed      Did = "Failed"      // an error; what was sent may have had its effect
	Collected   Did = "Collected"   // the node collected what it could do without
	Off         Did = "Off"         // nothing: there is no Reclaimer
)

// Leaves says that a pod is about to leave the node, which one waits for.
func (d Did) Leaves() bool { return d == Evicted || d == Killed || d == Terminating }
