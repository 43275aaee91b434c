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
	"github.com/weir-metrics/weir/eviction/notify"
)

// Guard guards one node. Last and Acts may be called at any time, by anyone.
type Guard struct {
	opts    Options
	metrics *metrics
	last    atomic.Pointer[Round]
	acts    atomic.Pointer[[]*Round] // what it points to is never changed

	running sync.Mutex // held by Run; guards what follows
	// state, blocked and evicted are for the next decision.
	state   eviction.State
	blocked map[types.UID]blocked
	evicted time.Time
	// refreshed is when the disks were last looked at anew on request.
	refreshed time.Time
	refreshes sync.WaitGroup
	published chan *eviction.Decision
	// watching and unwatched are as in a Round; instead says that the memory is watched by
	// other means than thresholds.
	watching  []notify.Watch
	unwatched []error
	instead   bool
	sways     int               // how often to look again soon: see swayed
	said      map[string]string // what was logged last, by what it is about
}

// New returns a Guard, or what is missing.
func New(opts Options) (*Guard, error) {
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("guard the node: %w", err)
	}
	opts = opts.withDefaults()
	g := &Guard{opts: opts, blocked: map[types.UID]blocked{}, published: make(chan *eviction.Decision, 1), said: map[string]string{}}
	g.acts.Store(&[]*Round{})
	g.metrics = newMetrics(opts.Registerer, g)
	return g, nil
}

// Last returns the newest round; nil before the first. It is not to be changed.
func (g *Guard) Last() *Round { return g.last.Load() }

// Acts returns the newest rounds in which something was done or would have been, newest
// first, 20 at most. Of rounds that only say the same again, the newest is there. It is not to
// be changed.
func (g *Guard) Acts() []*Round { return *g.acts.Load() }

// Run guards until ctx ends, which is no error. What it started has ended by then.
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
	beside.Go(func() { g.publish(ctx) })
	if g.opts.Peek != nil {
		beside.Go(func() { g.peek(ctx, n) })
	}
	defer func() {
		cancel()
		beside.Wait()
		g.refreshes.Wait()
		err = errors.Join(err, n.Close())
	}()
	n.Sooner(0) // look at once
	if err := n.Run(ctx, func(ctx context.Context, notice notify.Notice) { g.round(ctx, n, notice) }); err != nil {
		return fmt.Errorf("guard the node: %w", err)
	}
	return nil
}

// round is what a notice leads to.
func (g *Guard) round(ctx context.Context, n *notify.Notifier, notice notify.Notice) {
	r := g.look(ctx, notice)
	if ctx.Err() != nil {
		return // what could not be read tells nothing
	}
	g.state = r.Decision.State
	g.metrics.round(r)
	g.offer(r.Decision)
	if d := r.Decision; len(d.Reclaim)+len(d.Kills) > 0 {
		g.last.Store(r)
		r = g.act(ctx, r)
	}
	g.watch(n, r)
	r.Ended = g.opts.Now()
	g.keep(r)
	g.last.Store(r)
	next := g.next(r)
	switch {
	case swayed(r):
		g.sways = swayLooks
	case !r.Notice.Sources[0].Timer():
		g.sways = 0
	}
	if g.sways > 0 {
		g.sways--
		next = r.Ended.Add(swayLater)
	}
	if !next.IsZero() {
		n.Sooner(next.Sub(r.Ended))
	}
}

// next is when to look anew at the latest because something is due then; zero for nothing.
func (g *Guard) next(r *Round) (next time.Time) {
	at := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for i := range r.Decision.Thresholds {
		t := &r.Decision.Thresholds[i]
		if t.Left > 0 {
			at(r.Decision.At.Add(t.Left))
		}
		at(t.Settles)
	}
	for i := range r.Outcomes {
		at(r.Outcomes[i].NotBefore)
	}
	return next
}

// offer has a decision published, in the place of one that still waits for it.
func (g *Guard) offer(d *eviction.Decision) {
	select {
	case <-g.published:
	default:
	}
	g.published <- d // never blocks: nobody else fills it
}

func (g *Guard) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-g.published:
			if g.opts.Publish != nil {
				g.opts.Publish(ctx, d)
			}
		}
	}
}

// say logs something unless it was said last of what it is about. An empty one takes it
// back.
func (g *Guard) say(about, words string) {
	if g.said[about] == words {
		return
	}
	g.said[about] = words
	if words != "" {
		g.opts.Logger.Warn(about, "node", g.opts.Node, "why", words)
	}
}
