package guard

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
)

// maxActions is the number of rounds that RecentActions keeps.
const maxActions = 20

// skipTime is how long a pod is skipped if it did not terminate in time, or if its state differs
// from the list of pods.
const skipTime = 5 * time.Minute

// kubeletReclaims is how long mode observe leaves it to the kubelet to remove unused objects, before it
// reports that a pod would be evicted: the kubelet looks every ten seconds, and then evicts by itself.
const kubeletReclaims = 20 * time.Second

// carryOut carries out a round's decision, and returns the round with the results.
func (g *Guard) carryOut(ctx context.Context, r *Round) *Round {
	after := *r
	if len(after.Decision.Reclaim) > 0 {
		after.Outcomes = g.opts.Executor.Reclaim(ctx, after.Decision)
		if g.opts.Executor.Mode() == execute.Observe && !hadTime(after.Decision) {
			return &after
		}
		s, err := readNode(ctx, g.opts.Read)
		if s != nil {
			err = nil // a figure that the summary lacks counts as not met
		}
		after.Decision = after.Decision.AfterReclaim(s, err)
	}
	if ctx.Err() == nil {
		after.Outcomes = append(after.Outcomes, g.execute(ctx, after.Decision)...)
	}
	for i := range after.Outcomes {
		g.rememberResult(&after.Outcomes[i])
	}
	return &after
}

// hadTime reports whether the kubelet has had the time to remove unused objects.
func hadTime(d *eviction.Decision) bool {
	t := &d.Thresholds[d.Acting]
	return d.At.Sub(t.Since) >= t.Threshold.Grace+kubeletReclaims
}

// execute carries out the kills of a decision. A pod that is evicted for a soft threshold may have
// a grace period of minutes or hours. The wait for it ends if a hard threshold must be acted on.
func (g *Guard) execute(ctx context.Context, d *eviction.Decision) []execute.ActionOutcome {
	if len(d.Kills) == 0 || d.Kills[0].Hard || g.opts.Executor.Mode() == execute.Observe {
		return g.opts.Executor.Execute(ctx, d)
	}
	ctx, stop := context.WithCancel(ctx)
	var checks sync.WaitGroup
	defer checks.Wait()
	defer stop()
	checks.Go(func() {
		everyPoll(ctx, g.crossed, func() {
			if g.hardThresholdNow(ctx) {
				stop()
			}
		})
	})
	return g.opts.Executor.Execute(ctx, d)
}

// hardThresholdNow reports whether a decision now would act on a hard threshold.
func (g *Guard) hardThresholdNow(ctx context.Context) bool {
	in := &eviction.Input{Settings: g.opts.Settings, Evicted: g.evictedAt, State: g.state}
	in.Summary, in.SummaryErr = readNode(ctx, g.opts.Read)
	if in.Summary != nil {
		in.SummaryErr = nil
	}
	in.MemoryLeft = g.opts.MemoryLeft()
	in.Now = g.opts.Now()
	d := eviction.Decide(in)
	return d.Acting >= 0 && d.Thresholds[d.Acting].Threshold.Hard()
}

// rememberResult stores the parts of an outcome that the next decisions need.
func (g *Guard) rememberResult(o *execute.ActionOutcome) {
	now := g.opts.Now()
	if o.Result.PodLeaves() {
		g.evictedAt = now
	}
	// In mode kill a refusal for a soft threshold does not count for a hard one, because a hard
	// threshold deletes the pod and shortens its grace period.
	b := blockedUntil{eviction.BlockedPod{Reason: o.Message, Hard: o.Hard || o.Mode != execute.Kill}, o.NotBefore}
	switch {
	case o.Result == execute.Blocked, o.Denied():
	case o.Result.PodLeaves() && !o.Removed, o.Result == execute.Refused, o.Result == execute.Gone:
		b.until = now.Add(skipTime)
	default:
		return
	}
	g.blocked[types.UID(o.Pod.UID)] = b
}

// recordActions adds a round to the recent actions if it has outcomes, and logs new outcomes. The
// round must not be published yet.
func (g *Guard) recordActions(r *Round) {
	if len(r.Outcomes) == 0 {
		return
	}
	before := g.RecentActions()
	if len(before) > 0 && slices.EqualFunc(before[0].Outcomes, r.Outcomes, sameResult) {
		if r.RepeatedSince = before[0].RepeatedSince; r.RepeatedSince.IsZero() {
			r.RepeatedSince = before[0].EndedAt
		}
		before = before[1:]
	} else {
		for i := range r.Outcomes {
			g.opts.Logger.Warn(r.Outcomes[i].Message, "node", g.opts.Node)
		}
	}
	acts := append([]*Round{r}, before...)
	acts = acts[:min(len(acts), maxActions)]
	g.actions.Store(&acts)
}

// sameResult reports whether two outcomes are equal and changed nothing.
func sameResult(a, b execute.ActionOutcome) bool {
	return a.Result == b.Result && a.Pod == b.Pod && a.Signal == b.Signal && a.Collection == b.Collection &&
		!a.Result.PodLeaves() && a.Result != execute.Collected
}
