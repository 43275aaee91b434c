package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/metric"
)

// runner is the life of one source. Between rounds it is only a timer: the timer's goroutine
// runs the round and sets the timer again. So thousands of idle sources need no stacks, and the
// rounds of one source never overlap. If the read of a round is abandoned, the caller's watchdog
// continues the round.
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
	readSecond fill        // nil if the source has no second endpoint
	lost       func(error) // finishAbandonedRead, bound once
	caller     *caller
	pipeline   []step

	rounds    int
	due       time.Time
	newcomers bool        // the last round had new containers without a rate
	answered  bool        // the last read had samples, or no error
	drain     *sinkWriter // that the round must drain; nil for none

	mu struct {
		sync.Mutex
		timer    *time.Timer
		stopping bool
		status   SourceStatus
	}
}

// runner returns a source that does nothing yet.
func (m *Manager) runner(spec Spec) *runner {
	r := &runner{
		m:         m,
		spec:      spec,
		timetable: newTimetable(spec.Name, spec.Interval),
		meters:    m.telemetry.kind(spec.Kind),
		pool:      m.pool(spec.Kind),
	}
	r.ctx, r.cancel = context.WithCancel(m.sourcesCtx)
	r.lost = r.finishAbandonedRead
	r.caller = &caller{timeout: spec.Timeout, slots: m.slots, meters: r.meters}
	r.mu.status = SourceStatus{Name: spec.Name, Kind: spec.Kind, Node: spec.Node, Interval: spec.Interval, Timeout: spec.Timeout, Unread: spec.Unread}
	if spec.Unread == nil {
		r.meters.sources.Inc()
	}
	m.runners.Add(1)
	return r
}

// start begins the life of a source. together is how many sources appear at this moment.
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
	r.scheduleNext()
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

// scheduleNext sets the timer for the next round, or ends the source's life. Then the goroutine has
// time to write.
func (r *runner) scheduleNext() {
	drain := r.drain
	r.drain = nil
	if !r.setTimer() {
		r.end()
	}
	if drain != nil {
		drain.drain()
	}
}

// setTimer sets the timer for the next round. It returns false if the source is no longer wanted.
func (r *runner) setTimer() bool {
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

// stop ends the source's life: at once if it is idle, else at the end of its round. It reports
// whether this is the first call.
func (r *runner) stop() (first bool) {
	r.mu.Lock()
	if r.mu.stopping {
		r.mu.Unlock()
		return false
	}
	r.mu.stopping = true
	// The timer is only set under the lock, at the end of a round. So either it has not fired
	// and nothing runs, or its round will find stopping set.
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

// end closes the source, frees its state and has the sinks forget it. It is called once, while
// no round runs.
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

// open makes the source and its pipeline. If the source cannot be opened, each round has that
// error, so that the missing numbers have a reason.
func (r *runner) open() {
	if r.spec.Unread != nil {
		if err := r.assemble(); err != nil {
			r.meters.erred(stageOpen, err)
		}
		return
	}
	err := guard(func() (err error) {
		r.source, err = r.spec.Open()
		return err
	})
	if err == nil && r.source == nil {
		err = errors.New("the source is nil")
	}
	if err != nil {
		r.source = nil
		r.breakDown(fmt.Errorf("open the source: %w", err))
		return
	}
	r.fill = r.source.Read
	r.readSecond = r.spec.ReadSecond
	if err := r.assemble(); err != nil {
		r.breakDown(err)
	}
}

// breakDown makes all further rounds fail with err. If there is a source, it is closed when it
// is no longer wanted.
func (r *runner) breakDown(err error) {
	r.meters.erred(stageOpen, err)
	err = judged(err)
	r.fill = func(context.Context, *metric.Batch) error { return err }
	r.readSecond = nil
}

// assemble makes the pipeline with fresh state. If that panics, there is none.
func (r *runner) assemble() error {
	var steps []step
	err := guard(func() error {
		for _, p := range r.m.options.Pipeline(r.spec) {
			crossChecker, _ := p.(CrossChecker)
			steps = append(steps, step{Processor: p, crossChecker: crossChecker, meters: r.meters.stage(processorName(p))})
		}
		return nil
	})
	if r.pipeline = steps; err != nil {
		r.pipeline = nil
		return fmt.Errorf("assemble the pipeline: %w", err)
	}
	return nil
}

// close closes the source, if it was opened and can be closed.
func (r *runner) close() {
	if c, ok := r.source.(io.Closer); ok {
		if err := guard(c.Close); err != nil {
			r.log().Warn("close the source", failure(err)...)
		}
	}
}

// log returns the logger of the source. It is made when something is logged: thousands of
// loggers would take megabytes.
func (r *runner) log() *zap.Logger {
	return r.m.options.Logger.With(zap.String("source", r.spec.Name), zap.String("node", string(r.spec.Node)))
}
