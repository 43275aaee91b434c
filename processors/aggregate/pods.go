package aggregate

import (
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// pod is what a round knows of a pod, in memory that is used again the next.
type pod struct {
	slot     uint32
	entity   *metric.Entity
	current  *cluster.Pod // what the API server says by this name; nil if it was not asked
	facts    *cluster.Pod // nil if the API server does not know it
	otherPod *cluster.Pod // what it knows by this name on this node instead
	round    uint32       // when it was met last

	own     int32   // index of the pod's own sample, or none
	members []int32 // the indexes of its containers' samples that were not rejected

	// reported is when each container was last reported. It is kept only while
	// the API server does not say what the pod consists of.
	reported []report

	// The outcome: Measured, or why it is not served; Unjudged if nothing of
	// this pod is for this step to say.
	reason metric.Reason
}

const none = -1

// rejectedContainer is a container of which a sample was rejected.
type rejectedContainer struct {
	name   string
	reason metric.Reason
}

// report says in which read a container was last reported.
type report struct {
	name string
	read uint32
}

// member returns the index in b of the sample of a container that was not rejected,
// or none.
func (p *pod) member(b *metric.Batch, name string) int32 {
	for _, i := range p.members {
		if b.Samples[i].Entity.Name == name {
			return i
		}
	}
	return none
}

// container returns the entity of a container of p.
func (p *pod) container(name string) *metric.Entity {
	return &metric.Entity{Kind: metric.Container, Node: p.entity.Node, Namespace: p.entity.Namespace, Pod: p.entity.Pod, Name: name}
}

// wasRejected reports whether a sample of that container of p was rejected.
func (a *Aggregator) wasRejected(p *pod, name string) bool {
	return slices.ContainsFunc(a.rejected[p], func(t rejectedContainer) bool { return t.name == name })
}

// gather sorts the samples of b by pod.
func (a *Aggregator) gather(b *metric.Batch) {
	a.currentPods, a.rejected = a.currentPods[:0], nil
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Part != "" || s.Entity.Kind != metric.Pod && s.Entity.Kind != metric.Container {
			continue
		}
		p := a.podAt(b.Slots.PodOf(s.Slot))
		a.addCurrent(p, b)
		switch {
		case s.Entity.Kind == metric.Pod:
			if !s.Rejected() {
				p.own = int32(i)
			}
		case s.Rejected():
			if a.rejected == nil {
				a.rejected = map[*pod][]rejectedContainer{}
			}
			a.rejected[p] = append(a.rejected[p], rejectedContainer{s.Entity.Name, s.Reasons[metric.CPU]})
		default:
			p.add(b, int32(i))
			for _, g := range wholeGroups {
				a.gives[g] = a.gives[g] || s.Times[g] != 0
			}
		}
	}
}

// add makes the sample at index i a member. Identity leaves one sample for each
// container; should there be two, counting both would be worse than either, so
// the later start stands whatever their order.
func (p *pod) add(b *metric.Batch, i int32) {
	s := &b.Samples[i]
	for m, at := range p.members {
		if other := &b.Samples[at]; other.Entity.Name == s.Entity.Name {
			if later(&s.Instance, &other.Instance) {
				p.members[m] = i
			}
			return
		}
	}
	if p.members == nil {
		p.members = make([]int32, 0, 2) // most have no more
	}
	p.members = append(p.members, i)
}

func later(a, b *metric.Instance) bool {
	if a.Start != b.Start {
		return a.Start > b.Start
	}
	if a.ID != b.ID {
		return a.ID > b.ID
	}
	return a.Path > b.Path
}

// podAt returns what is kept of the pod of a slot.
func (a *Aggregator) podAt(slot uint32) *pod {
	if n := int(slot) + 1 - len(a.pods); n > 0 {
		a.pods = append(a.pods, make([]*pod, n)...)
	}
	p := a.pods[slot]
	if p == nil {
		p = &pod{slot: slot}
		a.pods[slot] = p
		a.known++
	}
	return p
}

// addCurrent readies p for this round.
func (a *Aggregator) addCurrent(p *pod, b *metric.Batch) {
	if p.round == a.round {
		return
	}
	b.Slots.Keep(p.slot)
	p.round, p.entity = a.round, b.Slots.Entity(p.slot)
	p.current, p.facts, p.otherPod, p.own, p.reason = nil, nil, nil, none, metric.Unjudged
	p.members = p.members[:0]
	a.currentPods = append(a.currentPods, p)
}

// expect adds the pods that should be there although the batch does not speak of
// them, and lets each know its facts.
func (a *Aggregator) expect(facts *cluster.Facts, b *metric.Batch) {
	if b.Node != "" {
		a.expectBound(facts, b)
	}
	if a.known > len(a.currentPods) {
		a.expectReported(facts, b)
	}
	for _, p := range a.currentPods {
		if p.current == nil {
			p.current = facts.Pod(p.entity.PodRef())
		}
		switch f := p.current; {
		case f == nil || f.Node != p.entity.Node:
		case p.isOf(f, b):
			p.facts = f
			p.reported = nil
		default:
			p.otherPod = f
		}
	}
}

// expectBound adds the pods that are bound to the node.
func (a *Aggregator) expectBound(facts *cluster.Facts, b *metric.Batch) {
	e := metric.Entity{Kind: metric.Pod, Node: b.Node}
	for _, f := range facts.PodsOn(b.Node) {
		e.Namespace, e.Pod = f.Namespace, f.Name
		p := a.podAt(b.Slots.SlotOf(&e))
		a.addCurrent(p, b)
		p.current = f
	}
}

// isOf reports whether f is about the pod that was reported, and not about one
// of that name before or after it.
func (p *pod) isOf(f *cluster.Pod, b *metric.Batch) bool {
	for _, m := range p.members {
		if uid := b.Samples[m].Instance.UID; uid != "" && !f.HasUID(uid) {
			return false
		}
	}
	return true
}

// expectReported adds the pods that only their node knows, and that it reported
// in the read before; it forgets those that are gone.
func (a *Aggregator) expectReported(facts *cluster.Facts, b *metric.Batch) {
	a.unmetPods = a.unmetPods[:0]
	for slot, p := range a.pods {
		switch {
		case p == nil || p.round == a.round:
		case facts != nil && facts.Synced, !slices.ContainsFunc(p.reported, func(r report) bool { return a.expects(r, b) }):
			a.pods[slot] = nil
			a.known--
		default:
			a.unmetPods = append(a.unmetPods, p)
		}
	}
	slices.SortFunc(a.unmetPods, func(p, q *pod) int { return p.entity.Compare(*q.entity) })
	for _, p := range a.unmetPods {
		a.addCurrent(p, b)
	}
}

// expects reports whether a container that its node reported, and that this
// batch does not hold, should be there: the read before had it. A source that
// sees everything is believed at once when it no longer reports it.
func (a *Aggregator) expects(r report, b *metric.Batch) bool {
	if b.Err == nil && b.Exhaustive {
		return false
	}
	return a.reads-r.read <= 1
}

// remember notes which containers the node reported in this read.
func (a *Aggregator) remember(p *pod, b *metric.Batch) {
	p.reported = slices.DeleteFunc(p.reported, func(r report) bool { return !a.expects(r, b) && p.member(b, r.name) == none })
	for _, m := range p.members {
		if b.Samples[m].LastKnown != 0 {
			continue // it repeats an earlier report
		}
		name := b.Samples[m].Entity.Name
		i := slices.IndexFunc(p.reported, func(r report) bool { return r.name == name })
		if i < 0 {
			p.reported = append(p.reported, report{name, a.reads})
		} else {
			p.reported[i].read = a.reads
		}
	}
}
