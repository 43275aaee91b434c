package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// view is what one source last said of one node. As a part of a Snapshot it is
// immutable.
type view struct {
	source      string
	clock       int64 // nanoseconds; 0 if unknown
	interval    int64
	lastRead    int64 // nanoseconds since the Unix era
	lastSuccess int64 // 0 for never
	err         error
	samples     int // in the batch, those turned away included
	standings   standings
	rounds      []round // newest first; at least one
	past        past
}

// nodeView is what all sources say of one node, the preferred first. It is
// immutable.
type nodeView struct {
	name  metric.NodeName
	views []*view
}

// era counts snapshots. What the writer made since the last one was taken
// nobody reads yet, so that it may be changed in place; what is older is shared
// with readers and copied first. So a Write costs the same on a large cluster
// as on a small one, and only a snapshot that is taken makes the next writes
// copy, each part once.
type era uint64

// roster is the sorted list of nodes. As a part of a Snapshot it is immutable.
// The zero roster is empty.
type roster struct {
	names  []metric.NodeName
	chunks []*chunk // all full but the last
	named  era      // when names were made
	made   era      // chunks
}

// chunkNodes is about the root of the number of nodes of a large cluster.
const chunkNodes = 64

// chunk is a stretch of a roster.
type chunk struct {
	made  era
	nodes [chunkNodes]*nodeView
}

// get returns the view of a node, or nil.
func (r *roster) get(name metric.NodeName) *nodeView {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return nil
	}
	return r.at(i)
}

func (r *roster) at(i int) *nodeView { return r.chunks[i/chunkNodes].nodes[i%chunkNodes] }

// put puts n in the place of what was there of its name.
func (r *roster) put(now era, n *nodeView) {
	i, ok := slices.BinarySearch(r.names, n.name)
	if ok {
		r.own(now, i/chunkNodes).nodes[i%chunkNodes] = n
		return
	}
	// Slow path: a new node shifts those behind it.
	r.ownNames(now)
	r.names = slices.Insert(r.names, i, n.name)
	if len(r.names) > len(r.chunks)*chunkNodes {
		r.chunks = append(r.ownChunks(now), &chunk{made: now})
	}
	for at, from := i/chunkNodes, i%chunkNodes; at < len(r.chunks); at, from = at+1, 0 {
		c := r.own(now, at)
		last := c.nodes[chunkNodes-1]
		copy(c.nodes[from+1:], c.nodes[from:])
		c.nodes[from], n = n, last
	}
}

// remove takes a node out.
func (r *roster) remove(now era, name metric.NodeName) {
	i, ok := slices.BinarySearch(r.names, name)
	if !ok {
		return
	}
	r.ownNames(now)
	r.names = slices.Delete(r.names, i, i+1)
	for at, from := i/chunkNodes, i%chunkNodes; at < len(r.chunks); at, from = at+1, 0 {
		c := r.own(now, at)
		copy(c.nodes[from:], c.nodes[from+1:])
		c.nodes[chunkNodes-1] = nil
		if at+1 < len(r.chunks) {
			c.nodes[chunkNodes-1] = r.chunks[at+1].nodes[0]
		}
	}
	if last := len(r.chunks) - 1; len(r.names) <= last*chunkNodes {
		r.chunks[last] = nil
		r.chunks = r.chunks[:last]
	}
}

// own returns a chunk that no Snapshot has.
func (r *roster) own(now era, at int) *chunk {
	c := r.ownChunks(now)[at]
	if c.made != now {
		c = &chunk{made: now, nodes: c.nodes}
		r.chunks[at] = c
	}
	return c
}

// ownChunks makes chunks a slice that no Snapshot has, and returns it.
func (r *roster) ownChunks(now era) []*chunk {
	if r.made != now {
		r.chunks, r.made = slices.Clone(r.chunks), now
	}
	return r.chunks
}

// ownNames makes names a slice that no Snapshot has.
func (r *roster) ownNames(now era) {
	if r.named != now {
		r.names, r.named = slices.Clone(r.names), now
	}
}

// homes says which nodes report a pod. As a part of a Snapshot it is immutable.
// The zero homes is empty.
type homes struct {
	shards *[homeShards]*shard
	made   era // shards
}

// homeShards keeps a shard at some hundred pods in a large cluster.
const homeShards = 1024

// shard is some pods, sorted by their hashes.
type shard struct {
	made era
	pods []home
}

// home is the nodes that report a pod: hardly ever more than one, and then
// sorted. Pods that came together share the list.
type home struct {
	hash  uint32
	pod   *podKey
	nodes *[]metric.NodeName
}

// find returns where a pod is, or would be.
func (s *shard) find(hash uint32, ref metric.PodRef) (int, bool) {
	if s == nil {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(s.pods, hash, func(h home, hash uint32) int {
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

// of returns the nodes that report a pod, sorted. The slice must not be changed.
func (h homes) of(ref metric.PodRef) []metric.NodeName {
	if h.shards == nil {
		return nil
	}
	hash := hashOf(ref)
	s := h.shards[hash%homeShards]
	if i, ok := s.find(hash, ref); ok {
		return *s.pods[i].nodes
	}
	return nil
}

// move notes that node reports the pods come, and no longer those gone. Both may
// be empty.
func (h *homes) move(now era, node metric.NodeName, come, gone []*podKey) {
	for _, pod := range gone {
		nodes := h.of(pod.PodRef)
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
		nodes := h.of(pod.PodRef)
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
func (h *homes) set(now era, pod *podKey, nodes *[]metric.NodeName) {
	if h.shards == nil || h.made != now {
		shards := new([homeShards]*shard)
		if h.shards != nil {
			*shards = *h.shards
		}
		h.shards, h.made = shards, now
	}
	hash := hashOf(pod.PodRef)
	s := h.shards[hash%homeShards]
	if s == nil || s.made != now {
		mine := &shard{made: now}
		if s != nil {
			mine.pods = slices.Clone(s.pods)
		}
		s, h.shards[hash%homeShards] = mine, mine
	}
	i, ok := s.find(hash, pod.PodRef)
	switch {
	case ok && nodes != nil:
		s.pods[i].nodes = nodes
	case ok:
		if s.pods = slices.Delete(s.pods, i, i+1); len(s.pods) == 0 {
			h.shards[hash%homeShards] = nil
		}
	case nodes != nil:
		s.pods = slices.Insert(s.pods, i, home{hash, pod, nodes})
	}
}

func hashOf(ref metric.PodRef) uint32 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(ref.Namespace) {
		h = (h ^ uint32(ref.Namespace[i])) * 16777619
	}
	for i := range len(ref.Name) {
		h = (h ^ uint32(ref.Name[i])) * 16777619
	}
	return h ^ h>>15
}
