package app

import (
	"fmt"
	"io"
	"iter"
	"time"

	registerer "github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/clustermetrics"
	"github.com/weir-metrics/weir/history/past"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/log"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sinks/remotewrite"
)

// sinks are where results go, and what is served of them.
type sinks struct {
	named      []manager.NamedSink
	memory     *memory.Sink
	prometheus *clustermetrics.Handler
	past       *past.Past // nil where nothing but memory knows what was
}

// openSinks opens the sinks; out is where the log sink writes.
func openSinks(p *plan, out io.Writer) *sinks {
	s := &sinks{memory: memory.New(p.Memory)}
	s.prometheus = clustermetrics.New(func() clustermetrics.View {
		if snapshot := s.snapshot(); snapshot != nil {
			return s.view(snapshot)
		}
		return nil // and not an interface that holds a nil
	}, p.Prometheus)
	s.named = append(s.named, manager.NamedSink{Name: "memory", Sink: s.memory})
	if p.Log != nil {
		s.named = append(s.named, manager.NamedSink{Name: "log", Sink: log.New(out, *p.Log)})
	}
	return s
}

// openSender opens what sends results to a receiver.
func openSender(p *plan, s *sinks, registry registerer.Registerer, leads func() bool, logger *zap.Logger) (*remotewrite.Sink, error) {
	o := *p.RemoteWrite
	o.Interval, o.Leads, o.Logger, o.Registerer = p.Resolution, leads, logger, registry
	o.View = func() remotewrite.View {
		if snapshot := s.snapshot(); snapshot != nil {
			return snapshot
		}
		return nil // and not an interface that holds a nil
	}
	sender, err := remotewrite.New(o)
	if err != nil {
		return nil, fmt.Errorf("--sink=remotewrite: %w", err)
	}
	return sender, nil
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
			return as(s.view(snapshot))
		}
		return none
	}
}

// view is a snapshot in the words that all APIs share.
type view struct {
	*memory.Snapshot
	past *past.Past
}

func (s *sinks) view(snapshot *memory.Snapshot) view { return view{snapshot, s.past} }

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

// Points yields what is remembered of a metric of an entity: by whoever knows the past,
// as far as memory does not, and by memory.
func (v view) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		points := v.History(e, id, from, to)
		for _, p := range v.before(points, e, id, from, to) {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
		for _, p := range points {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
	}
}

// remembered is how far back memory goes, unless it is told otherwise.
const remembered = 15 * time.Minute

// gap is how much of what is asked for memory may lack before somebody else is asked.
const gap = time.Minute

// before returns what was before the points that memory has. Who does not say from when
// on wants what memory could have.
func (v view) before(points []memory.Point, e metric.Entity, id metric.ID, from, to time.Time) []past.Point {
	if v.past == nil {
		return nil
	}
	now := time.Now()
	if from.Unix() <= 0 {
		from = now.Add(-remembered)
	}
	if to.After(now) {
		to = now
	}
	if len(points) > 0 {
		to = time.Unix(0, points[0].Time-1)
	}
	if to.Sub(from) < gap {
		return nil
	}
	return v.past.Points(e, id, from, to)
}
