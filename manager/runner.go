package manager

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/metric"
)

// runner is the life of one source. Between rounds it is nothing but a timer:
// the timer's goroutine runs the round and sets the timer again, so thousands of
// idle sources cost no stacks, and the rounds of one source never overlap. If that
// goroutine is lost in a read, the caller's watchdog goes on with the round.
//
// Fields outside mu belong to the round that runs.
type runner struct {
	m         *Manager
	spec      Spec
	timetable timetable
	meters    *kindMeters
	pool      *pool
	ctx       context.Context // ends when the source is no longer wanted
	cancel    context.CancelFunc

	source     Source      // nil until it is opened
	fill       fill        // source.Read, bound once
	readSecond fill        // nil if the source is no SecondReader
	lost       func(error) // goOn, bound once
	caller     *caller
	pipeline   []step

	rounds    int
	due       time.Time
	newcomers bool        // the last round met some
	answered  bool        // the last read brought something, or at least no error
	drain     *sinkWriter // that the round has to drain; nil for none

	mu struct {
		sync.Mutex
		timer    *time.Timer
		stopping bool
		status   SourceStatus
	}
}

// runner returns a source that does nothing yet, and counts it in.
func (m *Manager) runner(spec Spec) *runner {
	r := &runner{
		m:         m,
		spec:      spec,
		timetable: newTimetable(spec.Name, spec.Interval),
		meters:    m.telemetry.kind(spec.Kind),
		pool:      m.pool(spec.Kind),
	}
	r.ctx, r.cancel = context.WithCancel(m.sourcesCtx)
	r.lost = r.goOn
	r.caller = newCaller(spec.Timeout, m.limits, r.meters)
	r.mu.status = SourceStatus{Name: spec.Name, Kind: spec.Kind, Node: spec.Node, Interval: spec.Interval, Timeout: spec.Timeout, Unread: spec.Unread}
	if spec.Unread == nil {
		r.meters.sources.Inc()
	}
	m.runners.Add(1)
	return r
}

// start begins the life of a source, one of so many that appear together.
func (m *Manager) start(spec Spec, together int) *runner {
	r := m.runner(spec)
	wait := r.timetable.first(together)
	r.due = time.Now().Add(wait)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.status.Due = r.due
	r.mu.timer = time.AfterFunc(wait, r.fire)
	return r
}

// fire is called when a round is due, in a goroutine of the round's own.
func (r *runner) fire() {
	growStack()
	if r.ctx.Err() == nil {
		if r.rounds == 0 {
			r.open()
		}
		r.rounds++
		if !r.round() {
			return
		}
	}
	r.rest()
}

// roundStackBytes is how many bytes of stack a round takes, about: TLS, a parser, a processor.
const roundStackBytes = 14 << 10

// growStack grows a new goroutine's stack to the size that a round needs, while it is almost
// empty. Otherwise the stack doubles four times during the round and is copied each time,
// which is 75 µs, a tenth of what a round costs (docs/performance.md).
//
//go:noinline
func growStack() (b byte) {
	var frame [roundStackBytes]byte
	for i := 0; i < roundStackBytes; i += 4 << 10 {
		b += frame[i]
	}
	return b
}

// rest waits for the next round, or ends the source's life. The goroutine is then free
// to write.
func (r *runner) rest() {
	drain := r.drain
	r.drain = nil
	if !r.again() {
		r.end()
	}
	if drain != nil {
		drain.drain()
	}
}

// again sets the timer for the next round and reports true, unless the source
// is no longer wanted.
func (r *runner) again() bool {
	now := time.Now()
	due, missed := r.timetable.next(r.rounds, r.due, now, r.newcomers)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.stopping {
		return false
	}
	r.meters.skipped.Add(float64(missed))
	r.due = due
	r.mu.status.Due = due
	r.mu.timer.Reset(due.Sub(now))
	return true
}

// stop ends the source's life: at once if it is idle, else when its round has
// noticed. It reports whether it was called for the first time.
func (r *runner) stop() (first bool) {
	r.mu.Lock()
	if r.mu.stopping {
		r.mu.Unlock()
		return false
	}
	r.mu.stopping = true
	// The timer is only set under the lock and by a round's end. So either it
	// had not fired, and nothing runs; or a fire will find stopping set.
	idle := r.mu.timer.Stop()
	r.mu.Unlock()
	r.cancel()
	if idle {
		r.end()
	} else {
		r.caller.cancelCall()
	}
	return true
}

// ending reports whether stop was called.
func (r *runner) ending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.stopping
}

// end is the last that happens to a source: it is closed, its state freed and
// the sinks are told. It is called once, and no round runs.
func (r *runner) end() {
	r.cancel()
	r.pipeline = nil
	if r.spec.Unread == nil {
		r.meters.sources.Dec()
	}
	r.forgetStatus()
	if r.caller.stuck() {
		// A source is not closed while a call of it runs.
		r.m.closeWhenAbandonedReadEnds(r)
	} else {
		r.close()
	}
	r.m.remove(r)
}

// open makes the source and its pipeline. A source that cannot be opened lives
// on as a broken one, so that each round tells why there are no numbers.
func (r *runner) open() {
	if r.spec.Unread != nil {
		if err := r.assemble(); err != nil {
			r.meters.erred(stageOpen, err)
		}
		return
	}
	source, err := r.openSource()
	if err != nil {
		r.breakDown(fmt.Errorf("open the source: %w", err))
		return
	}
	r.source, r.fill = source, source.Read
	if w, ok := source.(SecondReader); ok {
		r.readSecond = w.ReadSecond
	}
	if err := r.assemble(); err != nil {
		r.breakDown(err)
	}
}

// breakDown has all further rounds fail with err. The source, if there is one,
// is closed when it is no longer wanted.
func (r *runner) breakDown(err error) {
	r.meters.erred(stageOpen, err)
	err = judged(err)
	r.fill = func(context.Context, *metric.Batch) error { return err }
	r.readSecond = nil
}

func (r *runner) openSource() (s Source, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = caught(v)
		}
	}()
	if s, err = r.spec.Open(); err == nil && s == nil {
		err = fmt.Errorf("the source is nil")
	}
	return s, err
}

// assemble makes the pipeline with fresh state. If that panics, there is none.
func (r *runner) assemble() (err error) {
	r.pipeline = nil
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("assemble the pipeline: %w", caught(v))
		}
	}()
	processors := r.m.options.Pipeline(r.spec)
	steps := make([]step, len(processors))
	for i, p := range processors {
		doubter, _ := p.(CrossChecker)
		steps[i] = step{Processor: p, crossChecker: doubter, meters: r.meters.stage(processorName(p))}
	}
	r.pipeline = steps
	return nil
}

// close closes the source, if it was opened and can be.
func (r *runner) close() {
	c, ok := r.source.(io.Closer)
	if !ok {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			r.log().Error("closing the source panicked", zap.Error(caught(v)))
		}
	}()
	if err := c.Close(); err != nil {
		r.log().Warn("close the source", zap.Error(err))
	}
}

// log returns the logger of the source. It is made when there is something to
// say: thousands of them would hold megabytes to remain silent.
func (r *runner) log() *zap.Logger {
	return r.m.options.Logger.With(zap.String("source", r.spec.Name), zap.String("node", string(r.spec.Node)))
}
