package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

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
