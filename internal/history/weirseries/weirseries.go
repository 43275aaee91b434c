// Package weirseries reads weir's own series from a Prometheus that scraped them or received them
// by remote write. It is used for times before weir's memory begins.
package weirseries

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// Options configures a Reader. History is required.
type Options struct {
	History *history.Client
	// Logger gets the first of several consecutive failures. Default: no log.
	Logger *zap.Logger
	// Registerer registers weir_history_questions_total. Default: none.
	Registerer prometheus.Registerer
	// Now returns the current time. Default time.Now.
	Now func() time.Time
}

const (
	requestTimeout = 5 * time.Second
	// cacheTime is how long an answer is cached. After a failed request no request is sent for the
	// same time.
	cacheTime = 15 * time.Second
)

// Reader reads weir's series. It is safe for concurrent use.
type Reader struct {
	o                Options
	answered, failed prometheus.Counter

	mu struct {
		sync.Mutex
		answers map[seriesRequest]*cachedAnswer
		failing time.Time // until this time no request is sent; zero if the last request succeeded
	}
}

// seriesRequest is one request: for the metric of one entity, or of all pods or containers of a
// namespace. The second form is used because a client that shows one usually also shows the others.
type seriesRequest struct {
	entity   metric.Entity
	all      bool // all entities of that kind in the namespace
	id       metric.ID
	from, to int64 // nanoseconds since the Unix epoch, multiples of the step
	step     time.Duration
}

type cachedAnswer struct {
	at     time.Time
	done   chan struct{}
	points map[metric.Entity][]history.Point
}

// New returns a Reader with an empty cache.
func New(o Options) *Reader {
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	if o.Now == nil {
		o.Now = time.Now
	}
	questions := promauto.With(o.Registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_history_questions_total",
		Help: "Requests to the Prometheus of --history, by result: answered or failed.",
	}, []string{"result"})
	r := &Reader{o: o, answered: questions.WithLabelValues("answered"), failed: questions.WithLabelValues("failed")}
	r.mu.answers = map[seriesRequest]*cachedAnswer{}
	return r
}

// maxSharedSpan is the longest span for which one request reads a whole namespace.
const maxSharedSpan = time.Hour

// Points returns the points of a metric of an entity from one time to another, both included, in
// order of time, at least 15 s apart. It returns none if the server has none or cannot be reached.
// It waits at most requestTimeout.
func (r *Reader) Points(e metric.Entity, id metric.ID, from, to time.Time) []history.Point {
	step := history.Step(to.Sub(from))
	q := seriesRequest{
		entity: e, id: id, step: step,
		// The times are truncated, so that a caller that asks again a moment later gets the cached
		// answer.
		from: from.Truncate(step).UnixNano(), to: to.Truncate(step).UnixNano(),
	}
	if q.entity.Kind == metric.Pod || q.entity.Kind == metric.Container {
		q.entity.Node = "" // a pod of that name may have been on another node before
	}
	one := q.entity
	if q.all = one.Pod != "" && one.Part == "" && to.Sub(from) <= maxSharedSpan; q.all {
		q.entity = metric.Entity{Kind: e.Kind, Namespace: e.Namespace}
	}
	if q.to < q.from {
		return nil
	}
	return r.ask(q)[one]
}

// ask returns the answer from the cache, or sends one request for all callers.
func (r *Reader) ask(q seriesRequest) map[metric.Entity][]history.Point {
	r.mu.Lock()
	now := r.o.Now()
	for k, a := range r.mu.answers {
		if now.Sub(a.at) > cacheTime {
			delete(r.mu.answers, k)
		}
	}
	a := r.mu.answers[q]
	switch {
	case a != nil:
	case now.Before(r.mu.failing):
		r.mu.Unlock()
		return nil
	default:
		a = &cachedAnswer{at: now, done: make(chan struct{})}
		r.mu.answers[q] = a
		defer close(a.done) // also after a panic, because other callers wait
		r.mu.Unlock()
		points, err := r.read(q)
		a.points = points
		r.recordOutcome(err)
		return points
	}
	r.mu.Unlock()
	<-a.done
	return a.points
}

// recordOutcome counts the result of a request, and logs the first of several failures.
func (r *Reader) recordOutcome(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.answered.Inc()
		r.mu.failing = time.Time{}
		return
	}
	r.failed.Inc()
	if r.mu.failing.IsZero() {
		r.o.Logger.Warn("the history cannot be read: charts begin with weir's own memory", zap.Error(err))
	}
	r.mu.failing = r.o.Now().Add(cacheTime)
}

// read sends a request to Prometheus.
func (r *Reader) read(q seriesRequest) (map[metric.Entity][]history.Point, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	lines, err := r.o.History.Range(ctx, q.query(), time.Unix(0, q.from), time.Unix(0, q.to), q.step)
	if err != nil {
		return nil, err
	}
	found := map[metric.Entity][]history.Point{}
	unit := q.id.Describe().Unit
	for _, l := range lines {
		entity := q.entity
		if q.all {
			entity.Pod, entity.Name = metric.PodName(l.Labels["pod"]), l.Labels["container"]
		}
		points := make([]history.Point, 0, len(l.Points))
		for _, at := range l.Points {
			if v := series.FromValue(at.Value, unit); !math.IsNaN(v) {
				points = append(points, history.Point{At: at.At, Value: v})
			}
		}
		found[entity] = points
	}
	return found, nil
}

// query returns q in PromQL. If several servers scraped or received the same series, it takes the
// highest value: the series differ only in the time at which they were read.
func (s *seriesRequest) query() string {
	labels, part := series.LabelsOf(&s.entity)
	var matchers []string
	for _, l := range labels.All() {
		if l.Value != "" {
			matchers = append(matchers, fmt.Sprintf("%s=%q", l.Name, l.Value))
		}
	}
	selector := series.Name(s.entity.Kind, part, s.id.Describe()) + "{" + strings.Join(matchers, ",") + "}"
	switch {
	case s.all && s.entity.Kind == metric.Container:
		return "max by (namespace, pod, container) (" + selector + ")"
	case s.all:
		return "max by (namespace, pod) (" + selector + ")"
	}
	return "max(" + selector + ")"
}

// smallestGap is the shortest span before weir's memory for which Prometheus is asked.
const smallestGap = time.Minute

// PointsBefore returns the points before those that weir's memory has between from and to. first is
// the time of memory's first point; zero if memory has none. If from is not set, the span begins
// metric.DefaultHistory before now. A nil Reader returns no points.
func (r *Reader) PointsBefore(first time.Time, e metric.Entity, id metric.ID, from, to time.Time) []history.Point {
	if r == nil {
		return nil
	}
	now := time.Now()
	if from.Unix() <= 0 {
		from = now.Add(-metric.DefaultHistory)
	}
	if to.After(now) {
		to = now
	}
	if !first.IsZero() {
		to = first.Add(-1)
	}
	if to.Sub(from) < smallestGap {
		return nil
	}
	return r.Points(e, id, from, to)
}
