package manager

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/metric"
)

// sinkWriter writes to one sink, through a queue. It has no goroutine of its own: the
// goroutine that offered a batch writes until the queue is empty. Waking another goroutine
// for each batch would cost more than most stages do.
type sinkWriter struct {
	NamedSink
	queue     *queue
	telemetry *telemetry
	log       *zap.Logger
	ctx       context.Context // ends when shutdown has no more time

	// full reports that batches are being dropped, so that it is logged once.
	full atomic.Bool
	mu   struct {
		sync.Mutex
		status SinkStatus // without the length of the queue
	}

	// The rest belongs to the goroutine that drains the queue.
	failing string      // reasonOf the last error; empty if there was none
	overdue *time.Timer // runs while a write does
}

func newSinkWriter(ctx context.Context, s NamedSink, t *telemetry, log *zap.Logger) *sinkWriter {
	o := &sinkWriter{
		NamedSink: s,
		queue:     newQueue(s.Queue),
		telemetry: t,
		log:       log.With(zap.String("sink", s.Name)),
		ctx:       ctx,
	}
	// An overdue write is counted and logged while it hangs, because it may never return.
	o.overdue = time.AfterFunc(time.Hour, func() {
		o.telemetry.timeouts.WithLabelValues(o.Name).Inc()
		o.log.Warn("the sink ignores its deadline; it is not called until it returns", zap.Duration("deadline", o.Deadline))
	})
	o.overdue.Stop()
	return o
}

// offer puts a batch into the queue, or drops it if the queue stays full. It reports whether
// the caller must call drain.
func (s *sinkWriter) offer(it item) (yours bool) {
	accepted, yours := s.queue.offer(it)
	if !accepted && s.Wait > 0 {
		ctx, cancel := context.WithTimeout(s.ctx, s.Wait)
		defer cancel()
		for !accepted && s.queue.await(ctx) {
			accepted, yours = s.queue.offer(it)
		}
	}
	if accepted {
		return yours
	}
	it.batch.Release()
	s.drop()
	if s.full.CompareAndSwap(false, true) {
		s.log.Warn("the sink is too slow: its queue is full and batches are dropped", zap.Int("queue", s.Queue))
	}
	return false
}

// drain writes until the queue is empty. It takes as long as the sink does, so a goroutine calls it
// last.
func (s *sinkWriter) drain() {
	for {
		it, ok := s.queue.next()
		switch {
		case !ok:
			return
		case it.batch == nil:
			s.forget(it)
		case s.ctx.Err() != nil:
			s.drop()
			it.batch.Release()
		default:
			s.write(it)
			it.batch.Release()
		}
		if s.full.Load() && s.queue.length() == 0 {
			s.full.Store(false)
			s.log.Info("the sink has caught up")
		}
	}
}

// write calls the sink once, with its deadline. A sink is called by one goroutine at a time, so
// one that ignores the deadline is not called again until it returns. Its queue overflows, and
// no other sink is affected.
func (s *sinkWriter) write(it item) {
	ctx, cancel := context.WithTimeout(s.ctx, s.Deadline)
	defer cancel()
	s.overdue.Reset(s.Deadline + grace)
	began := time.Now()
	err := guard(func() error {
		if s.Recorder != nil {
			return s.Recorder.Record(ctx, it.batch, it.facts, it.now)
		}
		return s.Sink.Write(ctx, it.batch)
	})
	duration := time.Since(began)
	if s.overdue.Stop() && duration >= s.Deadline {
		s.telemetry.timeouts.WithLabelValues(s.Name).Inc()
	}

	b := it.batch
	meters := s.telemetry.kind(b.Source).stage(s.Name)
	meters.duration.Observe(duration.Seconds())
	meters.in.Add(float64(len(b.Samples)))
	s.recordWrite(b, duration, err)
}

// drop counts a batch that the sink never gets.
func (s *sinkWriter) drop() {
	s.telemetry.dropped.WithLabelValues(s.Name).Inc()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.status.Dropped++
}

// recordWrite records the result of a write. An error is counted, and logged if its kind is
// new.
func (s *sinkWriter) recordWrite(b *metric.Batch, duration time.Duration, err error) {
	s.mu.Lock()
	s.mu.status.Took = duration
	if s.mu.status.Err = err; err == nil {
		s.mu.status.Succeeded = time.Now()
	}
	s.mu.Unlock()
	reason := ""
	if err != nil {
		reason = reasonOf(err)
		s.telemetry.kind(b.Source).erred(s.Name, err)
	}
	if reason == s.failing {
		return
	}
	s.failing = reason
	if err == nil {
		s.log.Info("the sink works again")
		return
	}
	s.log.Warn("the sink fails", failure(err)...)
}

// forget has the sink forget a source.
func (s *sinkWriter) forget(it item) {
	var called any = s.Sink
	if s.Recorder != nil {
		called = s.Recorder
	}
	f, ok := called.(Forgetter)
	if !ok {
		return
	}
	if err := guard(func() error { f.Forget(it.source, it.node); return nil }); err != nil {
		s.telemetry.panics.WithLabelValues(s.Name).Inc()
		s.log.Error("forgetting a source panicked", failure(err)...)
	}
}
