package manager

import (
	"context"
	"errors"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// play processes the rounds of a player and gives them to the sinks, one after the other. Then it
// waits for ctx to end, because the last numbers can still be read.
func (m *Manager) play(ctx context.Context, p Player) {
	sources := map[metric.SourceKey]*runner{}
	defer func() {
		for _, r := range sources {
			r.end()
		}
	}()
	spare := newPool(spareBatches(m.options))
	for {
		b := spare.get()
		facts, now, gone, err := p.Next(ctx, b)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, io.EOF):
			m.options.Logger.Info("the recording has been played to its end; its last numbers stay")
			<-ctx.Done()
			return
		case err != nil:
			m.options.Logger.Error("the recording cannot be played on; its last numbers stay", zap.Error(err))
			<-ctx.Done()
			return
		}
		for _, key := range gone {
			if r := sources[key]; r != nil {
				r.end()
				delete(sources, key)
			}
		}
		key := b.Key()
		r := sources[key]
		if r == nil {
			r = m.startRecorded(b, spare)
			sources[key] = r
		}
		for _, o := range m.writers {
			o.queue.await(ctx)
		}
		r.playRound(b, facts, now)
	}
}

// startRecorded returns a new source. b is its first round.
func (m *Manager) startRecorded(b *metric.Batch, spare *pool) *runner {
	spec := Spec{Name: b.Source + "/" + string(b.Node), Kind: b.Source, Node: b.Node, Interval: b.Interval}.withDefaults()
	m.mu.Lock()
	r := m.runner(spec)
	r.pool = spare
	m.mu.sources[spec.Name] = r
	m.mu.Unlock()
	m.complete.CompareAndSwap(nil, new(time.Now()))
	if err := r.assemble(); err != nil {
		r.meters.erred(stageOpen, err)
	}
	return r
}

// playRound is round for a recorded read.
func (r *runner) playRound(b *metric.Batch, facts *cluster.Facts, now time.Time) {
	r.meters.rounds.Inc()
	r.meters.read.out.Add(float64(len(b.Samples)))
	r.answered = !b.Failed()
	raw := r.processAndCopy(b, facts, now)
	r.recordRound(b)
	r.setRecordedTimes(b)
	if o := r.m.publish(b, raw, r.pool); o != nil {
		go o.drain()
	}
}

// setRecordedTimes sets the times of the status to those of the recording.
func (r *runner) setRecordedTimes(b *metric.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.mu.status
	s.Began, s.Due, s.Interval = b.Began, b.Began.Add(b.Interval), b.Interval
	if b.Err == nil {
		s.Succeeded = b.Ended
	}
}
