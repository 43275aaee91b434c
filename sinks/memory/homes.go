package memory

import (
	"maps"
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// homes says which nodes report a pod. It is immutable; a change copies the
// shards it touches. A nil *homes is empty.
type homes struct {
	shards [homeShards]map[metric.PodRef]home
}

// home is the node that reports a pod, and, for hardly any, the others.
type home struct {
	node   metric.NodeName
	others *[]metric.NodeName // sorted, and after node
}

// homeShards keeps a shard at some hundred pods in a large cluster.
const homeShards = 1024

// of returns the nodes that report a pod, sorted.
func (h *homes) of(ref metric.PodRef) []metric.NodeName {
	if h == nil {
		return nil
	}
	at, ok := h.shards[shardOf(ref)][ref]
	switch {
	case !ok:
		return nil
	case at.others == nil:
		return []metric.NodeName{at.node}
	}
	return append([]metric.NodeName{at.node}, *at.others...)
}

// one returns the node of a pod that only one node reports.
func (h *homes) one(ref metric.PodRef) (metric.NodeName, bool) {
	if h == nil {
		return "", false
	}
	at, ok := h.shards[shardOf(ref)][ref]
	return at.node, ok && at.others == nil
}

// moved returns homes in which node reports the pods come, and no longer those
// gone. Both may be empty.
func (h *homes) moved(node metric.NodeName, come, gone []metric.PodRef) *homes {
	if len(come)+len(gone) == 0 {
		return h
	}
	next := new(homes)
	if h != nil {
		*next = *h
	}
	copied := map[int]bool{}
	set := func(ref metric.PodRef, nodes []metric.NodeName) {
		i := shardOf(ref)
		if !copied[i] || next.shards[i] == nil {
			copied[i] = true
			if next.shards[i] = maps.Clone(next.shards[i]); next.shards[i] == nil {
				next.shards[i] = map[metric.PodRef]home{}
			}
		}
		switch len(nodes) {
		case 0:
			if delete(next.shards[i], ref); len(next.shards[i]) == 0 {
				next.shards[i] = nil // a map keeps the room of what was deleted
			}
		case 1:
			next.shards[i][ref] = home{node: nodes[0]}
		default:
			others := slices.Clone(nodes[1:])
			next.shards[i][ref] = home{nodes[0], &others}
		}
	}
	for _, ref := range gone {
		nodes := next.of(ref)
		if i, ok := slices.BinarySearch(nodes, node); ok {
			set(ref, slices.Delete(nodes, i, i+1))
		}
	}
	for _, ref := range come {
		nodes := next.of(ref)
		if i, ok := slices.BinarySearch(nodes, node); !ok {
			set(ref, slices.Insert(nodes, i, node))
		}
	}
	return next
}

func shardOf(ref metric.PodRef) int {
	h := uint32(2166136261) // FNV-1a
	for i := range len(ref.Namespace) {
		h = (h ^ uint32(ref.Namespace[i])) * 16777619
	}
	for i := range len(ref.Name) {
		h = (h ^ uint32(ref.Name[i])) * 16777619
	}
	return int((h ^ h>>15) % homeShards)
}
