package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/notify"
)

// Guard runs eviction on one node. Several goroutines may call Last and RecentActions at any time.
type Guard struct {
	opts    Options
	metrics *metrics
	last    atomic.Pointer[Round]
	actions atomic.Pointer[[]*Round] // the slice is never changed

	running sync.Mutex // Run locks it; it guards the fields below
	// state, blocked and evictedAt are part of the input of the next decision.
	state     eviction.DecisionState
	blocked   map[types.UID]blockedUntil
	evictedAt time.Time
	// refreshedAt is the time of the last call of Options.Refresh.
	refreshedAt time.Time
	refreshes   sync.WaitGroup
	published   chan *eviction.Decision
	// crossed has an element if pollMemory found a crossing.
	crossed chan struct{}
	// near has an element if pollMemory found memory near a hard threshold.
	near chan struct{}
	// watching and unwatched are the fields of a Round.
	watching  []notify.Watch
	unwatched []error
	logged    map[string]string // the last logged error, by message
}

// New returns a Guard. It fails if a required option is missing.
func New(opts Options) (*Guard, error) {
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("guard the node: %w", err)
	}
	opts = opts.withDefaults()
	g := &Guard{opts: opts, blocked: map[types.UID]blockedUntil{}, published: make(chan *eviction.Decision, 1), crossed: make(chan struct{}, 1), near: make(chan struct{}, 1), logged: map[string]string{}}
	g.actions.Store(&[]*Round{})
	g.metrics = newMetrics(opts.Registerer, g)
	return g, nil
}

// Last returns the newest round; nil before the first one. The caller must not change it.
func (g *Guard) Last() *Round { return g.last.Load() }

// RecentActions returns the newest rounds with an action, or with an action that another mode would
// have made: newest first, at most 20. Of rounds with equal results only the newest is listed. The
// caller must not change them.
func (g *Guard) RecentActions() []*Round { return *g.actions.Load() }

// Run runs the guard until ctx ends, and then returns nil. Its goroutines have ended when it
// returns.
func (g *Guard) Run(ctx context.Context) (err error) {
	if !g.running.TryLock() {
		return errors.New("guard the node: it is guarded already")
	}
	defer g.running.Unlock()
	n, err := notify.New(g.opts.Notify)
	if err != nil {
		return fmt.Errorf("guard the node: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { g.publishLoop(ctx) })
	if g.opts.Poll != nil {
		beside.Go(func() { g.poll(ctx, n) })
	}
	if g.opts.WorkingSet != nil {
		beside.Go(func() { g.pollMemory(ctx, func(s notify.NoticeSource) { g.notifyCrossing(n, s) }) })
	}
	defer func() {
		cancel()
		beside.Wait()
		g.refreshes.Wait()
		err = errors.Join(err, n.Close())
	}()
	n.WakeWithin(0) // the first round starts at once
	if err := n.Run(ctx, func(ctx context.Context, notice notify.Notice) { g.runRound(ctx, n, notice) }); err != nil {
		return fmt.Errorf("guard the node: %w", err)
	}
	return nil
}

// runRound runs the round that a notice starts.
func (g *Guard) runRound(ctx context.Context, n *notify.Notifier, notice notify.Notice) {
	r := g.readAndDecide(ctx, notice)
	if ctx.Err() != nil {
		return // the reads may have been interrupted
	}
	g.state = r.Decision.State
	g.metrics.observeRound(r)
	g.offerPublish(r.Decision)
	if d := r.Decision; len(d.Reclaim)+len(d.Kills) > 0 {
		g.last.Store(r)
		r = g.carryOut(ctx, r)
	}
	g.updateWatches(n, r)
	r.EndedAt = g.opts.Now()
	g.recordActions(r)
	g.last.Store(r)
	if next := g.nextRound(r); !next.IsZero() {
		n.WakeWithin(next.Sub(r.EndedAt))
	}
}

// nextRound returns the time at which the next round must start because something is due; zero if
// nothing is.
func (g *Guard) nextRound(r *Round) (next time.Time) {
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for i := range r.Decision.Thresholds {
		t := &r.Decision.Thresholds[i]
		if t.Remaining > 0 {
			at(r.Decision.At.Add(t.Remaining))
		}
		at(t.SettledAt)
	}
	for i := range r.Outcomes {
		at(r.Outcomes[i].NotBefore)
	}
	return next
}

// offerPublish queues a decision for Options.Publish. It replaces one that is still in the queue.
func (g *Guard) offerPublish(d *eviction.Decision) {
	select {
	case <-g.published:
	default:
	}
	g.published <- d // it never blocks, because there is no other sender
}

func (g *Guard) publishLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-g.published:
			if g.opts.Publish != nil {
				g.opts.Publish(ctx, d)
			}
			g.opts.Executor.ExpireLease(ctx)
		case <-g.near:
			g.opts.Executor.Prepare(ctx, g.ownPod())
		}
	}
}

// ownPod returns weir's own pod. It is empty if it is not in the list of pods.
func (g *Guard) ownPod() eviction.PodIdentity {
	pods, _ := g.opts.Pods() // without them there is no own pod
	for _, p := range pods {
		if p.UID == g.opts.Self {
			return eviction.PodIdentity{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
		}
	}
	return eviction.PodIdentity{}
}

// logChange logs a message with its cause, unless the cause is the same as the last time. An empty
// cause is not logged.
func (g *Guard) logChange(about, words string) {
	if g.logged[about] == words {
		return
	}
	g.logged[about] = words
	if words != "" {
		g.opts.Logger.Warn(about, "node", g.opts.Node, "why", words)
	}
}

// Round is one read of the node, with the decision and its results. It does not change after it is
// published.
type Round struct {
	// Notice is the notice that started the round.
	Notice notify.Notice
	// ReadAt is the time at which the read ended, DecidedAt the time of the decision, and EndedAt the
	// time at which the actions ended; zero until then.
	ReadAt, DecidedAt, EndedAt time.Time
	// Input and Decision are the input and the result of eviction.Decide. After a collection,
	// Decision is that of AfterReclaim.
	Input    *eviction.Input
	Decision *eviction.Decision
	// ReadErr shows which parts of the summary could not be read, or that the pods could not be listed.
	// The decision was made without them.
	ReadErr error
	// Outcomes are first those of the collections, then those of the pods.
	Outcomes []execute.ActionOutcome
	// RepeatedSince is the time at which the first round with these outcomes ended; zero if the
	// outcomes are new.
	RepeatedSince time.Time
	// Watching are the active watches. Unwatched describes what cannot be watched.
	Watching  []notify.Watch
	Unwatched []error

	// memory is what pollMemory compares with. memoryErr describes what it cannot poll.
	memory    []memoryLevel
	memoryErr error
}
