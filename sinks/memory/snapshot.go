package memory

import (
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Snapshot is the content of the sink at one moment. It is immutable: readers need no lock and
// delay no Write, and its methods agree with each other. Only its history becomes shorter as it
// expires.
type Snapshot struct {
	nodes      nodeList
	nodesByPod nodesByPod
	placements map[metric.PodRef]podPlacement
	tracked    []historyMetric
	at         int64

	once     sync.Once
	computed totals // set by once
}

// totals computes the totals at the first call.
func (s *Snapshot) totals() *totals {
	s.once.Do(func() { s.computed = s.computeTotals() })
	return &s.computed
}

// At returns when the newest batch in the snapshot was read; zero if there is none.
func (s *Snapshot) At() time.Time { return timeAt(s.at) }

func timeAt(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Each calls do for every entity of a kind, and its parts, that has a number to serve, in the
// order of metric.Entity.Compare, until do returns false. A sample has only the values of
// groups that are served; for the others its Reasons explain why not.
//
// The sample is valid until do returns, because the next one uses the same memory: Each
// allocates nothing for an entity. Samples yields samples that may be kept.
func (s *Snapshot) Each(kind metric.Kind, do func(*metric.Sample) bool) {
	var rd sampleReader
	switch kind {
	case metric.Cluster:
		if t := s.totals(); t.cluster != nil {
			do(t.cluster)
		}
	case metric.Namespaced:
		for _, n := range s.totals().namespaces {
			if !do(n) {
				return
			}
		}
	case metric.Node, metric.System:
		for i := range s.nodes.names {
			if !s.nodes.at(i).each(entriesIn(kind, ""), &rd, do) {
				return
			}
		}
	case metric.Pod, metric.Container:
		// Entities are ordered by namespace before node.
		spread := s.nodesByNamespace(kind)
		for _, namespace := range slices.Sorted(maps.Keys(spread)) {
			for _, n := range spread[namespace] {
				if !n.each(entriesIn(kind, namespace), &rd, s.onlyPlaced(do)) {
					return
				}
			}
		}
	}
}

// EachOn is Each for the entities of one node.
func (s *Snapshot) EachOn(node metric.NodeName, kind metric.Kind, do func(*metric.Sample) bool) {
	n := s.nodes.get(node)
	if n == nil {
		return
	}
	if isPodKind(kind) {
		do = s.onlyPlaced(do)
	}
	var rd sampleReader
	n.each(func(d *entityTable) (from, to int) { return d.kinds[kind], d.kinds[kind+1] }, &rd, do)
}

// nodesByNamespace returns the nodes that have entities of each namespace, in order.
func (s *Snapshot) nodesByNamespace(kind metric.Kind) map[metric.Namespace][]*nodeView {
	spread := map[metric.Namespace][]*nodeView{}
	for i := range s.nodes.names {
		n := s.nodes.at(i)
		for _, v := range n.sources {
			for _, r := range v.round.table.namespaces {
				if r.kind != kind {
					continue
				}
				nodes := spread[r.namespace]
				if len(nodes) == 0 || nodes[len(nodes)-1] != n {
					spread[r.namespace] = append(nodes, n)
				}
			}
		}
	}
	return spread
}

// onlyPlaced returns a function that calls do only for pods and containers on the node of their
// placement.
func (s *Snapshot) onlyPlaced(do func(*metric.Sample) bool) func(*metric.Sample) bool {
	if len(s.placements) == 0 {
		return do
	}
	return func(sample *metric.Sample) bool { return !s.acceptPlaced(sample) || do(sample) }
}

// acceptPlaced reports whether a pod's or container's sample is from the node of its placement.
// It marks the sample as Ambiguous if the placement is.
func (s *Snapshot) acceptPlaced(sample *metric.Sample) bool {
	p, contested := s.placements[sample.Entity.PodRef()]
	if !contested {
		return true
	}
	if p.winner != sample.Entity.Node {
		return false
	}
	if p.ambiguous {
		for g, r := range sample.Reasons {
			if r == metric.Measured {
				sample.Reasons[g] = metric.Ambiguous
			}
		}
	}
	return true
}

// Samples yields the samples of Each. Each sample has its own memory.
func (s *Snapshot) Samples(kind metric.Kind) iter.Seq[*metric.Sample] {
	return func(yield func(*metric.Sample) bool) {
		var slab []metric.Sample
		s.Each(kind, func(sample *metric.Sample) bool {
			if len(slab) == 0 {
				slab = make([]metric.Sample, 32)
			}
			kept := &slab[0]
			slab = slab[1:]
			kept.CopyFrom(sample)
			return yield(kept)
		})
	}
}

// Lookup returns the sample of one entity, and whether there is a number to serve. The node of
// a pod or container may be empty: it is then that of its placement.
func (s *Snapshot) Lookup(e metric.Entity) (*metric.Sample, bool) {
	switch e.Kind {
	case metric.Cluster:
		t := s.totals()
		return t.cluster, t.cluster != nil && e == t.cluster.Entity
	case metric.Namespaced:
		for _, n := range s.totals().namespaces {
			if n.Entity == e {
				return n, true
			}
		}
		return nil, false
	}
	if e.Node == "" {
		e.Node = s.nodeOf(e)
	}
	n := s.nodes.get(e.Node)
	if n == nil {
		return nil, false
	}
	var rd sampleReader
	if !n.find(&e, &rd) {
		return nil, false
	}
	if isPodKind(e.Kind) && !s.acceptPlaced(&rd.out) {
		return nil, false
	}
	return &rd.out, true
}

func isPodKind(k metric.Kind) bool { return k == metric.Pod || k == metric.Container }

// nodeOf returns the node of a pod or container; empty if no node reports it.
func (s *Snapshot) nodeOf(e metric.Entity) metric.NodeName {
	if !isPodKind(e.Kind) {
		return ""
	}
	ref := e.PodRef()
	nodes := s.nodesByPod.nodesOf(ref)
	if len(nodes) == 1 {
		return nodes[0]
	}
	if p, ok := s.placements[ref]; ok {
		return p.winner
	}
	// Several nodes report it, at most one of them with numbers.
	for _, name := range nodes {
		if n := s.nodes.get(name); n != nil && n.servesPod(ref) {
			return name
		}
	}
	if len(nodes) > 0 {
		return nodes[0]
	}
	return ""
}

// Pod returns the sample of a pod, nil if it has no number to serve, and those of its
// containers, by name, without parts.
func (s *Snapshot) Pod(ref metric.PodRef) (pod *metric.Sample, containers []*metric.Sample) {
	e := metric.Entity{Kind: metric.Pod, Namespace: ref.Namespace, Pod: ref.Name}
	n := s.nodes.get(s.nodeOf(e))
	if n == nil {
		return nil, nil
	}
	pod, _ = s.Lookup(metric.Entity{Kind: metric.Pod, Node: n.name, Namespace: ref.Namespace, Pod: ref.Name})
	var names []string
	for _, v := range n.sources {
		d := v.round.table
		from, to := d.rangeOfPod(metric.Container, ref)
		for i := from; i < to; i++ {
			if c := d.entries[i].local.Value(); c.part == "" {
				names = append(names, c.name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		c, ok := s.Lookup(metric.Entity{Kind: metric.Container, Node: n.name, Namespace: ref.Namespace, Pod: ref.Name, Name: name})
		if ok {
			containers = append(containers, c)
		}
	}
	return pod, containers
}

// History returns the points of a metric of an entity from one time to another, both included
// and by the node's clock, oldest first. They come from one source: the most preferred one whose
// last point is at most a historyGap, or two of its intervals, older than the newest of all sources.
// The node of a pod or container may be empty while the pod is in the snapshot. Metrics without
// a history, namespaces and the cluster have no points.
func (s *Snapshot) History(e metric.Entity, id metric.ID, from, to time.Time) []Point {
	j := slices.IndexFunc(s.tracked, func(t historyMetric) bool { return t.id == id })
	if e.Node == "" {
		e.Node = s.nodeOf(e)
	}
	n := s.nodes.get(e.Node)
	if j < 0 || n == nil {
		return nil
	}
	var found []Point
	newest := int64(math.MinInt64)
	for _, v := range slices.Backward(n.sources) {
		p := v.history.points(&e, &s.tracked[j], j, from.UnixNano(), to.UnixNano())
		if len(p) == 0 {
			continue
		}
		last := p[len(p)-1].Time
		if newest = max(newest, last); newest-last <= max(2*v.interval, int64(historyGap)) {
			found = p
		}
	}
	return found
}

// historyGap is for how long a source may have no point before a less preferred one counts, at least:
// a few reads may fail, and sources are read at different moments.
const historyGap = time.Minute

// PastContainers yields the containers that the history has points of, also those that are gone, of one
// namespace or, if it is empty, of all. A container may be yielded more than once.
func (s *Snapshot) PastContainers(namespace metric.Namespace) iter.Seq[metric.Entity] {
	return func(yield func(metric.Entity) bool) {
		for i, node := range s.nodes.names {
			for _, v := range s.nodes.at(i).sources {
				for j := range v.history.rows {
					r := &v.history.rows[j]
					if w := r.local.Value(); w.kind != metric.Container || w.part != "" || namespace != "" && r.podRef().Namespace != namespace {
						continue
					}
					if !yield(r.entity(node)) {
						return
					}
				}
			}
		}
	}
}

// PastPods yields the pods of a node that the history has points of, also those that are gone. A pod may be
// yielded more than once.
func (s *Snapshot) PastPods(node metric.NodeName) iter.Seq[metric.Entity] {
	return func(yield func(metric.Entity) bool) {
		if n := s.nodes.get(node); n != nil {
			for _, v := range n.sources {
				for i := range v.history.rows {
					e := v.history.rows[i].entity(node)
					if e.Kind == metric.Pod && e.Part == "" && !yield(e) {
						return
					}
				}
			}
		}
	}
}

// PastValues returns the values of History since a time.
func (s *Snapshot) PastValues(e metric.Entity, id metric.ID, since time.Time) []float64 {
	points := s.History(e, id, since, time.Unix(0, math.MaxInt64))
	values := make([]float64, len(points))
	for i := range points {
		values[i] = points[i].Value
	}
	return values
}
