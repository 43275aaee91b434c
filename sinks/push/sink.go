package push

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// Format is the wire format of a protocol. Its methods are called one at a time. L is what it keeps
// of each entity, such as its labels.
type Format[L any] interface {
	// Describe returns what to keep of an entity, from a sample and from what was kept before, which
	// is zero at the first one. renamed means that its series have other names from now on, such as
	// those of another instance: those before end.
	Describe(before L, s *metric.Sample) (kept L, renamed bool)
	// Add adds a point to the request that is being filled.
	Add(p Point[L])
	// Encode appends the request to an empty slice, which may be nil, in the form in which it waits, and
	// begins an empty one. The caller keeps what it returns.
	Encode(to []byte) []byte
}

// Point is one value to send, or the end of a series.
type Point[L any] struct {
	// Entity is the same pointer for all points of an entity, which come one after another.
	Entity *metric.Entity
	// Labels is what Describe returned of the entity.
	Labels *L
	Metric metric.ID
	// Value is in the metric's base unit.
	Value float64
	// Time is in milliseconds since the Unix epoch.
	Time int64
	// Ended means that the series ends, 1 ms after its last value. There is no Value.
	Ended bool
}

// Sink sends batches to a receiver. Write and Forget may be called by several goroutines and
// never wait for the receiver; Run sends.
type Sink[L any] struct {
	*Sender
	format Format[L]

	mu struct {
		sync.Mutex
		sources    map[metric.SourceKey]*sourceState[L]
		entities   entityTable[L]
		selected   [metric.NumKinds]map[string]*[metric.NumMetrics]bool
		points     int       // in the request
		since      time.Time // of the request's first point
		nextTotals time.Time // when the next sums are due
		declared   []point   // of the sample that is being added
	}
}

// New returns a Sink. The names of its metrics begin with weir_NAME. The error is that of NewSender.
func New[L any](o Options, name string, format Format[L]) (*Sink[L], error) {
	sender, err := NewSender(o, name, "samples")
	if err != nil {
		return nil, err
	}
	s := &Sink[L]{Sender: sender, format: format}
	for k := range s.mu.selected {
		s.mu.selected[k] = map[string]*[metric.NumMetrics]bool{}
	}
	sender.SetFilling(func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.mu.points
	})
	s.mu.sources = map[metric.SourceKey]*sourceState[L]{}
	s.mu.entities = entityTable[L]{seed: maphash.MakeSeed(), byHash: map[uint64]*entityState[L]{}}
	return s, nil
}

// Run sends the queue until ctx ends, and then for at most Options.Grace. It always returns
// nil: weir does not end because a receiver does not answer.
func (s *Sink[L]) Run(ctx context.Context) error {
	s.mu.nextTotals = time.Now().Add(s.o.Interval)
	return s.Sender.Run(ctx, func(longest time.Duration) {
		if longest > 0 {
			s.addTotals(time.Now())
		}
		s.Flush(longest)
	})
}

// Write queues the values of b that were not sent yet. The error is always nil: samples that do
// not fit into the queue are counted.
//
// A replica that does not lead forgets its series, because the leader continues them. Their ends
// would be older than what the leader sends.
func (s *Sink[L]) Write(_ context.Context, b *metric.Batch) error {
	leads := s.o.IsLeader()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !leads {
		clear(s.mu.sources)
		s.mu.entities.clear()
		return nil
	}
	source := s.source(b.Key())
	source.begin()
	at := b.Ended.UnixMilli()
	for i := range b.Samples {
		if sample := &b.Samples[i]; sample.Rejected() {
			source.add(nil)
		} else {
			s.add(source, sample, at)
		}
	}
	s.drop(source)
	return nil
}

// Forget ends the series of a source that is no longer read.
func (s *Sink[L]) Forget(source string, node metric.NodeName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := metric.SourceKey{Source: source, Node: node}
	if source := s.mu.sources[key]; source != nil {
		source.begin()
		s.drop(source)
		delete(s.mu.sources, key)
	}
}

// Remembered returns how many entities the sink remembers.
func (s *Sink[L]) Remembered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.entities.n
}

func (s *Sink[L]) source(key metric.SourceKey) *sourceState[L] {
	source := s.mu.sources[key]
	if source == nil {
		source = &sourceState[L]{phase: int64(maphash.Comparable(s.mu.entities.seed, key) >> 32)}
		s.mu.sources[key] = source
	}
	return source
}

// add queues the new values of a sample, and ends the series that have no value any more. at
// is the time of values without one, in milliseconds since the Unix epoch.
func (s *Sink[L]) add(source *sourceState[L], sample *metric.Sample, at int64) {
	e := source.next(&sample.Entity)
	if e == nil {
		e = s.state(&sample.Entity)
	}
	source.add(e)
	if e.selected == nil {
		return
	}
	labels, renamed := s.format.Describe(e.labels, sample)
	if renamed {
		s.end(e, func(metric.ID) bool { return false })
	}
	e.labels = labels
	before := e.lastSent()
	last := before // all metrics of a group share one time
	s.mu.declared = s.mu.declared[:0]
	for id, value := range sample.Values.All() {
		d := &metric.Catalogue[id]
		if !sample.Servable(d.Group) || !e.selected[id] {
			continue
		}
		t := series.Time(sample, id) / 1e6
		if t <= 0 {
			t = at
		}
		if t <= *before.at(id) {
			continue
		}
		*last.at(id) = t
		if p := (point{id, value, t}); d.Declared() {
			s.mu.declared = append(s.mu.declared, p)
		} else {
			s.addValue(e, p)
		}
	}
	if e.declares(s.mu.declared, at, s.o.DeclaredInterval.Milliseconds(), source.phase) {
		for _, p := range s.mu.declared {
			s.addValue(e, p)
		}
	}
	if last != before {
		e.setLastSent(&last)
	}
	if len(e.reports) == 1 {
		s.end(e, func(id metric.ID) bool {
			return sample.Values.Has(id) && sample.Servable(metric.Catalogue[id].Group)
		})
	}
}

// drop removes the entities that are not in the last round of the source.
func (s *Sink[L]) drop(source *sourceState[L]) {
	for _, e := range source.end() {
		if e != nil && e.isGone(source) {
			s.end(e, func(metric.ID) bool { return false })
			s.mu.entities.remove(e)
		}
	}
}

// end ends the live series of an entity, except those to keep. The end is 1 ms after the last
// value.
func (s *Sink[L]) end(e *entityState[L], keep func(metric.ID) bool) {
	var ended metric.IDSet
	last := e.lastSent()
	for _, id := range e.live.All() {
		if !keep(id) {
			ended.Add(id)
			s.addPoint(e, Point[L]{Metric: id, Time: *last.at(id) + 1, Ended: true})
		}
	}
	e.live.Remove(&ended)
}

// addValue adds one value of an entity to the request.
func (s *Sink[L]) addValue(e *entityState[L], p point) {
	e.live.Add(p.id)
	s.addPoint(e, Point[L]{Metric: p.id, Value: series.Value(p.value, metric.Catalogue[p.id].Unit), Time: p.time})
}

// addPoint adds one point of an entity to the request, which goes to the queue when it is full.
func (s *Sink[L]) addPoint(e *entityState[L], p Point[L]) {
	if s.mu.points == 0 {
		s.mu.since = time.Now()
	}
	p.Entity, p.Labels = &e.entity, &e.labels
	s.format.Add(p)
	if s.mu.points++; s.mu.points >= s.o.MaxSamples {
		s.enqueue()
	}
}

// enqueue queues the request.
func (s *Sink[L]) enqueue() {
	s.Put(s.format.Encode(s.Buffer()), s.mu.points, s.mu.since)
	s.mu.points = 0
}

// Flush queues the request if its first point has waited for at least longest.
func (s *Sink[L]) Flush(longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.points > 0 && time.Since(s.mu.since) >= longest {
		s.enqueue()
	}
}
