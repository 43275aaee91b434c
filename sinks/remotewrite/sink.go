package remotewrite

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/config"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// Sink sends batches to a receiver. Write and Forget may be called by several goroutines and
// never wait for the receiver; Run sends.
type Sink struct {
	o      Options
	api    *remote.API
	client *http.Client
	status *status
	queue  *queue
	meters *meters
	names  [metric.NumKinds]map[string]*names

	mu struct {
		sync.Mutex
		feeds   map[metric.SourceKey]*feed
		entries map[metric.Entity]*entry
		request *request
		since   time.Time // of the request's first sample
	}
	// modern says that the receiver accepts version 2.0, old that it accepts only 1.0. Only Run
	// uses these.
	modern, old bool
}

// New returns a Sink. The error is about the receiver's address, certificates or credentials.
func New(o Options) (*Sink, error) {
	o = o.withDefaults()
	client, err := config.NewClientFromConfig(o.HTTP, "remotewrite")
	if err != nil {
		return nil, fmt.Errorf("reach the receiver: %w", err)
	}
	s := &Sink{o: o, client: client, queue: newQueue(o.Queue), status: &status{next: client.Transport}}
	client.Transport, client.Timeout = s.status, o.Timeout
	s.api, err = remote.NewAPI(o.URL, remote.WithAPIHTTPClient(client), remote.WithAPIPath(""),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: 100 * time.Millisecond, Max: o.MaxBackoff}))
	if err != nil {
		return nil, fmt.Errorf("reach the receiver: %w", err)
	}
	s.meters = newMeters(s)
	for k := range s.names {
		s.names[k] = map[string]*names{}
	}
	s.mu.feeds, s.mu.entries, s.mu.request = map[metric.SourceKey]*feed{}, map[metric.Entity]*entry{}, newRequest()
	return s, nil
}

// Write queues the values of b that were not sent yet. The error is always nil: samples that do
// not fit into the queue are counted.
func (s *Sink) Write(_ context.Context, b *metric.Batch) error {
	if !s.o.IsLeader() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feed(b.Key())
	f.round++
	at := b.Ended.UnixMilli()
	for i := range b.Samples {
		if sample := &b.Samples[i]; !sample.Rejected() {
			s.take(f, sample, at)
		}
	}
	s.drop(f)
	return nil
}

// Forget ends the series of a source that is no longer read.
func (s *Sink) Forget(source string, node metric.NodeName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := metric.SourceKey{Source: source, Node: node}
	if f := s.mu.feeds[key]; f != nil {
		f.round++
		s.drop(f)
		delete(s.mu.feeds, key)
	}
}

func (s *Sink) feed(key metric.SourceKey) *feed {
	f := s.mu.feeds[key]
	if f == nil {
		f = &feed{met: map[*entry]uint32{}}
		s.mu.feeds[key] = f
	}
	return f
}

// take queues the new values of a sample, and ends the series that have no value any more. at
// is the time of values without one, in milliseconds since the Unix epoch.
func (s *Sink) take(f *feed, sample *metric.Sample, at int64) {
	e := s.entryOf(&sample.Entity)
	if _, known := f.met[e]; !known {
		e.feeds++
	}
	f.met[e] = f.round
	if !e.wanted {
		return
	}
	n := s.namesOf(sample.Entity.Kind, e.part)
	before := e.sent // a copy, because all metrics of a group share one time
	for id, value := range sample.Values.All() {
		d := &metric.Catalogue[id]
		if !sample.Servable(d.Group) || n[id].name == "" {
			continue
		}
		t := series.Time(sample, id) / 1e6
		if t <= 0 {
			t = at
		}
		if t <= *before.of(id) {
			continue
		}
		*e.sent.of(id) = t
		e.live[id] = true
		s.send(e, id, series.Value(value, d.Unit), t)
	}
	if e.feeds == 1 {
		s.end(e, func(id metric.ID) bool {
			return sample.Values.Has(id) && sample.Servable(metric.Catalogue[id].Group)
		})
	}
}

// drop removes the entities that are not in the last round of the feed.
func (s *Sink) drop(f *feed) {
	for e, round := range f.met {
		if round == f.round {
			continue
		}
		delete(f.met, e)
		if e.feeds--; e.feeds == 0 {
			s.end(e, func(metric.ID) bool { return false })
			delete(s.mu.entries, e.entity)
		}
	}
}

// end ends the live series of an entity, except those to keep. The stale marker is 1 ms
// after the last value.
func (s *Sink) end(e *entry, keep func(metric.ID) bool) {
	for id := range metric.NumMetrics {
		if e.live[id] && !keep(id) {
			e.live[id] = false
			s.send(e, id, stale, *e.sent.of(id)+1)
		}
	}
}

// send adds one sample to the request, which goes to the queue when it is full.
func (s *Sink) send(e *entry, id metric.ID, value float64, t int64) {
	r := s.mu.request
	if len(r.series) == 0 {
		s.mu.since = time.Now()
	}
	n := &s.namesOf(e.entity.Kind, e.part)[id]
	r.add(n.name, n.help, metric.Catalogue[id].Type, e.labels, e.before, value, t)
	if len(r.series) >= s.o.MaxSamples {
		s.seal()
	}
}

// seal queues the request.
func (s *Sink) seal() {
	r := s.mu.request
	s.meters.dropped.Add(float64(s.queue.put(r.encode(), len(r.series), s.mu.since)))
	r.reset()
}

// flush queues the request if its first sample has waited for at least longest.
func (s *Sink) flush(longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.request.series) > 0 && time.Since(s.mu.since) >= longest {
		s.seal()
	}
}

// names are the names of all metrics for a kind of entity, or for a kind of its parts; empty
// for metrics that are not selected.
type names [metric.NumMetrics]struct{ name, help string }

func (s *Sink) namesOf(k metric.Kind, part string) *names {
	n := s.names[k][part]
	if n == nil {
		n = new(names)
		for id := range n {
			if d := &metric.Catalogue[id]; s.o.Metric(k, part, d) {
				n[id].name, n[id].help = series.Name(k, part, d), series.Help(k, part, d)
			}
		}
		s.names[k][part] = n
	}
	return n
}
