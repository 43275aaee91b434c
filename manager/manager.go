package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/metric"
)

// minReconcileGap is the shortest time between two questions to the providers. Facts of a
// large cluster change many times a second.
const minReconcileGap = 200 * time.Millisecond

// Manager reads sources and leads what they say to the sinks. Make one with
// New.
type Manager struct {
	options   Options
	telemetry *telemetry
	limits    readLimits
	writers   []*sinkWriter // of sinks and recorders, in the order of Options.Sinks
	sinks     []*sinkWriter
	recorders []*sinkWriter

	began    atomic.Pointer[time.Time] // when Run was called; nil before
	complete atomic.Pointer[time.Time] // when all sources were there for the first time; nil before
	ready    atomic.Bool

	sourcesCtx     context.Context // parent of every source's
	stopSinks      context.CancelFunc
	runners        sync.WaitGroup // sources that have not ended
	abandonedReads sync.WaitGroup // abandoned reads of those that have
	wake           chan struct{}  // a source has ended: ask the providers again

	// Of Run's goroutine.
	answers []answer
	twice   map[string]bool // names that two sources have
	settled bool            // the sources are those that the answers name

	mu struct {
		sync.Mutex
		sources        map[string]*runner // by name, until they have ended
		abandonedReads map[*runner]bool   // ended but for an abandoned read
		pools          map[string]*pool   // by kind
	}
}

// New returns a Manager that does nothing until Run is called. It panics if its
// metrics are registered already.
func New(options Options) *Manager {
	m := &Manager{options: options.withDefaults(), wake: make(chan struct{}, 1)}
	m.telemetry = newTelemetry(options.Registerer)
	m.limits = newReadLimits(m.options.MaxReads)
	for _, p := range options.Providers {
		m.answers = append(m.answers, answer{Provider: p})
	}
	m.mu.sources = map[string]*runner{}
	m.mu.abandonedReads = map[*runner]bool{}
	m.mu.pools = map[string]*pool{}

	// Sinks outlive Run's context: they have a queue to write.
	ctx, cancel := context.WithCancel(context.Background())
	m.stopSinks = cancel
	for _, s := range m.options.Sinks {
		o := newSinkWriter(ctx, s, m.telemetry, m.options.Logger)
		m.telemetry.queued(s.Name, s.Queue, o.queue.length)
		m.writers = append(m.writers, o)
		if s.Recorder != nil {
			m.recorders = append(m.recorders, o)
		} else {
			m.sinks = append(m.sinks, o)
		}
	}
	return m
}

// Run reads until ctx ends. It then stops the sources, has the sinks write what
// they have queued, and returns nil once everything it began has ended; if
// that takes longer than Options.Shutdown, an error that names what still runs.
// Run can be called once.
func (m *Manager) Run(ctx context.Context) error {
	now := time.Now()
	if !m.began.CompareAndSwap(nil, &now) {
		return fmt.Errorf("the manager has been run before")
	}
	var stopSources context.CancelFunc
	m.sourcesCtx, stopSources = context.WithCancel(ctx)
	defer stopSources()
	if m.options.Player != nil {
		m.play(ctx, m.options.Player)
	} else {
		m.drive(ctx)
	}
	return m.shutdown()
}

// drive keeps the sources those that the providers name until ctx ends.
func (m *Manager) drive(ctx context.Context) {
	changed := m.options.FactsChanged
	timer := time.NewTimer(0)
	defer timer.Stop()
	var asked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changed:
			if !open {
				changed = nil // a closed channel would be ready for ever
			}
			timer.Reset(time.Until(asked.Add(min(minReconcileGap, m.options.Refresh))))
		case <-m.wake:
			timer.Reset(time.Until(asked.Add(min(minReconcileGap, m.options.Refresh))))
		case <-timer.C:
			if ctx.Err() != nil {
				return // both were ready
			}
			m.reconcile()
			asked = time.Now()
			timer.Reset(m.options.Refresh)
		}
	}
}

// shutdown ends everything, first to last in the direction of the flow.
func (m *Manager) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), m.options.Shutdown)
	defer cancel()
	// Sinks are cut off a little before that, so that those which heed their
	// context still end in time.
	reserve := min(grace, m.options.Shutdown/4)
	cutOff := time.AfterFunc(m.options.Shutdown-reserve, m.stopSinks)
	defer cutOff.Stop()
	defer m.stopSinks()

	m.mu.Lock()
	all := make([]*runner, 0, len(m.mu.sources))
	for _, r := range m.mu.sources {
		all = append(all, r)
	}
	m.mu.Unlock()
	for _, r := range all {
		r.stop()
	}

	await(ctx, ended(&m.runners))
	for _, o := range m.writers {
		o.queue.close()
	}
	for _, o := range m.writers {
		await(ctx, o.queue.ended)
	}
	await(ctx, ended(&m.abandonedReads))
	return m.leftovers()
}

// ended returns a channel that is closed when group is done.
func ended(group *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}

func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// leftovers returns an error that names what still runs, or nil.
func (m *Manager) leftovers() error {
	var names []string
	m.mu.Lock()
	for name := range m.mu.sources {
		names = append(names, "source "+name)
	}
	for r := range m.mu.abandonedReads {
		names = append(names, "source "+r.spec.Name)
	}
	m.mu.Unlock()
	for _, o := range m.writers {
		select {
		case <-o.queue.ended:
		default:
			names = append(names, "sink "+o.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	n, more := len(names), ""
	if n > 5 {
		names, more = names[:5], ", ..."
	}
	return fmt.Errorf("shut down: %d still run after %v: %s%s", n, m.options.Shutdown, strings.Join(names, ", "), more)
}

// publish hands b to every sink, and raw, unless it is nil, to every recorder. From here
// on nobody writes them, until the last has released them to p. The sinkWriter it returns, if
// any, is for the caller to drain when there is nothing else to do; others that nobody
// sees to get a goroutine, for one slow sink must not delay another.
func (m *Manager) publish(b *metric.Batch, raw item, p *pool) (yours *sinkWriter) {
	yours = share(b, m.sinks, item{batch: b}, p, nil)
	if raw.batch != nil {
		yours = share(raw.batch, m.recorders, raw, p, yours)
	}
	return yours
}

func share(b *metric.Batch, writers []*sinkWriter, it item, p *pool, yours *sinkWriter) *sinkWriter {
	if len(writers) == 0 {
		p.recycle(b)
		return yours
	}
	b.Share(len(writers), p.put)
	for _, o := range writers {
		switch {
		case !o.offer(it):
		case yours == nil:
			yours = o
		default:
			go o.drain()
		}
	}
	return yours
}

// pool returns the batches of a kind of source. m.mu is held.
func (m *Manager) pool(kind string) *pool {
	p := m.mu.pools[kind]
	if p == nil {
		p = newPool(spareBatches(m.options))
		m.mu.pools[kind] = p
	}
	return p
}

// remove takes a source out of the books, and has the sinks forget it.
func (m *Manager) remove(r *runner) {
	for _, o := range m.writers {
		if o.queue.forget(r.spec.Kind, r.spec.Node) {
			go o.drain()
		}
	}
	m.mu.Lock()
	delete(m.mu.sources, r.spec.Name)
	m.mu.Unlock()
	m.options.Logger.Debug("the source is gone", zap.String("source", r.spec.Name))
	select {
	case m.wake <- struct{}{}:
	default:
	}
	m.runners.Done()
}

// closeWhenAbandonedReadEnds waits for the abandoned read of a source that has ended, to close the
// source after it.
func (m *Manager) closeWhenAbandonedReadEnds(r *runner) {
	m.mu.Lock()
	m.mu.abandonedReads[r] = true
	m.mu.Unlock()
	m.abandonedReads.Add(1)
	go func() {
		defer m.abandonedReads.Done()
		r.caller.awaitStuck()
		r.close()
		m.mu.Lock()
		delete(m.mu.abandonedReads, r)
		m.mu.Unlock()
	}()
}
