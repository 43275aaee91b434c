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

	// full says that batches are being dropped, so that it is logged once.
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

// offer puts a batch into the queue, or drops it if the queue is full. It reports whether
// the caller must call drain.
func (o *sinkWriter) offer(it item) (yours bool) {
	accepted, yours := o.queue.offer(it)
	if accepted {
		return yours
	}
	it.batch.Release()
	o.drop()
	if o.full.CompareAndSwap(false, true) {
		o.log.Warn("the sink is too slow: its queue is full and batches are dropped", zap.Int("queue", o.Queue))
	}
	return false
}

// drain writes until the queue is empty. It takes as long as the sink does, so a goroutine calls it
// last.
func (o *sinkWriter) drain() {
	for {
		it, ok := o.queue.next()
		switch {
		case !ok:
			return
		case it.batch == nil:
			o.forget(it)
		case o.ctx.Err() != nil:
			o.drop()
			it.batch.Release()
		default:
			o.write(it)
			it.batch.Release()
		}
		if o.full.Load() && o.queue.length() == 0 {
			o.full.Store(false)
			o.log.Info("the sink has caught up")
		}
	}
}

// write calls the sink once, with its deadline. A sink is called by one goroutine at a time, so
// one that ignores the deadline is not called again until it returns. Its queue overflows, and
// no other sink is affected.
func (o *sinkWriter) write(it item) {
	ctx, cancel := context.WithTimeout(o.ctx, o.Deadline)
	defer cancel()
	o.overdue.Reset(o.Deadline + grace)
	began := time.Now()
	err := guard(func() error {
		if o.Recorder != nil {
			return o.Recorder.Record(ctx, it.batch, it.facts, it.now)
		}
		return o.Sink.Write(ctx, it.batch)
	})
	duration := time.Since(began)
	if o.overdue.Stop() && duration >= o.Deadline {
		o.telemetry.timeouts.WithLabelValues(o.Name).Inc()
	}

	b := it.batch
	meters := o.telemetry.kind(b.Source).stage(o.Name)
	meters.duration.Observe(duration.Seconds())
	meters.in.Add(float64(len(b.Samples)))
	o.recordWrite(b, duration, err)
}

// drop counts a batch that the sink never gets.
func (o *sinkWriter) drop() {
	o.telemetry.dropped.WithLabelValues(o.Name).Inc()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.status.Dropped++
}

// recordWrite records the result of a write. An error is counted, and logged if its kind is
// new.
func (o *sinkWriter) recordWrite(b *metric.Batch, duration time.Duration, err error) {
	o.mu.Lock()
	o.mu.status.Took = duration
	if o.mu.status.Err = err; err == nil {
		o.mu.status.Succeeded = time.Now()
	}
	o.mu.Unlock()
	reason := ""
	if err != nil {
		reason = reasonOf(err)
		o.telemetry.kind(b.Source).erred(o.Name, err)
	}
	if reason == o.failing {
		return
	}
	o.failing = reason
	if err == nil {
		o.log.Info("the sink works again")
		return
	}
	o.log.Warn("the sink fails", failure(err)...)
}

// forget has the sink forget a source.
func (o *sinkWriter) forget(it item) {
	var called any = o.Sink
	if o.Recorder != nil {
		called = o.Recorder
	}
	f, ok := called.(Forgetter)
	if !ok {
		return
	}
	if err := guard(func() error { f.Forget(it.source, it.node); return nil }); err != nil {
		o.telemetry.panics.WithLabelValues(o.Name).Inc()
		o.log.Error("forgetting a source panicked", failure(err)...)
	}
}
