package cluster

import "github.com/weir-metrics/weir/metric"

// PodCache keeps the pods of one source's batches from batch to batch, and looks up only those
// that may have changed. The zero PodCache is ready to use. It is not safe for concurrent use.
// A batch that is shared no longer reads it. It keeps pods in memory, but no Facts.
type PodCache struct {
	generation     uint64 // of the facts of the last Resolve
	slotGeneration uint64 // of the slots of the last Resolve
	// While this is the generation of the node's pods, each entry of pods with a pod on the
	// node is valid.
	node   metric.NodeName
	onNode uint64
	pods   []*Pod // by slot
	// unbound are the slots of unknown pods, and of pods bound to another node or to none. They
	// may change with any change of the facts, which onNode does not show.
	unbound []uint32
}

// Resolve looks up the pods of all samples of b, for Facts.PodOf. If b has no slots, it keeps
// nothing, and PodOf looks up each pod.
func (p *PodCache) Resolve(facts *Facts, b *metric.Batch) {
	b.PodCache = nil
	if facts == nil || b.Slots == nil {
		return
	}
	b.PodCache, p.generation = p, facts.generation
	slotGeneration, onNode := b.Slots.Generation(), facts.PodsGeneration(b.Node)
	kept := p.slotGeneration == slotGeneration && p.node == b.Node && p.onNode == onNode
	p.slotGeneration, p.node, p.onNode = slotGeneration, b.Node, onNode
	if !kept {
		p.lookUpAll(facts, b.Slots)
		return
	}
	for _, s := range p.unbound {
		// A pod that is found now is not bound to the node: the node's pods have not changed.
		if e := b.Slots.Entity(s); e != nil {
			p.pods[s] = facts.Pod(e.PodRef())
		}
	}
}

func (p *PodCache) lookUpAll(facts *Facts, slots *metric.SlotTable) {
	n := slots.Len()
	if cap(p.pods) < n {
		p.pods = make([]*Pod, n)
	}
	p.pods, p.unbound = p.pods[:n], nil // frees memory: before the first facts all slots are unbound, later few
	for s := range uint32(n) {
		p.pods[s] = nil
		if e := slots.Entity(s); e != nil && slots.PodOf(s) == s {
			p.pods[s] = facts.Pod(e.PodRef())
		}
	}
	for s := range uint32(n) {
		own := slots.PodOf(s)
		if own == 0 || slots.Entity(s).Pod == "" {
			continue
		}
		pod := p.pods[own]
		p.pods[s] = pod
		if pod == nil || p.node == "" || pod.Node != p.node {
			p.unbound = append(p.unbound, s)
		}
	}
}

// PodOf returns the pod that sample i of b is or belongs to; nil if there is none, or if f does
// not know it.
func (f *Facts) PodOf(b *metric.Batch, i int) *Pod {
	s := &b.Samples[i]
	if p, ok := b.PodCache.(*PodCache); ok && f != nil && s.Slot != 0 && p.generation == f.generation && p.slotGeneration == b.Slots.Generation() {
		return p.pods[s.Slot]
	}
	if s.Entity.Pod == "" {
		return nil
	}
	return f.Pod(s.Entity.PodRef())
}
