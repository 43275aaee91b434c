package memory

import (
	"slices"
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// pendingSnapshot is the content of the next Snapshot. Sink.mu serialises the writers that
// change it. Its own lock prevents Snapshot from seeing half of a change.
type pendingSnapshot struct {
	sync.Mutex
	nodes      nodeList
	nodesByPod nodesByPod
	placements map[metric.PodRef]podPlacement // replaced, never changed
	at         int64
	generation snapshotGeneration
}

// Snapshot returns the present content. It costs one atomic load, and a small allocation after
// a Write.
func (s *Sink) Snapshot() *Snapshot {
	if known := s.snapshot.Load(); known != nil {
		return known
	}
	s.pending.Lock()
	defer s.pending.Unlock()
	if known := s.snapshot.Load(); known != nil {
		return known
	}
	snap := &Snapshot{
		nodes: s.pending.nodes, nodesByPod: s.pending.nodesByPod, placements: s.pending.placements,
		tracked: s.historyWriter.metrics, at: s.pending.at,
	}
	s.pending.generation++
	s.snapshot.Store(snap)
	return snap
}

// publication is all that a round adds, in one allocation. Its node field is used only if the
// node has one source. With several sources it would keep the allocations of the other sources
// in memory, and those would keep earlier ones.
type publication struct {
	source  sourceView
	node    nodeView
	sources [1]*sourceView
}

// publish replaces before by the source of p; p is nil for a source that was removed. moved
// reports that pods may have come or gone. It returns the generation: while it does not change, no
// reader has seen p.
func (s *Sink) publish(node metric.NodeName, before *sourceView, p *publication, moved bool, now int64) snapshotGeneration {
	next := &s.pending
	var others []*sourceView
	if old := next.nodes.get(node); old != nil {
		for _, o := range old.sources {
			if o != before {
				others = append(others, o)
			}
		}
	}
	next.Lock()
	defer next.Unlock()
	s.snapshot.Store(nil)
	next.at = max(next.at, now)
	var gone []*podIdentity
	if moved {
		gone = s.movePods(node, others, before, p)
	}
	switch {
	case p == nil && len(others) == 0:
		next.nodes.remove(next.generation, node)
	case p == nil:
		next.nodes.set(next.generation, &nodeView{node, others})
	case len(others) == 0:
		p.sources[0] = &p.source
		p.node = nodeView{node, p.sources[:]}
		next.nodes.set(next.generation, &p.node)
	default:
		others = append(others, &p.source)
		s.opts.sortSources(others)
		next.nodes.set(next.generation, &nodeView{node, others})
	}
	if len(s.mu.contested)+len(next.placements) > 0 {
		next.placements = s.updatePlacements(gone, node)
	}
	s.stats.entities.Store(int64(s.mu.entities))
	s.stats.historyBytes.Store(int64(s.mu.bytes))
	return next.generation
}

// movePods updates nodesByPod and contested with the pods that came to a node and those that
// left it. It returns those that left. others are the node's other sources.
func (s *Sink) movePods(node metric.NodeName, others []*sourceView, before *sourceView, p *publication) (gone []*podIdentity) {
	var previous, after []*podIdentity
	if before != nil {
		previous = before.round.table.pods()
	}
	if p != nil {
		after = p.source.round.table.pods()
	}
	var come []*podIdentity
	for _, pod := range after {
		if _, ok := slices.BinarySearchFunc(previous, pod, comparePodIdentities); !ok {
			come = append(come, pod)
		}
	}
	for _, pod := range previous {
		if _, ok := slices.BinarySearchFunc(after, pod, comparePodIdentities); !ok && !anyReports(others, pod.PodRef) {
			gone = append(gone, pod)
		}
	}
	h := &s.pending.nodesByPod
	h.update(s.pending.generation, node, come, gone)
	for _, pods := range [...][]*podIdentity{come, gone} {
		for _, pod := range pods {
			if len(h.nodesOf(pod.PodRef)) > 1 {
				s.mu.contested[pod.PodRef] = struct{}{}
			} else {
				delete(s.mu.contested, pod.PodRef)
			}
		}
	}
	return gone
}

// anyReports reports whether one of views has the pod or one of its containers.
func anyReports(views []*sourceView, ref metric.PodRef) bool {
	for _, v := range views {
		for _, kind := range [...]metric.Kind{metric.Pod, metric.Container} {
			if from, to := v.round.table.rangeOfPod(kind, ref); from < to {
				return true
			}
		}
	}
	return false
}
