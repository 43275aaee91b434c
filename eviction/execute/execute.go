package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// minGraceSeconds is the shortest grace period. Zero would delete the pod from the API while its
// containers still run.
const minGraceSeconds = 1

// maxAttempts is how often a deletion is tried if the pod changes in between. The kubelet often
// changes the status of a pod with problems.
const maxAttempts = 5

// Executor carries out decisions. Several goroutines may call its methods; it still evicts one pod
// at a time.
type Executor struct {
	opts    Options
	metrics *metrics

	round   sync.Mutex // it is locked during a round and guards the next two fields
	pace    evictionPace
	backoff retryBackoff

	place sync.Mutex // it is locked while a place is obtained or given back, and guards the fields below
	brake clusterBrake
	// confined has the answers of isConfined that are yes.
	confined map[bool]bool

	events eventThrottle
}

// New returns an Executor. It fails if a required option is missing.
func New(opts Options) (*Executor, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("prepare to evict: %w", err)
	}
	return &Executor{
		opts:     opts,
		metrics:  newMetrics(opts.Registerer),
		pace:     evictionPace{gap: opts.MinGap, window: opts.Window, most: opts.MaxPerWindow},
		backoff:  retryBackoff{},
		brake:    clusterBrake{client: opts.Client, namespace: opts.Namespace, node: opts.Node},
		confined: map[bool]bool{},
		events:   eventThrottle{recorder: opts.Recorder, repeat: opts.RepeatEvents, last: map[types.UID]lastEvent{}},
	}, nil
}

// Mode returns the mode.
func (e *Executor) Mode() Mode { return e.opts.Mode }

// Execute carries out the kills of a decision, and returns an outcome for each, in order. It evicts
// at most one pod. The pods after it are deferred: the figures will have changed, and the next
// decision names the pods again if necessary. Execute returns when the pod is gone, at the latest
// CleanupTimeout after its grace period, or when ctx ends. The end of ctx does not undo anything.
func (e *Executor) Execute(ctx context.Context, d *eviction.Decision) []ActionOutcome {
	if len(d.Kills) == 0 {
		return nil
	}
	outcomes := make([]ActionOutcome, len(d.Kills))
	busy := !e.round.TryLock()
	if !busy {
		defer e.round.Unlock()
	}
	left := false // whether a pod may be terminating
	for i := range d.Kills {
		k := &d.Kills[i]
		o := &outcomes[i]
		*o = ActionOutcome{
			At: time.Now(), Mode: e.opts.Mode, Pod: k.Pod, Signal: k.Signal, Hard: k.Hard,
			GraceSeconds: max(minGraceSeconds, k.GraceSeconds),
		}
		switch {
		case k.Pod.UID == "":
			o.setRefused("the decision has no UID for it, so another pod of that name could be evicted")
		case e.opts.Self != "" && types.UID(k.Pod.UID) == e.opts.Self:
			o.setRefused("it is the agent's own pod")
		case e.opts.Mode == Observe:
			o.setResult(Observed, "would evict pod %s with a grace period of %d s, for %s; the mode is observe", o.Pod, o.GraceSeconds, o.Signal)
		case left || busy:
			o.setResult(Deferred, "did not evict pod %s: one pod is evicted at a time, and another eviction is in progress", o.Pod)
		default:
			left = e.executeKill(ctx, k, o)
		}
		e.metrics.countOutcome(o)
		e.events.record(k, o)
		if o.Result.PodLeaves() {
			e.awaitRemoval(ctx, o)
			if o.Result == Requested {
				e.withdraw(ctx, o)
			}
			e.pace.free = time.Now()
		}
	}
	return outcomes
}

// executeKill carries out a kill. It reports whether the pod may be terminating afterwards.
func (e *Executor) executeKill(ctx context.Context, k *eviction.Kill, o *ActionOutcome) (left bool) {
	key := attempt{types.UID(k.Pod.UID), e.opts.Mode == Kill && o.Hard}
	if w := e.backoff.next(key, o.At); w != nil {
		o.NotBefore, o.Budget, o.Err = w.until, w.last.Budget, w.last.Err
		o.setResult(Deferred, "did not try again to evict pod %s before %s: %s", o.Pod, formatTime(w.until), w.last.Message)
		return false
	}
	if at, reason := e.pace.next(o.At); reason != "" {
		o.NotBefore = at
		o.setResult(Deferred, "did not evict pod %s before %s: %s", o.Pod, formatTime(at), reason)
		return false
	}
	if !e.mayAct(ctx, key, o) {
		e.noteFailure(key, o)
		return false
	}
	switch {
	case key.delete:
		note := e.killAtOnce(ctx, o)
		e.kill(ctx, k, o)
		o.Message += note
	case e.opts.Mode == Request:
		e.request(ctx, o)
	default:
		e.evict(ctx, o)
	}
	e.metrics.acting.Observe(time.Since(o.At).Seconds())
	e.noteFailure(key, o)
	unanswered := o.Result == Failed && o.sent && isAmbiguous(o.Err)
	leaves := o.ended || unanswered
	e.concludeLease(ctx, o.Result == Evicted || o.Result == Killed || o.Result == Requested || leaves)
	return o.Result.PodLeaves() || leaves
}

// concludeLease counts an eviction in the pace and keeps the Lease, or gives the Lease back if no pod was
// evicted.
func (e *Executor) concludeLease(ctx context.Context, evicted bool) {
	e.place.Lock()
	defer e.place.Unlock()
	now := time.Now()
	if evicted {
		e.pace.done = append(e.pace.done, now)
		e.pace.free = now
		e.brake.used(now)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	e.brake.giveBack(ctx, now)
}

// Prepare makes the requests on which a kill at once would wait: whether policies confine this agent,
// and for a place. Call it while memory is near a hard threshold; self is the agent's own pod, by which the
// policies are tried. It may run beside Execute, which waits for it.
func (e *Executor) Prepare(ctx context.Context, self eviction.PodIdentity) {
	e.place.Lock()
	defer e.place.Unlock()
	now := time.Now()
	if e.opts.KillAtOnce == nil || e.opts.Mode != Kill || now.Before(e.brake.until) || now.Before(e.brake.nextClaim) {
		return
	}
	e.brake.nextClaim = now.Add(leaseRetry)
	ctx, cancel := context.WithTimeout(ctx, urgentTime)
	defer cancel()
	if e.isConfined(ctx, true, &ActionOutcome{Pod: self}) {
		e.brake.claim(ctx, now)
	}
}

// ExpireLease deletes the Lease by which this node counts as one that evicts, when it no longer does.
// Call it now and then; it may run beside Execute.
func (e *Executor) ExpireLease(ctx context.Context) {
	if e.place.TryLock() { // else the place is in use
		e.brake.endClaim(ctx, time.Now())
		e.place.Unlock()
	}
	if e.opts.Mode != Observe {
		_ = e.brake.expire(ctx, time.Now()) // the next call tries again
	}
}

// noteFailure sets when an attempt that was blocked or failed is made again.
func (e *Executor) noteFailure(key attempt, o *ActionOutcome) {
	now := time.Now()
	switch o.Result {
	case Blocked:
		o.NotBefore = e.backoff.failed(key, now, blockedBackoff, maxBackoff, requestedDelay(o.Err), *o)
	case Failed:
		most := maxBackoff
		if !o.Denied() {
			most = maxOutageBackoff
		}
		o.NotBefore = e.backoff.failed(key, now, failedBackoff, most, requestedDelay(o.Err), *o)
	}
}

// mayAct reports whether policies confine this agent, and whether its node has a place. If not, it sets
// the outcome. After Prepare it makes no request.
func (e *Executor) mayAct(ctx context.Context, key attempt, o *ActionOutcome) bool {
	e.place.Lock()
	defer e.place.Unlock()
	return (e.opts.Mode == Request || e.isConfined(ctx, key.delete, o)) && e.takeLease(ctx, key, o)
}

// takeLease reports whether this node may evict, beside the others of the cluster. If not, it sets the
// outcome.
func (e *Executor) takeLease(ctx context.Context, key attempt, o *ActionOutcome) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	retry, err := e.brake.take(ctx, o.At, key.delete)
	if !errors.As(err, new(errStopped)) {
		e.metrics.stopped.Set(0)
	}
	if err == nil {
		return true
	}
	o.NotBefore = retry
	switch {
	case errors.As(err, new(errStopped)):
		e.metrics.stopped.Set(1)
		o.setResult(Stopped, "did not evict pod %s: %v", o.Pod, err)
	case apierrors.IsForbidden(err):
		o.setResult(Deferred, "did not evict pod %s: %v (the agent's role lacks this right: apply the manifests again)", o.Pod, err)
	default:
		o.setResult(Deferred, "did not evict pod %s before %s: %v", o.Pod, formatTime(retry), err)
	}
	return false
}

// isAmbiguous reports whether a request with this error may have had its effect.
func isAmbiguous(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}

// requestedDelay returns how long the API server asks the client to wait.
func requestedDelay(err error) time.Duration {
	s, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(s) * time.Second
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// setResult sets the result and the message.
func (o *ActionOutcome) setResult(result Result, format string, args ...any) {
	o.Result, o.Message = result, fmt.Sprintf(format, args...)
}

func (o *ActionOutcome) setRefused(reason string) {
	o.setResult(Refused, "did not evict pod %s: %s", o.Pod, reason)
}

// setFailed sets the result of an error: Gone for a pod that was not found, or else Failed.
func (o *ActionOutcome) setFailed(err error, doing string) {
	if apierrors.IsNotFound(err) {
		o.setResult(Gone, "did not evict pod %s: it is gone", o.Pod)
		return
	}
	hint := ""
	if apierrors.IsForbidden(err) {
		hint = " (the agent's role, or an admission policy, lacks this right)"
	}
	o.Err = fmt.Errorf("%s: %w", doing, err)
	o.setResult(Failed, "could not evict pod %s: %v%s", o.Pod, o.Err, hint)
}

// hasCondition reports whether the pod already has the condition.
func hasCondition(pod *corev1.Pod, c *corev1.PodCondition) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(h corev1.PodCondition) bool {
		return h.Type == c.Type && h.Status == c.Status && h.Reason == c.Reason && h.Message == c.Message
	})
}
