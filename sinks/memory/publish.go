package memory

import (
	"slices"
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// shown is what the next Snapshot will show. Writers change it; they take turns
// anyway, and its lock keeps Snapshot from seeing half of a change.
type shown struct {
	sync.Mutex
	nodes  roster
	homes  homes
	places map[metric.PodRef]place // replaced, never changed
	at     int64
	era    era
}

// Snapshot returns what is known now. It costs one atomic load, and, after a
// Write, a small allocation.
func (s *Sink) Snapshot() *Snapshot {
	if known := s.snapshot.Load(); known != nil {
		return known
	}
	s.shown.Lock()
	defer s.shown.Unlock()
	if known := s.snapshot.Load(); known != nil {
		return known
	}
	snap := &Snapshot{
		nodes: s.shown.nodes, homes: s.shown.homes, places: s.shown.places,
		tracked: s.recorder.metrics, at: s.shown.at,
	}
	s.shown.era++
	s.snapshot.Store(snap)
	return snap
}

// publication is what a round adds, in one piece of memory. Only the node of a
// single source lies in it: another source's view would be kept by it, and that
// would keep the one before.
type publication struct {
	view   view
	rounds [1]round
	node   nodeView
	views  [1]*view
}

// publish shows readers the view of p in the place of before; p nil for a source
// that is gone. moved says that entities may have come or gone. It returns the era in which
// that was: as long as it lasts, nobody has seen it.
func (s *Sink) publish(node metric.NodeName, before *view, p *publication, moved bool, now int64) era {
	next := &s.shown
	var others []*view
	if old := next.nodes.get(node); old != nil {
		for _, o := range old.views {
			if o != before {
				others = append(others, o)
			}
		}
	}
	next.Lock()
	defer next.Unlock()
	s.snapshot.Store(nil)
	next.at = max(next.at, now)
	var gone []*podKey
	if moved {
		gone = s.move(node, others, before, p)
	}
	switch {
	case p == nil && len(others) == 0:
		next.nodes.remove(next.era, node)
	case p == nil:
		next.nodes.put(next.era, &nodeView{node, others})
	case len(others) == 0:
		p.views[0] = &p.view
		p.node = nodeView{node, p.views[:]}
		next.nodes.put(next.era, &p.node)
	default:
		views := append(others, &p.view)
		s.opts.sort(views)
		next.nodes.put(next.era, &nodeView{node, views})
	}
	if len(s.mu.contested)+len(next.places) > 0 {
		next.places = s.settled(gone, node)
	}
	s.stats.entities.Store(int64(s.mu.entities))
	s.stats.historyBytes.Store(int64(s.mu.bytes))
	return next.era
}

// move notes which pods came to a node and which left it, and returns these.
// others is what the node's other sources say.
func (s *Sink) move(node metric.NodeName, others []*view, before *view, p *publication) (gone []*podKey) {
	var was, is []*podKey
	if before != nil {
		was = before.rounds[0].dir.pods()
	}
	if p != nil {
		is = p.view.rounds[0].dir.pods()
	}
	var come []*podKey
	for _, pod := range is {
		if _, ok := slices.BinarySearchFunc(was, pod, comparePodKeys); !ok {
			come = append(come, pod)
		}
	}
	for _, pod := range was {
		if _, ok := slices.BinarySearchFunc(is, pod, comparePodKeys); !ok && !report(others, pod.PodRef) {
			gone = append(gone, pod)
		}
	}
	h := &s.shown.homes
	h.move(s.shown.era, node, come, gone)
	for _, pods := range [...][]*podKey{come, gone} {
		for _, pod := range pods {
			if len(h.of(pod.PodRef)) > 1 {
				s.mu.contested[pod.PodRef] = struct{}{}
			} else {
				delete(s.mu.contested, pod.PodRef)
			}
		}
	}
	return gone
}

// report reports whether one of views has the pod or a container of it.
func report(views []*view, ref metric.PodRef) bool {
	for _, v := range views {
		for _, kind := range [...]metric.Kind{metric.Pod, metric.Container} {
			if from, to := v.rounds[0].dir.ofPod(kind, ref); from < to {
				return true
			}
		}
	}
	return false
}
