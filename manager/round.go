package manager

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// step is a processor of one source, with its meters.
type step struct {
	Processor
	crossChecker CrossChecker // nil if the processor is not a CrossChecker
	meters       *stageMeters
}

// round reads the source once, processes the batch and passes it to the sinks. It returns false
// if the read was abandoned: another goroutine has then continued the round, and this one must
// not use the source any more.
func (r *runner) round() bool {
	r.begin()
	b, kept := r.readSource()
	if kept {
		r.finish(b)
	}
	return kept
}

// finishAbandonedRead continues a round after its read was abandoned.
func (r *runner) finishAbandonedRead(err error) {
	b := r.empty(&metric.Batch{})
	b.Began = r.caller.began
	r.observeDuration(r.meters.read)
	r.finish(r.recordResult(b, err, r.meters.read))
	r.scheduleNext()
}

// finish processes and publishes b after the read. If the source is no longer wanted, the round
// leaves no batch: its error would not be the source's.
func (r *runner) finish(b *metric.Batch) {
	if r.ctx.Err() != nil {
		return
	}
	// Before the processors put last known values into an empty batch.
	r.answered = !b.Failed()
	raw := r.processAndCopy(b, r.m.options.Facts(), time.Now())
	if r.ctx.Err() != nil {
		return // during the cross-check
	}
	r.recordRound(b)
	r.newcomers = newcomers(b)
	r.drain = r.m.publish(b, raw, r.pool)
}

// processAndCopy processes b, and returns a copy from before for the recorders.
func (r *runner) processAndCopy(b *metric.Batch, facts *cluster.Facts, now time.Time) (raw item) {
	b.EnsureBuffers() // processors add verdicts before samples
	if len(r.m.recorders) > 0 {
		raw = item{batch: r.copyOf(b), facts: facts, now: now}
	}
	r.process(b, facts, now)
	if raw.batch != nil && raw.batch.CrossCheck == nil && b.CrossCheck != nil {
		raw.batch.CrossCheck = r.copyOf(b.CrossCheck) // no processor changes it
	}
	return raw
}

// copyOf returns a copy of b in its own memory.
func (r *runner) copyOf(b *metric.Batch) *metric.Batch {
	c := r.pool.get()
	c.CopyFrom(b)
	if b.CrossCheck != nil {
		c.CrossCheck = r.copyOf(b.CrossCheck)
	}
	return c
}

// newcomers reports whether b has containers that are too new for a CPU rate. Another read
// soon gives them their first number, which an autoscaler may wait for. A container that has
// none long after its start is not a newcomer, because more reads would not help.
func newcomers(b *metric.Batch) bool {
	long := max(2*b.Interval, time.Minute)
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		if v.Entity.Kind == metric.Container && v.Group == metric.CPU &&
			(v.Reason == metric.FirstSample || v.Reason == metric.WarmingUp || v.Reason == metric.TooYoung) &&
			(v.Instance.Start == 0 || b.Ended.Sub(time.Unix(0, v.Instance.Start)) < long) {
			return true
		}
	}
	return false
}

// readSource reads the source, or returns a batch with the reason why it is left out. kept is false if the read was
// abandoned.
func (r *runner) readSource() (b *metric.Batch, kept bool) {
	if r.spec.Unread != nil {
		b := r.empty(r.pool.get())
		b.Began = time.Now()
		b.Ended, b.Err = b.Began, r.spec.Unread
		return b, true
	}
	r.meters.rounds.Inc()
	b, err := r.awaitRead()
	if err == nil {
		kept, err = r.caller.call(r.ctx, r.fill, b, r.lost)
		if !kept {
			return nil, false
		}
		r.observeDuration(r.meters.read)
	}
	return r.recordResult(b, err, r.meters.read), true
}

// awaitRead waits until the source may be read, and returns a batch to fill. The error is the reason why it
// cannot be read.
func (r *runner) awaitRead() (*metric.Batch, error) {
	err := r.caller.awaitSlot(r.ctx)
	b := r.empty(r.pool.get())
	b.Began = time.Now()
	return b, err
}

// observeDuration records how long the last call took.
func (r *runner) observeDuration(meters *stageMeters) {
	meters.duration.Observe(time.Since(r.caller.began).Seconds())
}

// recordResult records the result of a read of the source or of its second endpoint.
func (r *runner) recordResult(b *metric.Batch, err error, meters *stageMeters) *metric.Batch {
	if err != nil {
		if r.ctx.Err() == nil { // else weir itself ended the read
			r.meters.erred(meters.name, err)
		}
		if reasonOf(err) == reasonPanic {
			clearBatch(b)
		}
		b.Err = err
	}
	if b.Ended.IsZero() {
		b.Ended = time.Now()
	}
	meters.out.Add(float64(len(b.Samples)))
	for i := range b.Verdicts { // a source reports only those of what it dropped
		if v := &b.Verdicts[i]; v.Reason == metric.OverLimit {
			r.meters.overLimit.Add(max(v.Evidence.Got.Value, 1))
		}
	}
	return b
}

// empty sets the fields of b that the manager knows.
func (r *runner) empty(b *metric.Batch) *metric.Batch {
	b.Source, b.Node, b.Interval = r.spec.Kind, r.spec.Node, r.spec.Interval
	return b
}

// clearBatch empties b after a stage panicked, which may have left it half done.
func clearBatch(b *metric.Batch) {
	began, ended := b.Began, b.Ended
	b.Reset()
	b.Began, b.Ended = began, ended
}

// process calls the processors. A processor that panics may have left its state and the batch
// half changed: the batch becomes a failed one, and the pipeline gets fresh state.
func (r *runner) process(b *metric.Batch, facts *cluster.Facts, now time.Time) {
	for i := range r.pipeline {
		s := &r.pipeline[i]
		if err := guard(func() error { r.step(s, b, facts, now); return nil }); err != nil {
			r.meters.erred(s.meters.name, err)
			clearBatch(b)
			b.Err = judged(err)
			if err := r.assemble(); err != nil {
				r.breakDown(err)
			}
			return
		}
	}
}

// step calls one processor, after the cross-check it may need.
func (r *runner) step(s *step, b *metric.Batch, facts *cluster.Facts, now time.Time) {
	if s.crossChecker != nil && r.readSecond != nil && !b.Failed() && s.crossChecker.NeedsCrossCheck(facts, b, now) {
		b.CrossCheck = r.crossCheck()
	}
	s.meters.in.Add(float64(len(b.Samples)))
	began := time.Now()
	s.Process(facts, b, now)
	s.meters.duration.Observe(time.Since(began).Seconds())
	s.meters.out.Add(float64(len(b.Samples)))
}

// crossCheck returns the read of the second endpoint; nil if it has no samples.
func (r *runner) crossCheck() *metric.Batch {
	b, err := r.awaitRead()
	if err == nil {
		var kept bool
		if kept, err = r.caller.callAside(r.ctx, r.readSecond, b); !kept {
			b = r.empty(&metric.Batch{})
			b.Began = r.caller.began
		}
		r.observeDuration(r.meters.crossCheck)
	}
	b = r.recordResult(b, err, r.meters.crossCheck)
	if b.Err != nil {
		r.log().Debug("the cross-check fails", failure(b.Err)...)
	}
	if b.Failed() {
		r.pool.recycle(b)
		return nil
	}
	return b
}
