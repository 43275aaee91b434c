package memory

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-metrics/weir/metric"
)

// Sink remembers batches. Write and Forget take turns. Snapshot waits for
// neither, but for the moment in which one of them puts its result in place.
type Sink struct {
	opts     Options
	recorder recorder

	mu struct {
		sync.Mutex
		feeds map[feedKey]*feed
		// nodesOf are the nodes that a source of many has reported.
		nodesOf   map[string]map[metric.NodeName]struct{}
		contested map[metric.PodRef]struct{} // pods with several homes
		entities  int
		bytes     int // of the history
		scratch   scratch
	}
	shown    shown
	snapshot atomic.Pointer[Snapshot] // of shown; nil once that changed
	stats    struct{ entities, historyBytes, dropped atomic.Int64 }
}

type feedKey struct {
	source string
	node   metric.NodeName
}

// feed is the writer's side of one source of one node.
type feed struct {
	view *view // the last published
	era  era   // in which it was
	// order is where in the batch each of the directory's entries lay in the
	// last round: most sources report in the same order again.
	order   []int32
	layout  *metric.Layout // of that batch
	history history
}

// scratch is memory that every Write uses again.
type scratch struct {
	samples  []*metric.Sample
	sorted   []*metric.Sample
	verdicts []*metric.Verdict
	where    map[*metric.Sample]int32
	spares   spares
}

// New returns a Sink that remembers nothing yet.
func New(o Options) *Sink {
	s := &Sink{opts: o.withDefaults()}
	s.recorder = recorder{metrics: track(s.opts.HistoryMetrics), layouts: map[layout]*layout{}, keep: s.opts.History}
	s.mu.feeds = map[feedKey]*feed{}
	s.mu.nodesOf = map[string]map[metric.NodeName]struct{}{}
	s.mu.contested = map[metric.PodRef]struct{}{}
	s.mu.scratch.spares = spares{}
	return s
}

// Stats is how much a Sink holds.
type Stats struct {
	Entities     int   // now, counted once for each source
	Dropped      int64 // samples over MaxEntities, ever
	HistoryBytes int   // of points
}

// Stats returns how much the sink holds.
func (s *Sink) Stats() Stats {
	return Stats{
		Entities:     int(s.stats.entities.Load()),
		Dropped:      s.stats.dropped.Load(),
		HistoryBytes: int(s.stats.historyBytes.Load()),
	}
}

// Write remembers b and shows it to readers. A batch of many nodes counts as
// one batch for each; nodes it no longer mentions lose their samples. b may be
// used again afterwards. It never fails.
func (s *Sink) Write(_ context.Context, b *metric.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Node != "" {
		sc := &s.mu.scratch
		sc.samples, sc.verdicts = sc.samples[:0], sc.verdicts[:0]
		for i := range b.Samples {
			sc.samples = append(sc.samples, &b.Samples[i])
		}
		for i := range b.Verdicts {
			sc.verdicts = append(sc.verdicts, &b.Verdicts[i])
		}
		s.write(b, b.Node)
		return nil
	}
	s.writeMany(b)
	return nil
}

// writeMany splits a batch by node.
func (s *Sink) writeMany(b *metric.Batch) {
	samples := map[metric.NodeName][]*metric.Sample{}
	verdicts := map[metric.NodeName][]*metric.Verdict{}
	nodes := s.mu.nodesOf[b.Source]
	if nodes == nil {
		nodes = map[metric.NodeName]struct{}{}
		s.mu.nodesOf[b.Source] = nodes
	}
	for i := range b.Samples {
		node := b.Samples[i].Entity.Node
		samples[node] = append(samples[node], &b.Samples[i])
		nodes[node] = struct{}{}
	}
	for i := range b.Verdicts {
		node := b.Verdicts[i].Entity.Node
		verdicts[node] = append(verdicts[node], &b.Verdicts[i])
		nodes[node] = struct{}{}
	}
	if len(nodes) == 0 {
		nodes[""] = struct{}{} // nothing was ever read: the status alone
	}
	for node := range nodes {
		if (b.Err == nil || node == "") && len(nodes) > 1 && samples[node] == nil && verdicts[node] == nil {
			s.forget(b.Source, node)
			delete(nodes, node)
			continue
		}
		s.mu.scratch.samples = append(s.mu.scratch.samples[:0], samples[node]...)
		s.mu.scratch.verdicts = append(s.mu.scratch.verdicts[:0], verdicts[node]...)
		s.write(b, node)
	}
}

// write takes the samples and verdicts of one node, which lie in scratch.
func (s *Sink) write(b *metric.Batch, node metric.NodeName) {
	sc := &s.mu.scratch
	key := feedKey{b.Source, node}
	f := s.mu.feeds[key]
	if f == nil {
		f = &feed{}
		s.mu.feeds[key] = f
	}
	before := f.view
	now := b.Ended.UnixNano()
	if b.Ended.IsZero() {
		now = 0
	}
	reported := len(sc.samples)

	samples, d, moved := s.arrange(f, b, node)
	latest := newRound(d, b.Ended, samples, sc.spares.take(d.words))
	if len(s.recorder.metrics) > 0 {
		s.mu.bytes -= f.history.bytes
		f.history.add(&s.recorder, &latest, samples, b.Resolution, now)
		s.mu.bytes += f.history.bytes
	}
	p := &publication{view: view{
		source: b.Source, clock: int64(b.Resolution), interval: int64(b.Interval),
		lastRead: now, err: b.Err, samples: reported, past: f.history.past,
	}}
	v := &p.view
	var (
		old     []round
		stood   standings
		entries int
	)
	if before != nil {
		old, stood, v.lastSuccess = before.rounds, before.standings, before.lastSuccess
		entries = len(old[0].dir.entries)
		old = old[:min(len(old), s.opts.Rounds-1)]
	}
	if b.Err == nil {
		v.lastSuccess = now
	}
	v.standings = newStandings(node, sc.verdicts, stood, now)
	p.rounds[0] = latest
	if v.rounds = p.rounds[:]; len(old) > 0 {
		v.rounds = append(append(make([]round, 0, 1+len(old)), latest), old...)
	}
	f.view = v
	s.mu.entities += len(d.entries) - entries
	was := f.era
	f.era = s.publish(node, before, p, moved, now)
	if before != nil && was == f.era && s.opts.Rounds == 1 {
		sc.spares.put(before.rounds[0].data) // Nobody has seen it, or ever will
	}
	clear(sc.samples)
	clear(sc.sorted)
	clear(sc.verdicts)
}

// arrange returns the samples to keep of those in scratch, sorted, with the
// directory that describes them, and whether others than last time may be among
// them. Those that are too many get a verdict.
func (s *Sink) arrange(f *feed, b *metric.Batch, node metric.NodeName) (_ []*metric.Sample, _ *directory, moved bool) {
	sc := &s.mu.scratch
	var d *directory
	if f.view != nil {
		d = f.view.rounds[0].dir
	}
	if sorted, ok := f.again(d, b, sc); ok {
		return sorted, d.refit(sorted), false
	}
	sorted := sc.sorted[:0]
	for _, sample := range sc.samples {
		if keeps(sample) {
			sorted = append(sorted, sample)
		}
	}
	slices.SortStableFunc(sorted, func(a, b *metric.Sample) int { return compareNames(&a.Entity, &b.Entity) })
	sorted = slices.CompactFunc(sorted, func(a, b *metric.Sample) bool { return sameName(&a.Entity, &b.Entity) })

	room := s.opts.MaxEntities - s.mu.entities
	if d != nil {
		room += len(d.entries)
	}
	if extra := len(sorted) - max(room, 0); extra > 0 {
		s.stats.dropped.Add(int64(extra))
		sorted = sorted[:max(room, 0)]
		sc.verdicts = append(sc.verdicts, &metric.Verdict{
			Entity: metric.Entity{Kind: metric.Node, Node: node},
			Reason: metric.OverLimit,
			Evidence: metric.Evidence{
				Rule:  "entities",
				Got:   metric.CounterReading{Value: float64(extra)},
				Limit: float64(s.opts.MaxEntities),
			},
		})
	}
	sc.sorted = sorted
	f.remember(b, sc, sorted)
	if d == nil || len(d.entries) != len(sorted) {
		return sorted, newDirectory(node, sorted, d), true
	}
	for i, sample := range sorted {
		if !d.describes(i, sample, false) {
			return sorted, newDirectory(node, sorted, d), true
		}
	}
	return sorted, d.refit(sorted), false
}

// keeps reports whether a sample is stored: not what identity turned away, nor
// sums, which are made here.
func keeps(s *metric.Sample) bool {
	k := s.Entity.Kind
	return !s.Rejected() && (k == metric.Node || k == metric.System || ofPod(k))
}

// again returns the samples in d's order if they are those that d describes, in
// the order of the last round.
func (f *feed) again(d *directory, b *metric.Batch, sc *scratch) ([]*metric.Sample, bool) {
	if d == nil || len(f.order) != len(d.entries) {
		return nil, false
	}
	kept := 0
	for _, sample := range sc.samples {
		if keeps(sample) {
			kept++
		}
	}
	if kept != len(d.entries) {
		return nil, false
	}
	// Samples that a Layout names have the names they had.
	named := 0
	if b.Layout != nil && b.Layout == f.layout && b.Node != "" {
		named = len(b.Layout.Entities)
	}
	sorted := sc.sorted[:0]
	for i, at := range f.order {
		if int(at) >= len(sc.samples) {
			return nil, false
		}
		sample := sc.samples[at]
		if !keeps(sample) || !d.describes(i, sample, int(at) < named) {
			return nil, false
		}
		sorted = append(sorted, sample)
	}
	sc.sorted = sorted
	f.layout = b.Layout
	return sorted, true
}

// remember notes where in the batch the sorted samples lay.
func (f *feed) remember(b *metric.Batch, sc *scratch, sorted []*metric.Sample) {
	f.layout = b.Layout
	if sc.where == nil {
		sc.where = map[*metric.Sample]int32{}
	}
	clear(sc.where)
	for i, sample := range sc.samples {
		sc.where[sample] = int32(i)
	}
	f.order = slices.Grow(f.order[:0], len(sorted))[:len(sorted)]
	for i, sample := range sorted {
		f.order[i] = sc.where[sample]
	}
	clear(sc.where)
}

// Forget frees what a source left of a node; of all its nodes if node is empty.
func (s *Sink) Forget(source string, node metric.NodeName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node != "" {
		s.forget(source, node)
		return
	}
	for name := range s.mu.nodesOf[source] {
		s.forget(source, name)
	}
	delete(s.mu.nodesOf, source)
}

func (s *Sink) forget(source string, node metric.NodeName) {
	f := s.mu.feeds[feedKey{source, node}]
	if f == nil {
		return
	}
	delete(s.mu.feeds, feedKey{source, node})
	s.mu.entities -= len(f.view.rounds[0].dir.entries)
	s.mu.bytes -= f.history.bytes
	s.publish(node, f.view, nil, true, 0)
}
