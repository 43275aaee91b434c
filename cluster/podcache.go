package cluster

import "github.com/weir-metrics/weir/metric"

// PodCache keeps what Facts say of the pods of one source's batches from batch to
// batch, and looks up only what may have changed. The zero PodCache is ready to use.
// It is not safe for concurrent use, and a batch no longer reads it once it is shared. It keeps pods alive, and no Facts.
type PodCache struct {
	generation uint64 // of the facts resolved last

	layout *metric.Layout
	// While the generation of the node's pods is this one, every pod in of that is bound
	// to the node is current.
	node   metric.NodeName
	onNode uint64
	of     []*Pod // by index of layout.Entities
	// unbound are the entries that onNode says nothing of: unknown pods, and pods bound
	// to another node or to none. They may change with any change of the facts.
	unbound []int32
}

// Resolve finds what facts say of the pods of all b's samples, for Facts.PodOf to
// answer from. Without a Layout nothing can be kept, and PodOf looks each pod up.
func (p *PodCache) Resolve(facts *Facts, b *metric.Batch) {
	b.PodCache = nil
	if facts == nil || b.Layout == nil || len(b.Samples) < len(b.Layout.Entities) {
		return
	}
	b.PodCache, p.generation = p, facts.generation
	onNode := facts.PodsGeneration(b.Node)
	kept := p.layout == b.Layout && p.node == b.Node && p.onNode == onNode
	p.layout, p.node, p.onNode = b.Layout, b.Node, onNode
	if !kept {
		p.lookUpAll(facts)
		return
	}
	for _, i := range p.unbound {
		// One that is found now is not of the node's: those have not changed.
		p.of[i] = facts.Pod(p.layout.Entities[i].PodRef())
	}
}

// lookUpAll looks every pod up. Samples of one pod are often next to each other.
func (p *PodCache) lookUpAll(facts *Facts) {
	entities := p.layout.Entities
	if cap(p.of) < len(entities) {
		p.of = make([]*Pod, len(entities))
	}
	p.of, p.unbound = p.of[:len(entities)], nil // before the facts come all are unbound, and none later
	var ref metric.PodRef
	var pod *Pod
	for i := range entities {
		e := &entities[i]
		p.of[i] = nil
		if e.Pod == "" {
			continue
		}
		if e.Pod != ref.Name || e.Namespace != ref.Namespace {
			ref = e.PodRef()
			pod = facts.Pod(ref)
		}
		p.of[i] = pod
		if pod == nil || p.node == "" || pod.Node != p.node {
			p.unbound = append(p.unbound, int32(i))
		}
	}
}

// PodOf returns the pod that sample i of b is of or in; nil if it is of none, or of one
// that f does not know.
func (f *Facts) PodOf(b *metric.Batch, i int) *Pod {
	if p, ok := b.PodCache.(*PodCache); ok && f != nil && p.generation == f.generation && p.layout == b.Layout && i < len(p.of) {
		return p.of[i]
	}
	e := &b.Samples[i].Entity
	if e.Pod == "" {
		return nil
	}
	return f.Pod(e.PodRef())
}
