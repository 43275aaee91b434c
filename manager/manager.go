package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/metric"
)

// minReconcileGap is the shortest time between two calls of the providers. Facts of a large
// cluster change many times a second.
const minReconcileGap = 200 * time.Millisecond

// Manager reads sources and passes their batches to the sinks.
type Manager struct {
	options   Options
	telemetry *telemetry
	slots     readSlots
	writers   []*sinkWriter // of sinks and recorders, in the order of Options.Sinks
	sinks     []*sinkWriter
	recorders []*sinkWriter

	began    atomic.Pointer[time.Time] // when Run was called; nil before
	complete atomic.Pointer[time.Time] // when all sources were known for the first time; nil before
	ready    atomic.Bool

	sourcesCtx     context.Context // Run's
	stopSinks      context.CancelFunc
	runners        sync.WaitGroup // sources that have not ended
	abandonedReads sync.WaitGroup // abandoned reads of sources that have ended
	wake           chan struct{}  // a source has ended: ask the providers again

	// Only Run's goroutine uses these.
	answers []answer
	twice   map[string]bool // names that two sources have
	settled bool            // the running sources are those of the answers

	mu struct {
		sync.Mutex
		sources        map[string]*runner // by name, until they have ended
		abandonedReads map[*runner]bool   // ended, except for an abandoned read
		pools          map[string]*pool   // by kind
	}
}

// New returns a Manager that does nothing before Run. It panics if its metrics are registered
// already.
func New(options Options) *Manager {
	m := &Manager{options: options.withDefaults(), wake: make(chan struct{}, 1)}
	m.telemetry = newTelemetry(options.Registerer)
	if options.Registerer != nil {
		options.Registerer.MustRegister(newNodeCollector(m.Status))
	}
	m.slots = make(readSlots, m.options.MaxReads)
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

// Run reads until ctx ends. Then it stops the sources, waits until the sinks have written their
// queues, and returns nil when everything has ended. If that takes longer than Options.Shutdown,
// the error names what still runs. Run can be called once.
func (m *Manager) Run(ctx context.Context) error {
	if !m.began.CompareAndSwap(nil, new(time.Now())) {
		return errors.New("the manager has been run before")
	}
	m.sourcesCtx = ctx
	if m.options.Player != nil {
		m.play(ctx, m.options.Player)
	} else {
		m.drive(ctx)
	}
	return m.shutdown()
}

// drive asks the providers and adjusts the sources until ctx ends.
func (m *Manager) drive(ctx context.Context) {
	changed := m.options.FactsChanged
	soon := min(minReconcileGap, m.options.Refresh)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var asked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changed:
			if !open {
				changed = nil // a closed channel is always ready
			}
			timer.Reset(time.Until(asked.Add(soon)))
		case <-m.wake:
			timer.Reset(time.Until(asked.Add(soon)))
		case <-timer.C:
			if ctx.Err() != nil {
				return // both cases were ready
			}
			m.reconcile()
			asked = time.Now()
			timer.Reset(m.options.Refresh)
		}
	}
}

// shutdown ends sources, then sinks, then waits for abandoned reads.
func (m *Manager) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), m.options.Shutdown)
	defer cancel()
	// The context of sinks ends a little earlier, so that they can end in time.
	reserve := min(grace, m.options.Shutdown/4)
	cutOff := time.AfterFunc(m.options.Shutdown-reserve, m.stopSinks)
	defer cutOff.Stop()
	defer m.stopSinks()

	m.mu.Lock()
	all := slices.Collect(maps.Values(m.mu.sources))
	m.mu.Unlock()
	for _, r := range all {
		r.stop()
	}
	await(ctx, doneChannel(&m.runners))
	for _, o := range m.writers {
		o.queue.close()
	}
	for _, o := range m.writers {
		await(ctx, o.queue.ended)
	}
	await(ctx, doneChannel(&m.abandonedReads))
	return m.leftovers()
}

// doneChannel returns a channel that is closed when group is done.
func doneChannel(group *sync.WaitGroup) <-chan struct{} {
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

// publish gives b to every sink, and raw, if it has a batch, to every recorder. Batches are not
// changed until the last of them has released them to p. If queues must be drained, publish
// returns one of them, which the caller drains last. Each other one gets a goroutine, because
// one slow sink must not delay another.
func (m *Manager) publish(b *metric.Batch, raw item, p *pool) (drain *sinkWriter) {
	drain = share(item{batch: b}, m.sinks, p, nil)
	if raw.batch != nil {
		drain = share(raw, m.recorders, p, drain)
	}
	return drain
}

func share(it item, writers []*sinkWriter, p *pool, drain *sinkWriter) *sinkWriter {
	if len(writers) == 0 {
		p.recycle(it.batch)
		return drain
	}
	it.batch.Share(len(writers), p.put)
	for _, o := range writers {
		switch {
		case !o.offer(it):
		case drain == nil:
			drain = o
		default:
			go o.drain()
		}
	}
	return drain
}

// pool returns the batches of a kind of source. The caller holds m.mu.
func (m *Manager) pool(kind string) *pool {
	p := m.mu.pools[kind]
	if p == nil {
		p = newPool(spareBatches(m.options))
		m.mu.pools[kind] = p
	}
	return p
}

// remove removes a source, and has the sinks forget it unless all of weir ends.
func (m *Manager) remove(r *runner) {
	if m.sourcesCtx.Err() == nil {
		for _, o := range m.writers {
			if o.queue.forget(r.spec.Kind, r.spec.Node) {
				go o.drain()
			}
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

// closeWhenAbandonedReadEnds closes a source that has ended when its abandoned read ends.
func (m *Manager) closeWhenAbandonedReadEnds(r *runner) {
	m.mu.Lock()
	m.mu.abandonedReads[r] = true
	m.mu.Unlock()
	m.abandonedReads.Go(func() {
		r.caller.awaitStuck()
		r.close()
		m.mu.Lock()
		delete(m.mu.abandonedReads, r)
		m.mu.Unlock()
	})
}
