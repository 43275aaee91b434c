package informer

import (
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// queue collects changes until the loop takes them. Only the last state of each
// object is kept, so it is never longer than the cluster is large.
type queue struct {
	ready chan struct{} // has a value while there is something to take

	mu struct {
		sync.Mutex
		pending
	}
}

// pending is what has changed since it was last taken.
type pending struct {
	nodes map[metric.NodeName]*cluster.Node // nil: gone
	pods  map[metric.PodRef]*cluster.Pod    // nil: gone
	whole map[metric.PodRef]*v1.Pod         // those of pods that are kept whole
	// allNodes and allPods say that nodes or pods are all there are: what they
	// do not name is gone.
	allNodes, allPods bool
	// listedNodes and listedPods say that a whole list has been received, now
	// or earlier.
	listedNodes, listedPods bool
	at                      time.Time // when the API server spoke last
}

func newQueue() *queue {
	q := &queue{ready: make(chan struct{}, 1)}
	q.mu.clear()
	return q
}

func (p *pending) clear() {
	p.nodes = map[metric.NodeName]*cluster.Node{}
	p.pods = map[metric.PodRef]*cluster.Pod{}
	p.whole = map[metric.PodRef]*v1.Pod{}
	p.allNodes, p.allPods = false, false
}

// onlyNewNodes says that the nodes recorded from now on are all there are.
func (p *pending) onlyNewNodes() {
	clear(p.nodes)
	p.allNodes, p.listedNodes = true, true
}

// onlyNewPods says that the pods recorded from now on are all there are.
func (p *pending) onlyNewPods() {
	clear(p.pods)
	clear(p.whole)
	p.allPods, p.listedPods = true, true
}

// setPod records a new or changed pod.
func (p *pending) setPod(is podView) {
	p.pods[is.facts.PodRef] = is.facts
	if is.whole != nil {
		p.whole[is.facts.PodRef] = is.whole
	}
}

// dropPod records that a pod is gone.
func (p *pending) dropPod(was podView) {
	p.pods[was.facts.PodRef] = nil
	delete(p.whole, was.facts.PodRef)
}

// change lets do record a change that was learnt at the given time.
func (q *queue) change(at time.Time, do func(*pending)) {
	q.mu.Lock()
	if do != nil {
		do(&q.mu.pending)
	}
	if at.After(q.mu.at) {
		q.mu.at = at
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns what has been collected and begins anew.
func (q *queue) take() pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.mu.pending
	q.mu.clear()
	return p
}

// apply returns facts that know what old knew and what p says, and whether that
// differs. old may be nil.
func (p *pending) apply(old *cluster.Facts) (facts *cluster.Facts, changed bool) {
	c := cluster.Change{Synced: p.listedNodes && p.listedPods, At: p.at}
	changed = old == nil || old.Synced != c.Synced

	for name, n := range p.nodes {
		switch before := old.Node(name); {
		case n == nil && before == nil:
		case n == nil:
			c.GoneNodes = append(c.GoneNodes, name)
		case before == nil || !reflect.DeepEqual(before, n):
			c.Nodes = append(c.Nodes, n)
		}
	}
	if p.allNodes {
		old.EachNode(func(n *cluster.Node) bool {
			if _, listed := p.nodes[n.Name]; !listed {
				c.GoneNodes = append(c.GoneNodes, n.Name)
			}
			return true
		})
	}

	for ref, pod := range p.pods {
		before := old.Pod(ref)
		if pod == nil {
			if before != nil {
				c.GonePods = append(c.GonePods, ref)
			}
			continue
		}
		if before != nil && before.UID == pod.UID {
			pod.KnownAt = before.KnownAt
		}
		if before == nil || !reflect.DeepEqual(before, pod) {
			c.Pods = append(c.Pods, pod)
		}
	}
	if p.allPods {
		old.EachPod(func(pod *cluster.Pod) bool {
			if _, listed := p.pods[pod.PodRef]; !listed {
				c.GonePods = append(c.GonePods, pod.PodRef)
			}
			return true
		})
	}
	changed = changed || len(c.Nodes)+len(c.GoneNodes)+len(c.Pods)+len(c.GonePods) > 0
	return old.With(c), changed
}
