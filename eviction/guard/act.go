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

// keepActs is how many rounds in which something was done are kept.
const keepActs = 20

// lingers is how long a pod is passed over that was told to end and does not, or is another
// than the list of pods says.
const lingers = 5 * time.Minute

// act carries out what a round decided, and returns the round with what came of it.
func (g *Guard) act(ctx context.Context, r *Round) *Round {
	after := *r
	if len(after.Decision.Reclaim) > 0 {
		after.Outcomes = g.opts.Executor.Reclaim(ctx, after.Decision)
		s, err := g.read(ctx)
		if s != nil {
			err = nil // what it lacks counts as good: nobody goes for that
		}
		after.Decision = after.Decision.AfterReclaim(s, err)
	}
	if ctx.Err() == nil {
		after.Outcomes = append(after.Outcomes, g.execute(ctx, after.Decision)...)
	}
	for i := range after.Outcomes {
		g.learn(&after.Outcomes[i])
	}
	return &after
}

// execute carries out the kills of a decision. For a soft threshold a pod may be given minutes to end,
// or hours: it is waited for no longer once a hard one is to be acted on.
func (g *Guard) execute(ctx context.Context, d *eviction.Decision) []execute.Outcome {
	if len(d.Kills) == 0 || d.Kills[0].Hard || g.opts.Executor.Mode() == execute.Observe {
		return g.opts.Executor.Execute(ctx, d)
	}
	ctx, stop := context.WithCancel(ctx)
	var lookout sync.WaitGroup
	defer lookout.Wait()
	defer stop()
	lookout.Go(func() {
		eachPeek(ctx, func() {
			if g.hardNow(ctx) {
				stop()
			}
		})
	})
	return g.opts.Executor.Execute(ctx, d)
}

// hardNow says whether a hard threshold would be acted on now.
func (g *Guard) hardNow(ctx context.Context) bool {
	in := &eviction.Input{Settings: g.opts.Settings, Evicted: g.evicted, State: g.state}
	in.Summary, in.SummaryErr = g.read(ctx)
	if in.Summary != nil {
		in.SummaryErr = nil
	}
	in.Now = g.opts.Now()
	d := eviction.Decide(in)
	return d.Acting >= 0 && d.Thresholds[d.Acting].Threshold.Hard()
}

// learn remembers of an outcome what the next decisions should know.
func (g *Guard) learn(o *execute.Outcome) {
	now := g.opts.Now()
	if o.Did.Leaves() {
		g.evicted = now
	}
	// What a soft threshold was told in mode kill says nothing of a hard one, which asks nobody and
	// shortens the time to end.
	b := blocked{eviction.Blocked{Why: o.Words, Hard: o.Hard || o.Mode == execute.Evict}, o.NotBefore}
	switch {
	case o.Did == execute.Blocked, o.Denied():
	case o.Did.Leaves() && !o.Cleaned, o.Did == execute.Refused, o.Did == execute.Gone:
		b.until = now.Add(lingers)
	default:
		return
	}
	g.blocked[types.UID(o.Pod.UID)] = b
}

// keep adds a round to the acts, if it is one, and logs what it does not repeat. Nobody has
// the round yet.
func (g *Guard) keep(r *Round) {
	if len(r.Outcomes) == 0 {
		return
	}
	before := g.Acts()
	if len(before) > 0 && slices.EqualFunc(before[0].Outcomes, r.Outcomes, repeats) {
		if r.Since = before[0].Since; r.Since.IsZero() {
			r.Since = before[0].Ended
		}
		before = before[1:]
	} else {
		for i := range r.Outcomes {
			g.opts.Logger.Warn(r.Outcomes[i].Words, "node", g.opts.Node)
		}
	}
	acts := append([]*Round{r}, before...)
	acts = acts[:min(len(acts), keepActs)]
	g.acts.Store(&acts)
}

// repeats says that two outcomes changed nothing, and tell the same.
func repeats(a, b execute.Outcome) bool {
	return a.Did == b.Did && a.Pod == b.Pod && a.Signal == b.Signal && a.Collection == b.Collection &&
		!a.Did.Leaves() && a.Did != execute.Collected
}
