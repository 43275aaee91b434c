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

// play leads the rounds of a player through the pipeline and to the sinks, one
// after the other, and then waits for ctx to end: what was played last is still
// there to be read.
func (m *Manager) play(ctx context.Context, p Player) {
	cast := map[played]*runner{}
	defer func() {
		for _, r := range cast {
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
		who := played{b.Source, b.Node}
		r := cast[who]
		if gone {
			if r != nil {
				r.end()
				delete(cast, who)
			}
			spare.recycle(b)
			continue
		}
		if r == nil {
			r = m.cast(b, spare)
			cast[who] = r
		}
		for _, o := range m.writers {
			o.queue.await(ctx)
		}
		r.perform(b, facts, now)
	}
}

// played names a source in a recording.
type played struct {
	source string
	node   metric.NodeName
}

// cast returns the source that b is the first round of.
func (m *Manager) cast(b *metric.Batch, spare *pool) *runner {
	spec := Spec{Name: b.Source + "/" + string(b.Node), Kind: b.Source, Node: b.Node, Interval: b.Interval}.withDefaults()
	m.mu.Lock()
	r := m.runner(spec)
	r.pool = spare
	m.mu.sources[spec.Name] = r
	m.mu.Unlock()
	if m.complete.Load() == nil {
		now := time.Now()
		m.complete.Store(&now)
	}
	if err := r.assemble(); err != nil {
		r.meters.erred(stageOpen, err)
	}
	return r
}

// perform is a round of which the read was recorded.
func (r *runner) perform(b *metric.Batch, facts *cluster.Facts, now time.Time) {
	r.meters.rounds.Inc()
	r.meters.read.out.Add(float64(len(b.Samples)))
	r.answered = !b.Failed()
	raw := r.lead(b, facts, now)
	r.note(b)
	r.date(b)
	if o := r.m.publish(b, raw, r.pool); o != nil {
		go o.drain()
	}
}

// date puts the recorded times into the status, in the place of ours.
func (r *runner) date(b *metric.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.mu.status
	s.Began, s.Due, s.Interval = b.Began, b.Began.Add(b.Interval), b.Interval
	if b.Err == nil {
		s.Succeeded = b.Ended
	}
}
