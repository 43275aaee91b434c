package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// sourceView is what readers see of one source of one node. A Snapshot shares it, so it is
// immutable.
type sourceView struct {
	source      string
	clock       int64 // nanoseconds; 0 if unknown
	interval    int64
	lastRead    int64 // nanoseconds since the Unix epoch
	lastSuccess int64 // 0 for never
	err         error
	samples     int // in the batch, rejected ones included
	verdicts    verdictIndex
	round       round
	history     historyView
}

// nodeView is all sources of one node, in the order of preference. It is immutable.
type nodeView struct {
	name    metric.NodeName
	sources []*sourceView
}

// snapshotGeneration counts snapshots. A part made in the present generation is in no
// Snapshot yet, and the writer changes it in place. An older part is shared with readers, and
// the writer copies it first. So a Write costs the same in a large cluster as in a small one,
// and each Snapshot makes later writes copy each part at most once.
type snapshotGeneration uint64

// nodeList is the sorted list of nodes. The copy in a Snapshot is immutable. The zero
// nodeList is empty.
type nodeList struct {
	names            []metric.NodeName
	chunks           []*nodeChunk       // all full but the last
	namesGeneration  snapshotGeneration // in which names was made
	chunksGeneration snapshotGeneration // in which chunks was made
}

// nodesPerChunk is about the square root of the number of nodes in a large cluster, so that
// copying a chunk and copying the list of chunks cost the same.
const nodesPerChunk = 64

// nodeChunk is a part of a nodeList.
type nodeChunk struct {
	generation snapshotGeneration
	nodes      [nodesPerChunk]*nodeView
}

// get returns the view of a node, or nil.
func (l *nodeList) get(name metric.NodeName) *nodeView {
	i, ok := slices.BinarySearch(l.names, name)
	if !ok {
		return nil
	}
	return l.at(i)
}

func (l *nodeList) at(i int) *nodeView { return l.chunks[i/nodesPerChunk].nodes[i%nodesPerChunk] }

// set adds n or replaces the node of its name.
func (l *nodeList) set(now snapshotGeneration, n *nodeView) {
	i, ok := slices.BinarySearch(l.names, n.name)
	if ok {
		l.ownChunk(now, i/nodesPerChunk).nodes[i%nodesPerChunk] = n
		return
	}
	// Slow path: a new node shifts the ones behind it.
	l.ownNames(now)
	l.names = slices.Insert(l.names, i, n.name)
	if len(l.names) > len(l.chunks)*nodesPerChunk {
		l.chunks = append(l.ownChunks(now), &nodeChunk{generation: now})
	}
	for at, from := i/nodesPerChunk, i%nodesPerChunk; at < len(l.chunks); at, from = at+1, 0 {
		c := l.ownChunk(now, at)
		last := c.nodes[nodesPerChunk-1]
		copy(c.nodes[from+1:], c.nodes[from:])
		c.nodes[from], n = n, last
	}
}

// remove removes a node.
func (l *nodeList) remove(now snapshotGeneration, name metric.NodeName) {
	i, ok := slices.BinarySearch(l.names, name)
	if !ok {
		return
	}
	l.ownNames(now)
	l.names = slices.Delete(l.names, i, i+1)
	for at, from := i/nodesPerChunk, i%nodesPerChunk; at < len(l.chunks); at, from = at+1, 0 {
		c := l.ownChunk(now, at)
		copy(c.nodes[from:], c.nodes[from+1:])
		c.nodes[nodesPerChunk-1] = nil
		if at+1 < len(l.chunks) {
			c.nodes[nodesPerChunk-1] = l.chunks[at+1].nodes[0]
		}
	}
	if last := len(l.chunks) - 1; len(l.names) <= last*nodesPerChunk {
		l.chunks[last] = nil
		l.chunks = l.chunks[:last]
	}
}

// ownChunk returns a chunk after copying it if a Snapshot shares it.
func (l *nodeList) ownChunk(now snapshotGeneration, at int) *nodeChunk {
	c := l.ownChunks(now)[at]
	if c.generation != now {
		c = &nodeChunk{generation: now, nodes: c.nodes}
		l.chunks[at] = c
	}
	return c
}

// ownChunks returns chunks after copying the slice if a Snapshot shares it.
func (l *nodeList) ownChunks(now snapshotGeneration) []*nodeChunk {
	if l.chunksGeneration != now {
		l.chunks, l.chunksGeneration = slices.Clone(l.chunks), now
	}
	return l.chunks
}

// ownNames copies names if a Snapshot shares the slice.
func (l *nodeList) ownNames(now snapshotGeneration) {
	if l.namesGeneration != now {
		l.names, l.namesGeneration = slices.Clone(l.names), now
	}
}

// nodesByPod finds the nodes that report a pod. The copy in a Snapshot is immutable. The zero
// nodesByPod is empty.
type nodesByPod struct {
	shards     *[podShards]*podShard
	generation snapshotGeneration // in which shards was made
}

// podShards keeps a shard at about a hundred pods in a large cluster.
const podShards = 1024

// podShard is the pods of one hash remainder, sorted by hash.
type podShard struct {
	generation snapshotGeneration
	pods       []podNodes
}

// podNodes is the sorted nodes that report a pod, nearly always one. Pods that were added
// together share the slice.
type podNodes struct {
	hash  uint32
	pod   *podIdentity
	nodes *[]metric.NodeName
}

// find returns the index of a pod, or where it would be inserted.
func (s *podShard) find(hash uint32, ref metric.PodRef) (int, bool) {
	if s == nil {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(s.pods, hash, func(h podNodes, hash uint32) int {
		if h.hash < hash {
			return -1
		}
		return 1 // so that the first of this hash is found
	})
	for ; i < len(s.pods) && s.pods[i].hash == hash; i++ {
		if s.pods[i].pod.PodRef == ref {
			return i, true
		}
	}
	return i, false
}

// nodesOf returns the nodes that report a pod, sorted. The slice must not be changed.
func (n nodesByPod) nodesOf(ref metric.PodRef) []metric.NodeName {
	if n.shards == nil {
		return nil
	}
	hash := hashPod(ref)
	s := n.shards[hash%podShards]
	if i, ok := s.find(hash, ref); ok {
		return *s.pods[i].nodes
	}
	return nil
}

// update records that node reports the pods come and no longer reports the pods gone.
func (n *nodesByPod) update(now snapshotGeneration, node metric.NodeName, come, gone []*podIdentity) {
	for _, pod := range gone {
		nodes := n.nodesOf(pod.PodRef)
		switch i, ok := slices.BinarySearch(nodes, node); {
		case !ok:
		case len(nodes) == 1:
			n.set(now, pod, nil)
		default:
			left := slices.Delete(slices.Clone(nodes), i, i+1)
			n.set(now, pod, &left)
		}
	}
	alone := &[]metric.NodeName{node}
	for _, pod := range come {
		nodes := n.nodesOf(pod.PodRef)
		switch i, ok := slices.BinarySearch(nodes, node); {
		case ok:
		case len(nodes) == 0:
			n.set(now, pod, alone)
		default:
			all := slices.Insert(slices.Clone(nodes), i, node)
			n.set(now, pod, &all)
		}
	}
}

// set replaces the nodes that report a pod; nil removes the pod.
func (n *nodesByPod) set(now snapshotGeneration, pod *podIdentity, nodes *[]metric.NodeName) {
	if n.shards == nil || n.generation != now {
		shards := new([podShards]*podShard)
		if n.shards != nil {
			*shards = *n.shards
		}
		n.shards, n.generation = shards, now
	}
	hash := hashPod(pod.PodRef)
	s := n.shards[hash%podShards]
	if s == nil || s.generation != now {
		mine := &podShard{generation: now}
		if s != nil {
			mine.pods = slices.Clone(s.pods)
		}
		s, n.shards[hash%podShards] = mine, mine
	}
	i, ok := s.find(hash, pod.PodRef)
	switch {
	case ok && nodes != nil:
		s.pods[i].nodes = nodes
	case ok:
		if s.pods = slices.Delete(s.pods, i, i+1); len(s.pods) == 0 {
			n.shards[hash%podShards] = nil
		}
	case nodes != nil:
		s.pods = slices.Insert(s.pods, i, podNodes{hash, pod, nodes})
	}
}

// hashPod returns the FNV-1a hash of a pod's namespace and name.
func hashPod(ref metric.PodRef) uint32 {
	h := uint32(2166136261)
	for i := range len(ref.Namespace) {
		h = (h ^ uint32(ref.Namespace[i])) * 16777619
	}
	for i := range len(ref.Name) {
		h = (h ^ uint32(ref.Name[i])) * 16777619
	}
	return h ^ h>>15
}
