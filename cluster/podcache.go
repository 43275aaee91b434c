package cluster

import "github.com/weir-metrics/weir/metric"

// PodCache keeps what Facts say of the pods of one source's batches from batch to
// batch, and looks up only what may have changed. The zero PodCache is ready to use.
// It is not safe for concurrent use, and a batch no longer reads it once it is shared. It keeps pods alive, and no Facts.
type PodCache struct {
	generation     uint64 // of the facts resolved last
	slotGeneration uint64 // of the slots then
	// While the generation of the node's pods is this one, every pod in of that is bound
	// to the node is current.
	node   metric.NodeName
	onNode uint64
	of     []*Pod // by slot
	// unbound are the slots that onNode says nothing of: those of unknown pods, and of pods
	// bound to another node or to none. They may change with any change of the facts.
	unbound []uint32
}

// Resolve finds what facts say of the pods of all b's samples, for Facts.PodOf to
// answer from. Without slots nothing can be kept, and PodOf looks each pod up.
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
		// One that is found now is not of the node's: those have not changed.
		if e := b.Slots.Entity(s); e != nil {
			p.of[s] = facts.Pod(e.PodRef())
		}
	}
}

// lookUpAll looks every pod up.
func (p *PodCache) lookUpAll(facts *Facts, slots *metric.SlotTable) {
	n := slots.Len()
	if cap(p.of) < n {
		p.of = make([]*Pod, n)
	}
	p.of, p.unbound = p.of[:n], nil // before the facts come all are unbound, and none later
	for s := range uint32(n) {
		p.of[s] = nil
		if e := slots.Entity(s); e != nil && slots.PodOf(s) == s {
			p.of[s] = facts.Pod(e.PodRef())
		}
	}
	for s := range uint32(n) {
		own := slots.PodOf(s)
		if own == 0 || slots.Entity(s).Pod == "" {
			continue
		}
		pod := p.of[own]
		p.of[s] = pod
		if pod == nil || p.node == "" || pod.Node != p.node {
			p.unbound = append(p.unbound, s)
		}
	}
}

// PodOf returns the pod that sample i of b is of or in; nil if it is of none, or of one
// that f does not know.
func (f *Facts) PodOf(b *metric.Batch, i int) *Pod {
	s := &b.Samples[i]
	if p, ok := b.PodCache.(*PodCache); ok && f != nil && s.Slot != 0 && p.generation == f.generation && p.slotGeneration == b.Slots.Generation() {
		return p.of[s.Slot]
	}
	if s.Entity.Pod == "" {
		return nil
	}
	return f.Pod(s.Entity.PodRef())
}
