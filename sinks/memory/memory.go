package memory

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-metrics/weir/metric"
)

// Sink stores batches. Write and Forget exclude each other. Snapshot does not wait for them,
// except for the moment in which one of them publishes its result.
type Sink struct {
	opts          Options
	historyWriter historyWriter

	mu struct {
		sync.Mutex
		sources map[sourceKey]*sourceState
		// nodesOf has, by source, the nodes that a source of many nodes has reported.
		nodesOf   map[string]map[metric.NodeName]struct{}
		contested map[metric.PodRef]struct{} // pods that several nodes report
		tables    uint64                     // the generation of the newest entityTable
		entities  int
		bytes     int // of the history
		scratch   scratch
	}
	pending  pendingSnapshot
	snapshot atomic.Pointer[Snapshot] // the last Snapshot; nil if there was a change since
	stats    struct{ entities, historyBytes, dropped atomic.Int64 }
}

type sourceKey struct {
	source string
	node   metric.NodeName
}

// sourceState is the writer's side of one source of one node.
type sourceState struct {
	published  *sourceView        // the last one published
	generation snapshotGeneration // of that publication
	// slots are the slots of the table's entries in the batch of slotGeneration, which is 0 if
	// that batch had none.
	slots          []uint32
	slotGeneration uint64
	history        sourceHistory
}

// scratch is memory that every Write reuses.
type scratch struct {
	samples  []*metric.Sample
	sorted   []*metric.Sample
	verdicts []*metric.Verdict
	bySlot   []*metric.Sample
	words    []uint64
	buffers  bufferPool
}

// New returns an empty Sink.
func New(o Options) *Sink {
	s := &Sink{opts: o.withDefaults()}
	s.historyWriter = historyWriter{metrics: historyMetrics(s.opts.HistoryMetrics), layouts: map[rowLayout]*rowLayout{}, keep: s.opts.History}
	s.mu.sources = map[sourceKey]*sourceState{}
	s.mu.nodesOf = map[string]map[metric.NodeName]struct{}{}
	s.mu.contested = map[metric.PodRef]struct{}{}
	s.mu.scratch.buffers = bufferPool{}
	return s
}

// Stats is the size of a Sink.
type Stats struct {
	Entities     int   // at present, counted once for each source
	Dropped      int64 // samples dropped because of MaxEntities, since the start
	HistoryBytes int   // of points
}

// Stats returns the size of the sink.
func (s *Sink) Stats() Stats {
	return Stats{
		Entities:     int(s.stats.entities.Load()),
		Dropped:      s.stats.dropped.Load(),
		HistoryBytes: int(s.stats.historyBytes.Load()),
	}
}

// Write stores b and publishes it to readers. A batch of many nodes counts as one batch for
// each node; nodes that it no longer has lose their samples. b may be reused afterwards. The
// error is always nil.
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
		nodes[""] = struct{}{} // no read has succeeded yet: only the status is stored
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

// write stores the samples and verdicts of one node, which are in scratch.
func (s *Sink) write(b *metric.Batch, node metric.NodeName) {
	sc := &s.mu.scratch
	key := sourceKey{b.Source, node}
	f := s.mu.sources[key]
	if f == nil {
		f = &sourceState{}
		s.mu.sources[key] = f
	}
	before := f.published
	now := b.Ended.UnixNano()
	if b.Ended.IsZero() {
		now = 0
	}
	reported := len(sc.samples)

	samples, d, moved := s.arrange(f, b, node)
	latest := newRound(d, samples, sc.words[:0])
	sc.words = latest.words
	latest.words = append(sc.buffers.take(len(sc.words)), sc.words...)
	if len(s.historyWriter.metrics) > 0 {
		s.mu.bytes -= f.history.bytes
		f.history.add(&s.historyWriter, &latest, samples, b.Resolution, now)
		s.mu.bytes += f.history.bytes
	}
	p := &publication{source: sourceView{
		source: b.Source, clock: int64(b.Resolution), interval: int64(b.Interval),
		lastRead: now, err: b.Err, samples: reported, round: latest, history: f.history.historyView,
	}}
	v := &p.source
	var (
		stood   verdictIndex
		entries int
	)
	if before != nil {
		stood, v.lastSuccess = before.verdicts, before.lastSuccess
		entries = len(before.round.table.entries)
	}
	if b.Err == nil {
		v.lastSuccess = now
	}
	v.verdicts = newVerdictIndex(node, sc.verdicts, stood, now)
	f.published = v
	s.mu.entities += len(d.entries) - entries
	generation := f.generation
	f.generation = s.publish(node, before, p, moved, now)
	if before != nil && generation == f.generation {
		sc.buffers.giveBack(before.round.words) // no Snapshot has it
	}
	clear(sc.samples)
	clear(sc.sorted)
	clear(sc.bySlot)
	clear(sc.verdicts)
}

// arrange returns the samples in scratch that are stored, sorted, with the entityTable that
// describes them. moved reports whether the entities may have changed. Samples above
// MaxEntities are dropped and get a verdict.
func (s *Sink) arrange(f *sourceState, b *metric.Batch, node metric.NodeName) (_ []*metric.Sample, _ *entityTable, moved bool) {
	sc := &s.mu.scratch
	var before round
	if f.published != nil {
		before = f.published.round
	}
	d := before.table
	if f.sortBySlot(d, b.SlotGeneration, sc) { // Fast path
		return sc.sorted, d.withLayouts(sc.sorted), false
	}
	sorted := sc.sorted[:0]
	for _, sample := range sc.samples {
		if isStored(sample) {
			sorted = append(sorted, sample)
		}
	}
	slices.SortStableFunc(sorted, func(a, b *metric.Sample) int { return compareEntities(&a.Entity, &b.Entity) })
	sorted = slices.CompactFunc(sorted, func(a, b *metric.Sample) bool { return compareEntities(&a.Entity, &b.Entity) == 0 })

	entitiesLeft := s.opts.MaxEntities - s.mu.entities
	if d != nil {
		entitiesLeft += len(d.entries)
	}
	if extra := len(sorted) - max(entitiesLeft, 0); extra > 0 {
		s.stats.dropped.Add(int64(extra))
		sorted = sorted[:max(entitiesLeft, 0)]
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
	f.slotGeneration, f.slots = b.SlotGeneration, slices.Grow(f.slots[:0], len(sorted))
	for _, sample := range sorted {
		f.slots = append(f.slots, sample.Slot)
	}
	if d.matchesEntities(sorted) {
		return sorted, d.withLayouts(sorted), false
	}
	s.mu.tables++
	return sorted, newEntityTable(node, s.mu.tables, sorted, before), true
}

// isStored reports whether a sample is stored. Rejected samples are not, and neither are
// namespaces and the cluster, which this package sums itself.
func isStored(s *metric.Sample) bool {
	k := s.Entity.Kind
	return !s.Rejected() && (k == metric.Node || k == metric.System || isPodKind(k))
}

// sortBySlot fills sorted with the samples of scratch, in the order of d's entries. It reports
// whether they are the instances that d describes.
func (s *sourceState) sortBySlot(d *entityTable, slotGeneration uint64, sc *scratch) bool {
	if d == nil || slotGeneration == 0 || slotGeneration != s.slotGeneration {
		return false
	}
	stored := 0
	for _, sample := range sc.samples {
		if !isStored(sample) {
			continue
		}
		if n := int(sample.Slot) + 1 - len(sc.bySlot); n > 0 {
			sc.bySlot = append(sc.bySlot, make([]*metric.Sample, n)...)
		}
		if sc.bySlot[sample.Slot] == nil { // only the first of several duplicates counts
			sc.bySlot[sample.Slot] = sample
			stored++
		}
	}
	if stored != len(d.entries) {
		return false
	}
	sc.sorted = sc.sorted[:0]
	for i, slot := range s.slots {
		if int(slot) >= len(sc.bySlot) || sc.bySlot[slot] == nil || !d.entries[i].isInstance(&sc.bySlot[slot].Instance) {
			return false
		}
		sc.sorted = append(sc.sorted, sc.bySlot[slot])
	}
	return true
}

// Forget removes the data of a source for a node; for all its nodes if node is empty.
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
	f := s.mu.sources[sourceKey{source, node}]
	if f == nil {
		return
	}
	delete(s.mu.sources, sourceKey{source, node})
	s.mu.entities -= len(f.published.round.table.entries)
	s.mu.bytes -= f.history.bytes
	s.publish(node, f.published, nil, true, 0)
}
