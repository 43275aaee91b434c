package guard

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
)

// keepActs is how many rounds in which something was done are kept.
const keepActs = 20

// lingers is how long a pod is passed over that was told to end and does not.
const lingers = 5 * time.Minute

// act carries out what a round decided, and returns the round with what came of it.
func (g *Guard) act(ctx context.Context, r *Round) *Round {
	after := *r
	if len(after.Decision.Reclaim) > 0 {
		after.Outcomes = g.opts.Executor.Reclaim(ctx, after.Decision)
		s, _, err := g.read(ctx)
		if s != nil {
			err = nil // what it lacks counts as good: nobody goes for that
		}
		after.Decision = after.Decision.AfterReclaim(s, err)
	}
	if ctx.Err() == nil {
		after.Outcomes = append(after.Outcomes, g.opts.Executor.Execute(ctx, after.Decision)...)
	}
	for i := range after.Outcomes {
		g.learn(&after.Outcomes[i])
	}
	return &after
}

// learn remembers of an outcome what the next decisions should know.
func (g *Guard) learn(o *execute.Outcome) {
	now := g.opts.Now()
	if o.Did.Leaves() {
		g.evicted = now
	}
	b := blocked{eviction.Blocked{Why: o.Words, Hard: o.Mode == execute.Evict}, o.NotBefore}
	switch {
	case o.Did == execute.Blocked:
	case o.Did == execute.Terminating && !o.Cleaned:
		b.until = now.Add(lingers)
	default:
		return
	}
	g.blocked[types.UID(o.Pod.UID)] = b
}

// keep adds a round to the acts, if it is one, and logs what it does not repeat.
func (g *Guard) keep(r *Round) {
	if len(r.Outcomes) == 0 {
		return
	}
	before := g.Acts()
	if len(before) > 0 && slices.EqualFunc(before[0].Outcomes, r.Outcomes, repeats) {
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
