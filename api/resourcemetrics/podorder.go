package resourcemetrics

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// A LIST of all pods looks up each pod in the cluster facts and sorts the pods by name. Both
// results are nearly the same as in the previous LIST, and cost more than the numbers do,
// because names are spread over the memory. So a LIST keeps its result, and the next one reuses
// it for each node with unchanged pods: neither those that the node reports
// (resourceusage.PodUsage.Generation) nor those bound to it (cluster.Facts.PodsGeneration) have
// changed.

// podOrder is the pods of a LIST, sorted by namespace and name. It is immutable.
type podOrder struct {
	pods  []objectMeta
	nodes map[metric.NodeName]*nodeOrder
}

// nodeOrder is the part of a podOrder that one node reports.
type nodeOrder struct {
	generation      uint64      // PodUsage.Generation of the node; 0: not reusable
	boundGeneration uint64      // of the pods bound to the node
	running         int         // number of running pods that are bound to the node
	pods            []listedPod // by PodUsage.Index
}

// listedPod is a pod of a nodeOrder.
type listedPod struct {
	changed  int64 // Pod.RunsChangedAt
	position int32 // in podOrder.pods; or notListed
}

// notListed is the position of a pod that is not in the podOrder.
const notListed = -1

// isCurrent reports whether the pods of o have not changed. o may be nil.
func (n *nodeOrder) isCurrent(generation, boundGeneration uint64) bool {
	return n != nil && generation != 0 && n.generation == generation && n.boundGeneration == boundGeneration
}

// podOrderCache keeps the podOrder of the last LIST.
type podOrderCache struct {
	last   atomic.Pointer[podOrder]
	expiry *time.Timer
}

// keepPodOrder is how long a podOrder is kept after its LIST. It keeps facts in memory.
const keepPodOrder = time.Minute

func newPodOrderCache() *podOrderCache {
	c := &podOrderCache{}
	c.last.Store(&podOrder{})
	c.expiry = time.AfterFunc(keepPodOrder, func() { c.last.Store(&podOrder{}) })
	return c
}

// put stores a podOrder for the next LIST.
func (c *podOrderCache) put(next *podOrder) {
	c.last.Store(next)
	c.expiry.Reset(keepPodOrder)
}

// podOrderScan reads the pods of a snapshot node by node. It finds each pod in the last
// podOrder, and collects the pods that are not in it.
type podOrderScan struct {
	last    *podOrder
	facts   *cluster.Facts
	nodes   []scannedNode
	newPods []newPod
	// boundElsewhere has pods that are served with the numbers of a node to which they are not
	// bound.
	boundElsewhere map[metric.PodRef]bool
	labelSets      labelSets
}

// scannedNode is one node of the scan.
type scannedNode struct {
	name      metric.NodeName
	before    *nodeOrder     // of the last podOrder; nil if it is not current
	bound     []*cluster.Pod // the pods bound to it
	firstItem int            // index of the node's first item
	served    int            // number of served pods that are bound to it
	nodeOrder
}

// newPod is a pod that is not in the last podOrder.
type newPod struct {
	objectMeta
	node    int   // index in podOrderScan.nodes
	index   int   // PodUsage.Index
	changed int64 // Pod.RunsChangedAt
}

// findPod returns the position of u in the last podOrder, or ^i for the i-th new pod. ok is
// false if u must not be served. read is the number of items before u.
func (s *podOrderScan) findPod(u *resourceusage.PodUsage, read int) (position int32, ok bool) {
	n := len(s.nodes) - 1
	if n < 0 || s.nodes[n].name != u.Node {
		s.beginNode(u, read)
		n++
	}
	node := &s.nodes[n]
	if node.before != nil && u.Index < len(node.before.pods) && node.before.pods[u.Index].position != notListed {
		listed := node.before.pods[u.Index]
		if u.MeasuredAt < listed.changed && !resourceusage.MayServePod(s.facts.Pod(*u.PodRef), u) {
			return 0, false
		}
		node.served++
		return listed.position, true
	}
	p := s.facts.Pod(*u.PodRef)
	if !resourceusage.MayServePod(p, u) {
		return 0, false
	}
	if p.Node == u.Node {
		node.served++
	} else {
		node.generation = 0 // a change of p changes neither generation of this node
		if s.boundElsewhere == nil {
			s.boundElsewhere = map[metric.PodRef]bool{}
		}
		s.boundElsewhere[p.PodRef] = true
	}
	s.newPods = append(s.newPods, newPod{newObjectMeta(p.Namespace, string(p.Name), s.labelSets.setOf(p.Labels)), n, u.Index, p.RunsChangedAt()})
	return ^int32(len(s.newPods) - 1), true
}

// beginNode begins the node of u, its first pod.
func (s *podOrderScan) beginNode(u *resourceusage.PodUsage, read int) {
	s.nodes = append(s.nodes, scannedNode{
		name: u.Node, bound: s.facts.PodsOn(u.Node), firstItem: read,
		nodeOrder: nodeOrder{generation: u.Generation, boundGeneration: s.facts.PodsGeneration(u.Node)},
	})
	node := &s.nodes[len(s.nodes)-1]
	before := s.last.nodes[u.Node]
	if before.isCurrent(node.generation, node.boundGeneration) {
		node.before, node.running = before, before.running
		return
	}
	for _, p := range node.bound {
		if p.Phase == cluster.Running {
			node.running++
		}
	}
	// The node's pods are new pods now. Most have the same labels as before.
	if before != nil {
		for _, listed := range before.pods {
			if listed.position != notListed {
				s.labelSets.add(s.last.pods[listed.position].labels)
			}
		}
	}
}

// metaAt returns the pod at a position that findPod returned.
func (s *podOrderScan) metaAt(position int32) *objectMeta {
	if position < 0 {
		return &s.newPods[^position].objectMeta
	}
	return &s.last.pods[position]
}

// missingPods returns the running pods that are not in items, which are all items in the order
// they were read. A running pod is bound to a node, so missingPods compares node by node. It
// compares no names for a node that has as many served pods as running ones.
func (s *podOrderScan) missingPods(items []usageItem) (missing []*cluster.Pod) {
	served := map[metric.PodRef]bool{}
	addMissing := func(bound []*cluster.Pod) {
		for _, p := range bound {
			if p.Phase == cluster.Running && !served[p.PodRef] && !s.boundElsewhere[p.PodRef] {
				missing = append(missing, p)
			}
		}
	}
	unscanned := 0
	for range s.facts.EachNodesPods {
		unscanned++
	}
	for i := range s.nodes {
		node, end := &s.nodes[i], len(items)
		if len(node.bound) > 0 {
			unscanned--
		}
		if node.served == node.running {
			continue
		}
		if i+1 < len(s.nodes) {
			end = s.nodes[i+1].firstItem
		}
		clear(served)
		for _, o := range items[node.firstItem:end] {
			meta := s.metaAt(o.meta)
			served[metric.PodRef{Namespace: meta.namespace, Name: metric.PodName(meta.name)}] = true
		}
		addMissing(node.bound)
	}
	if unscanned > 0 {
		clear(served)
		scanned := make(map[metric.NodeName]bool, len(s.nodes))
		for i := range s.nodes {
			scanned[s.nodes[i].name] = true
		}
		for name, on := range s.facts.EachNodesPods {
			if !scanned[name] {
				addMissing(on)
			}
		}
	}
	return missing
}

// nextOrder returns the podOrder of this LIST and sets each item's meta to its position in it.
func (s *podOrderScan) nextOrder(items []usageItem) *podOrder {
	if len(s.newPods) == 0 {
		return s.last
	}
	next := &podOrder{nodes: make(map[metric.NodeName]*nodeOrder, len(s.nodes))}
	moved := s.keptPods()
	came := s.mergeNewPods(next, moved)
	kept := 0
	for i := range s.nodes {
		if before := s.nodes[i].before; before != nil {
			kept += len(before.pods)
		}
	}
	all := make([]listedPod, 0, kept) // one allocation for all nodes
	for i := range s.nodes {
		node := &s.nodes[i]
		l := node.nodeOrder
		if node.before != nil {
			from := len(all)
			all = append(all, node.before.pods...)
			l.pods = all[from:len(all):len(all)]
			for j := range l.pods {
				if position := l.pods[j].position; position != notListed {
					l.pods[j].position = moved[position]
				}
			}
		}
		next.nodes[node.name] = &l
	}
	for i := range s.newPods {
		f := &s.newPods[i]
		l := next.nodes[s.nodes[f.node].name]
		for len(l.pods) <= f.index {
			l.pods = append(l.pods, listedPod{position: notListed})
		}
		l.pods[f.index] = listedPod{f.changed, came[i]}
	}
	for i := range items {
		if meta := items[i].meta; meta < 0 {
			items[i].meta = came[^meta]
		} else {
			items[i].meta = moved[meta]
		}
	}
	return next
}

// keptPods returns, for each position in the last podOrder, 0 if its pod is on a node that is
// still current, else notListed.
func (s *podOrderScan) keptPods() []int32 {
	stays := make([]int32, len(s.last.pods))
	for i := range stays {
		stays[i] = notListed
	}
	for i := range s.nodes {
		if before := s.nodes[i].before; before != nil {
			for _, listed := range before.pods {
				if listed.position != notListed {
					stays[listed.position] = 0
				}
			}
		}
	}
	return stays
}

// mergeNewPods fills next.pods with the kept and the new pods, sorted. It sets stays to the
// new positions of the kept pods, and returns the positions of the new ones.
func (s *podOrderScan) mergeNewPods(next *podOrder, stays []int32) (came []int32) {
	metas := make([]objectMeta, len(s.newPods))
	for i := range s.newPods {
		metas[i] = s.newPods[i].objectMeta
	}
	came = make([]int32, len(metas))
	next.pods = make([]objectMeta, 0, len(s.last.pods)+len(metas))
	old := 0
	keep := func(end int) {
		for ; old < end; old++ {
			if stays[old] != notListed {
				stays[old] = int32(len(next.pods))
				next.pods = append(next.pods, s.last.pods[old])
			}
		}
	}
	order := sortedByName(metas, nil)
	packNames(metas, order)
	for _, i := range order {
		before, _ := slices.BinarySearchFunc(s.last.pods[old:], &metas[i], func(a objectMeta, b *objectMeta) int { return a.compare(b) })
		keep(old + before)
		came[i] = int32(len(next.pods))
		next.pods = append(next.pods, metas[i])
	}
	keep(len(s.last.pods))
	return came
}

// packNames copies names into one string, in order. A LIST reads them in that order, so they
// are adjacent in the processor's cache.
func packNames(metas []objectMeta, order []int32) {
	size := 0
	for i := range metas {
		size += len(metas[i].name)
	}
	var text strings.Builder
	text.Grow(size)
	for _, i := range order {
		text.WriteString(metas[i].name)
	}
	names, namespace := text.String(), metric.Namespace("")
	for _, i := range order {
		s := &metas[i]
		s.name, names = names[:len(s.name)], names[len(s.name):]
		if s.namespace != namespace {
			namespace = s.namespace
		}
		s.namespace = namespace
	}
}
