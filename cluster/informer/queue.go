package informer

import (
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// queue collects changes until the loop takes them. It keeps only the last state of each object, so
// it is never longer than the cluster is large.
type queue struct {
	ready chan struct{} // has a value while there are changes to take

	mu struct {
		sync.Mutex
		pending
	}
}

// pending is what has changed since the last take.
type pending struct {
	nodes map[metric.NodeName]*cluster.Node // nil: the node is gone
	pods  map[metric.PodRef]*cluster.Pod    // nil: the pod is gone
	whole map[metric.PodRef]*v1.Pod         // complete pods, if they are kept
	// finals are the last states of pods that are gone.
	finals map[metric.PodUID]*cluster.Pod
	// allNodes and allPods mean that the map contains all nodes or all pods: the others are gone.
	allNodes, allPods bool
	// listedNodes and listedPods mean that a complete list was received, now or earlier.
	listedNodes, listedPods bool
	// fromServer means that the API server has listed pods. Until then the kubelet's count.
	fromServer bool
	leftOut    int       // how many nodes are left out
	at         time.Time // when the API server last answered about pods
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
	p.finals = map[metric.PodUID]*cluster.Pod{}
	p.allNodes, p.allPods = false, false
}

// onlyNewNodes records that the nodes recorded from now on are all nodes.
func (p *pending) onlyNewNodes() {
	clear(p.nodes)
	p.allNodes, p.listedNodes = true, true
}

// onlyNewPods records that the pods recorded from now on are all pods.
func (p *pending) onlyNewPods() {
	clear(p.pods)
	clear(p.whole)
	p.allPods, p.listedPods, p.fromServer = true, true, true
}

// setPod records a new or changed pod.
func (p *pending) setPod(pod podView) {
	p.pods[pod.facts.PodRef] = pod.facts
	if pod.whole != nil {
		p.whole[pod.facts.PodRef] = pod.whole
	}
}

// dropPod records that a pod is gone.
func (p *pending) dropPod(pod podView) {
	p.pods[pod.facts.PodRef], p.finals[pod.facts.UID] = nil, pod.facts
	delete(p.whole, pod.facts.PodRef)
}

// change calls do to record a change. at is when it was received, if it is about pods, else zero.
func (q *queue) change(at time.Time, do func(*pending)) {
	q.mu.Lock()
	if do != nil {
		do(&q.mu.pending)
	}
	if at.After(q.mu.at) {
		q.mu.at = at
	}
	q.mu.Unlock()
	q.signal()
}

// signal signals that there are changes to take.
func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns the collected changes and empties the queue.
func (q *queue) take() pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.mu.pending
	q.mu.clear()
	return p
}

// apply returns old with the changes of p, and whether there were any. old may be nil.
func (p *pending) apply(old *cluster.Facts) (facts *cluster.Facts, changed bool) {
	for ref, pod := range p.pods {
		if before := old.Pod(ref); pod != nil && before != nil && before.UID == pod.UID {
			pod.KnownAt = before.KnownAt
		}
	}
	c := cluster.FactsChange{Synced: p.listedNodes && p.listedPods, At: p.at, LeftOutNodes: p.leftOut}
	c.Nodes, c.GoneNodes = compare(p.nodes, p.allNodes, old.Node, old.EachNode, func(n *cluster.Node) metric.NodeName { return n.Name })
	c.Pods, c.GonePods = compare(p.pods, p.allPods, old.Pod, old.EachPod, func(pod *cluster.Pod) metric.PodRef { return pod.PodRef })
	changed = old == nil || old.Synced != c.Synced || len(c.Nodes)+len(c.GoneNodes)+len(c.Pods)+len(c.GonePods) > 0
	return old.With(c), changed
}

// compare returns which objects in next are new or differ from the known ones, and which known ones
// are gone. In next, nil means that an object is gone. If all is set, next contains all objects.
func compare[K comparable, F any](
	next map[K]*F, all bool, known func(K) *F, each func(func(*F) bool), key func(*F) K,
) (changed []*F, gone []K) {
	for k, f := range next {
		switch before := known(k); {
		case f == nil && before != nil:
			gone = append(gone, k)
		case f != nil && !reflect.DeepEqual(before, f):
			changed = append(changed, f)
		}
	}
	if all {
		each(func(f *F) bool {
			if _, listed := next[key(f)]; !listed {
				gone = append(gone, key(f))
			}
			return true
		})
	}
	return changed, gone
}
