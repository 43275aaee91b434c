package main

import (
	"io"
	"iter"
	"time"

	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/log"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sinks/prometheus"
)

// sinks are where results go, and what is served of them.
type sinks struct {
	named      []manager.NamedSink
	memory     *memory.Sink
	prometheus *prometheus.Handler
}

// openSinks opens the sinks; out is where the log sink writes.
func openSinks(p *plan, out io.Writer) *sinks {
	s := &sinks{memory: memory.New(p.Memory)}
	s.prometheus = prometheus.New(func() prometheus.View {
		if snapshot := s.snapshot(); snapshot != nil {
			return view{snapshot}
		}
		return nil // and not an interface that holds a nil
	}, p.Prometheus)
	s.named = append(s.named, manager.NamedSink{Name: "memory", Sink: s.memory})
	if p.Log != nil {
		s.named = append(s.named, manager.NamedSink{Name: "log", Sink: log.New(out, *p.Log)})
	}
	return s
}

// snapshot returns the newest state; nil before the first round.
func (s *sinks) snapshot() *memory.Snapshot {
	snapshot := s.memory.Snapshot()
	if snapshot == nil || snapshot.At().IsZero() {
		return nil
	}
	return snapshot
}

// read returns what an API reads the newest state by: its own interface of a
// view; nil before the first round.
func read[V any](s *sinks, as func(view) V) func() V {
	return func() (none V) {
		if snapshot := s.snapshot(); snapshot != nil {
			return as(view{snapshot})
		}
		return none
	}
}

// view is a snapshot in the words that all APIs share.
type view struct{ *memory.Snapshot }

// Verdicts yields what stands against numbers that are missing or doubtful.
func (v view) Verdicts() iter.Seq2[metric.Verdict, time.Time] { return discreet(v.Snapshot.Verdicts()) }

// VerdictsOn yields those of one node.
func (v view) VerdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	return discreet(v.Snapshot.VerdictsOn(node))
}

// discreet says with what error the read of a node ended of the node alone: the
// error has addresses in it, which are no business of who may read one namespace's
// pods.
func discreet(all iter.Seq2[metric.Verdict, time.Time]) iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		for v, since := range all {
			if k := v.Entity.Kind; k == metric.Pod || k == metric.Container {
				v.Evidence.Err = nil
			}
			if !yield(v, since) {
				return
			}
		}
	}
}

// Points yields what is remembered of a metric of an entity.
func (v view) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for _, p := range v.History(e, id, from, to) {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
	}
}
