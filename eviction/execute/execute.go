package execute

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// leastGrace is the least time to end, in seconds: zero would delete the pod from the API
// while its containers run.
const leastGrace = 1

// tries is how often a pod is looked at anew when others change it meanwhile, as the
// kubelet often does with a pod in trouble.
const tries = 5

// mostOutage bounds the wait for an API server that does not answer: meanwhile the pod is not passed
// over, so by as much may the node be in trouble after the server is back.
const mostOutage = 30 * time.Second

// Executor carries out decisions. Its methods may be called from several goroutines; one
// pod goes at a time all the same.
type Executor struct {
	opts    Options
	metrics *metrics

	round sync.Mutex // held for a round; guards what follows
	pace  pace
	again backoff

	told teller
}

// New returns an Executor, or what is missing.
func New(opts Options) (*Executor, error) {
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("prepare to evict: %w", err)
	}
	opts = opts.withDefaults()
	return &Executor{
		opts:    opts,
		metrics: newMetrics(opts.Registerer),
		pace:    pace{gap: opts.MinGap, window: opts.Window, most: opts.MaxPerWindow},
		again:   backoff{most: opts.MaxBackoff, waits: map[attempt]*wait{}},
		told:    teller{recorder: opts.Recorder, repeat: opts.RepeatEvents, told: map[types.UID]tale{}},
	}, nil
}

// Mode returns how far it goes.
func (x *Executor) Mode() Mode { return x.opts.Mode }

// Execute carries out the kills of a decision, and returns an outcome for each, in order.
// One pod goes at most; those after it are deferred, since by then the figures are others and
// the next decision names them again if need be. It returns when the pod is gone, which takes
// its time to end and at most CleanupTimeout more, or when ctx ends: what was done by
// then stays done.
func (x *Executor) Execute(ctx context.Context, d *eviction.Decision) []Outcome {
	if len(d.Kills) == 0 {
		return nil
	}
	outcomes := make([]Outcome, len(d.Kills))
	busy := !x.round.TryLock()
	if !busy {
		defer x.round.Unlock()
	}
	left := false // a pod was asked to go
	for i := range d.Kills {
		k := &d.Kills[i]
		o := &outcomes[i]
		*o = Outcome{
			At: time.Now(), Mode: x.opts.Mode, Pod: k.Pod, Signal: k.Signal, Hard: k.Hard,
			GraceSeconds: max(leastGrace, k.GraceSeconds),
		}
		switch {
		case k.Pod.UID == "":
			o.refuse("the decision does not say its UID, without which another pod of that name could go")
		case x.opts.Self != "" && types.UID(k.Pod.UID) == x.opts.Self:
			o.refuse("it is the agent's own pod")
		case x.opts.Mode == Observe:
			o.say(Observed, "would evict pod %s with %d s to end, for %s; the mode is observe", o.Pod, o.GraceSeconds, o.Signal)
		case left || busy:
			o.say(Deferred, "did not evict pod %s: one pod goes at a time, and another is going", o.Pod)
		default:
			left = x.one(ctx, k, o)
		}
		x.metrics.outcome(o)
		x.told.tell(k, o)
		if o.Did.Leaves() {
			x.await(ctx, o)
			x.pace.free = time.Now()
		}
	}
	return outcomes
}

// one carries out a kill, and says whether a pod may be leaving after it.
func (x *Executor) one(ctx context.Context, k *eviction.Kill, o *Outcome) (left bool) {
	key := attempt{types.UID(k.Pod.UID), x.opts.Mode == Kill && o.Hard}
	if w := x.again.next(key, o.At); w != nil {
		o.NotBefore, o.Budget, o.Err = w.until, w.last.Budget, w.last.Err
		o.say(Deferred, "did not try again to evict pod %s before %s: %s", o.Pod, clock(w.until), w.last.Words)
		return false
	}
	if at, why := x.pace.next(o.At); why != "" {
		o.NotBefore = at
		o.say(Deferred, "did not evict pod %s before %s: %s", o.Pod, clock(at), why)
		return false
	}
	if key.delete {
		x.kill(ctx, k, o)
	} else {
		x.evict(ctx, o)
	}
	x.metrics.acted(o)
	now := time.Now()
	switch o.Did {
	case Blocked:
		o.NotBefore = x.again.failed(key, now, x.opts.BlockedBackoff, x.opts.MaxBackoff, asked(o.Err), *o)
	case Failed:
		most := x.opts.MaxBackoff
		if !o.Denied() {
			most = min(most, mostOutage)
		}
		o.NotBefore = x.again.failed(key, now, x.opts.FailedBackoff, most, asked(o.Err), *o)
	}
	perhaps := o.Did == Failed && o.sent && unanswered(o.Err)
	if o.Did == Evicted || o.Did == Killed || perhaps {
		x.pace.done = append(x.pace.done, now)
		x.pace.free = now
	}
	return o.Did.Leaves() || perhaps
}

// unanswered says that an error does not tell whether what was sent was done.
func unanswered(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}

// asked returns how long the API server asks to wait.
func asked(err error) time.Duration {
	s, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(s) * time.Second
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// say sets what was done, and the words for it.
func (o *Outcome) say(did Did, format string, args ...any) {
	o.Did, o.Words = did, fmt.Sprintf(format, args...)
}

func (o *Outcome) refuse(why string) { o.say(Refused, "did not evict pod %s: %s", o.Pod, why) }

// fail says that an error ended it. A pod that was not found is gone.
func (o *Outcome) fail(err error, doing string) {
	if apierrors.IsNotFound(err) {
		o.say(Gone, "did not evict pod %s: it is gone", o.Pod)
		return
	}
	hint := ""
	if apierrors.IsForbidden(err) {
		hint = " (the agent's role, or an admission policy, lacks this right)"
	}
	o.Err = fmt.Errorf("%s: %w", doing, err)
	o.say(Failed, "could not evict pod %s: %v%s", o.Pod, o.Err, hint)
}

// sameCondition says whether the pod has the condition already.
func sameCondition(pod *corev1.Pod, c *corev1.PodCondition) bool {
	for i := range pod.Status.Conditions {
		if h := &pod.Status.Conditions[i]; h.Type == c.Type {
			return h.Status == c.Status && h.Reason == c.Reason && h.Message == c.Message
		}
	}
	return false
}
