package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// sourceView is what one source last said of one node. As a part of a Snapshot it is
// immutable.
type sourceView struct {
	source      string
	clock       int64 // nanoseconds; 0 if unknown
	interval    int64
	lastRead    int64 // nanoseconds since the Unix era
	lastSuccess int64 // 0 for never
	err         error
	samples     int // in the batch, those turned away included
	verdicts    verdictIndex
	rounds      []round // newest first; at least one
	history     historyView
}

// nodeView is what all sources say of one node, the preferred first. It is
// immutable.
type nodeView struct {
	name    metric.NodeName
	sources []*sourceView
}

// snapshotGeneration counts snapshots. What the writer made since the last one was taken
// nobody reads yet, so that it may be changed in place; what is older is shared
// with readers and copied first. So a Write costs the same on a large cluster
// as on a small one, and only a snapshot that is taken makes the next writes
// copy, each part once.
type snapshotGeneration uint64

// nodeList is the sorted list of nodes. As a part of a Snapshot it is immutable.
// The zero roster is empty.
type nodeList struct {
	names            []metric.NodeName
	chunks           []*nodeChunk       // all full but the last
	namesGeneration  snapshotGeneration // when names were made
	chunksGeneration snapshotGeneration // chunks
}

// nodesPerChunk is about the root of the number of nodes of a large cluster.
const nodesPerChunk = 64

// nodeChunk is a stretch of a roster.
type nodeChunk struct {
	generation snapshotGeneration
	nodes      [nodesPerChunk]*nodeView
}

// get returns the view of a node, or nil.
func (r *nodeList) get(name metric.NodeName) *nodeView {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return nil
	}
	return r.at(i)
}

func (r *nodeList) at(i int) *nodeView { return r.chunks[i/nodesPerChunk].nodes[i%nodesPerChunk] }

// set puts n in the place of what was there of its name.
func (r *nodeList) set(now snapshotGeneration, n *nodeView) {
	i, ok := slices.BinarySearch(r.names, n.name)
	if ok {
		r.ownChunk(now, i/nodesPerChunk).nodes[i%nodesPerChunk] = n
		return
	}
	// Slow path: a new node shifts those behind it.
	r.ownNames(now)
	r.names = slices.Insert(r.names, i, n.name)
	if len(r.names) > len(r.chunks)*nodesPerChunk {
		r.chunks = append(r.ownChunks(now), &nodeChunk{generation: now})
	}
	for at, from := i/nodesPerChunk, i%nodesPerChunk; at < len(r.chunks); at, from = at+1, 0 {
		c := r.ownChunk(now, at)
		last := c.nodes[nodesPerChunk-1]
		copy(c.nodes[from+1:], c.nodes[from:])
		c.nodes[from], n = n, last
	}
}

// remove takes a node out.
func (r *nodeList) remove(now snapshotGeneration, name metric.NodeName) {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return
	}
	r.ownNames(now)
	r.names = slices.Delete(r.names, i, i+1)
	for at, from := i/nodesPerChunk, i%nodesPerChunk; at < len(r.chunks); at, from = at+1, 0 {
		c := r.ownChunk(now, at)
		copy(c.nodes[from:], c.nodes[from+1:])
		c.nodes[nodesPerChunk-1] = nil
		if at+1 < len(r.chunks) {
			c.nodes[nodesPerChunk-1] = r.chunks[at+1].nodes[0]
		}
	}
	if last := len(r.chunks) - 1; len(r.names) <= last*nodesPerChunk {
		r.chunks[last] = nil
		r.chunks = r.chunks[:last]
	}
}

// ownChunk returns a chunk that no Snapshot has.
func (r *nodeList) ownChunk(now snapshotGeneration, at int) *nodeChunk {
	c := r.ownChunks(now)[at]
	if c.generation != now {
		c = &nodeChunk{generation: now, nodes: c.nodes}
		r.chunks[at] = c
	}
	return c
}

// ownChunks makes chunks a slice that no Snapshot has, and returns it.
func (r *nodeList) ownChunks(now snapshotGeneration) []*nodeChunk {
	if r.chunksGeneration != now {
		r.chunks, r.chunksGeneration = slices.Clone(r.chunks), now
	}
	return r.chunks
}

// ownNames makes names a slice that no Snapshot has.
func (r *nodeList) ownNames(now snapshotGeneration) {
	if r.namesGeneration != now {
		r.names, r.namesGeneration = slices.Clone(r.names), now
	}
}

// nodesByPod says which nodes report a pod. As a part of a Snapshot it is immutable.
// The zero homes is empty.
type nodesByPod struct {
	shards     *[podShards]*podShard
	generation snapshotGeneration // shards
}

// podShards keeps a shard at some hundred pods in a large cluster.
const podShards = 1024

// podShard is some pods, sorted by their hashes.
type podShard struct {
	generation snapshotGeneration
	pods       []podNodes
}

// podNodes is the nodes that report a pod: hardly ever more than one, and then
// sorted. Pods that came together share the list.
type podNodes struct {
	hash  uint32
	pod   *podIdentity
	nodes *[]metric.NodeName
}

// find returns where a pod is, or would be.
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
func (h nodesByPod) nodesOf(ref metric.PodRef) []metric.NodeName {
	if h.shards == nil {
		return nil
	}
	hash := hashPod(ref)
	s := h.shards[hash%podShards]
	if i, ok := s.find(hash, ref); ok {
		return *s.pods[i].nodes
	}
	return nil
}

// update notes that node reports the pods come, and no longer those gone. Both may
// be empty.
func (h *nodesByPod) update(now snapshotGeneration, node metric.NodeName, come, gone []*podIdentity) {
	for _, pod := range gone {
		nodes := h.nodesOf(pod.PodRef)
		switch i, ok := slices.BinarySearch(nodes, node); {
		case !ok:
		case len(nodes) == 1:
			h.set(now, pod, nil)
		default:
			left := slices.Delete(slices.Clone(nodes), i, i+1)
			h.set(now, pod, &left)
		}
	}
	alone := &[]metric.NodeName{node}
	for _, pod := range come {
		nodes := h.nodesOf(pod.PodRef)
		switch i, ok := slices.BinarySearch(nodes, node); {
		case ok:
		case len(nodes) == 0:
			h.set(now, pod, alone)
		default:
			all := slices.Insert(slices.Clone(nodes), i, node)
			h.set(now, pod, &all)
		}
	}
}

// set makes nodes those that report a pod; nil for none.
func (h *nodesByPod) set(now snapshotGeneration, pod *podIdentity, nodes *[]metric.NodeName) {
	if h.shards == nil || h.generation != now {
		shards := new([podShards]*podShard)
		if h.shards != nil {
			*shards = *h.shards
		}
		h.shards, h.generation = shards, now
	}
	hash := hashPod(pod.PodRef)
	s := h.shards[hash%podShards]
	if s == nil || s.generation != now {
		mine := &podShard{generation: now}
		if s != nil {
			mine.pods = slices.Clone(s.pods)
		}
		s, h.shards[hash%podShards] = mine, mine
	}
	i, ok := s.find(hash, pod.PodRef)
	switch {
	case ok && nodes != nil:
		s.pods[i].nodes = nodes
	case ok:
		if s.pods = slices.Delete(s.pods, i, i+1); len(s.pods) == 0 {
			h.shards[hash%podShards] = nil
		}
	case nodes != nil:
		s.pods = slices.Insert(s.pods, i, podNodes{hash, pod, nodes})
	}
}

func hashPod(ref metric.PodRef) uint32 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(ref.Namespace) {
		h = (h ^ uint32(ref.Namespace[i])) * 16777619
	}
	for i := range len(ref.Name) {
		h = (h ^ uint32(ref.Name[i])) * 16777619
	}
	return h ^ h>>15
}
