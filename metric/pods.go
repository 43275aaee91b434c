package metric

// Pods is what facts say of the pods of a Layout: looked up once, and kept from
// batch to batch of one source for as long as it cannot have changed. The zero
// Pods is ready to use. It is not safe for concurrent use, and a batch no longer
// reads it once it is shared. It keeps pods, but no Facts, alive.
type Pods struct {
	layout *Layout
	// on is facts.PodsOn(node), the same slice for as long as none of the node's
	// pods changes. That vouches for each pod in of that is bound to the node.
	node NodeName
	on   []*PodFacts
	of   []*PodFacts // by index of layout.Entities
	// loose are the entries that on does not vouch for: not found, or bound to
	// another node, or to none. They may change with any change of the facts.
	loose []int32
}

// ResolvePods finds what facts say of the pods of all b's samples, with the help
// of what p has kept, for PodOf to answer from. Without a Layout there is nothing
// to keep, and PodOf looks each up.
func (b *Batch) ResolvePods(facts *Facts, p *Pods) {
	b.pods, b.resolved = nil, nil
	if facts == nil || b.Layout == nil || len(b.Samples) < len(b.Layout.Entities) {
		return
	}
	b.pods, b.resolved = p, facts
	on := facts.PodsOn(b.Node)
	kept := p.layout == b.Layout && p.node == b.Node && sameSlice(p.on, on)
	p.layout, p.node, p.on = b.Layout, b.Node, on
	if !kept {
		p.afresh(facts)
		return
	}
	for _, i := range p.loose {
		// One that is found now is not of the node's: those have not changed.
		p.of[i] = facts.Pod(p.layout.Entities[i].PodRef())
	}
}

// afresh looks every pod up. Samples of one pod are often next to each other.
func (p *Pods) afresh(facts *Facts) {
	entities := p.layout.Entities
	if cap(p.of) < len(entities) {
		p.of = make([]*PodFacts, len(entities))
	}
	p.of, p.loose = p.of[:len(entities)], nil // before the facts come all are loose, and none later
	var ref PodRef
	var pod *PodFacts
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
			p.loose = append(p.loose, int32(i))
		}
	}
}

// sameSlice reports whether two slices are one.
func sameSlice(a, b []*PodFacts) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// PodOf returns what facts say of the pod that sample i is of or in; nil if it is of
// none, or of one that they do not know.
func (b *Batch) PodOf(facts *Facts, i int) *PodFacts {
	if p := b.pods; p != nil && b.resolved == facts && p.layout == b.Layout && i < len(p.of) {
		return p.of[i]
	}
	return b.lookUp(facts, i)
}

func (b *Batch) lookUp(facts *Facts, i int) *PodFacts {
	e := &b.Samples[i].Entity
	if e.Pod == "" {
		return nil
	}
	return facts.Pod(e.PodRef())
}
