package aggregate

import (
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// pod is the state of one pod in a round. Its memory is used again in the next round.
type pod struct {
	slot     uint32
	entity   *metric.Entity
	current  *cluster.Pod // the pod of this name by the API server; nil before it is looked up
	facts    *cluster.Pod // current, if it is the pod that was reported; else nil
	otherPod *cluster.Pod // current, if it is another pod of the same name on this node; else nil
	round    uint32       // the last round that had it

	own     int32   // index of the pod's own sample, or none
	members []int32 // the indexes of its containers' samples, without rejected ones

	// reported holds when each container was last reported. It is kept only while the API server
	// does not know the pod.
	reported []report

	// reason is the result: Measured, or why the pod is not served; Unjudged if this step does
	// not decide it.
	reason metric.Reason
}

const none = -1

// rejectedContainer is a container with a rejected sample.
type rejectedContainer struct {
	name   string
	reason metric.Reason
}

// report says in which read a container was last reported.
type report struct {
	name string
	read uint32
}

// member returns the index in b of the sample of a container that was not rejected, or none.
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

// wasRejected reports whether a sample of this container of p was rejected.
func (a *Aggregator) wasRejected(p *pod, name string) bool {
	return slices.ContainsFunc(a.rejected[p], func(t rejectedContainer) bool { return t.name == name })
}

// gather groups the samples of b by pod.
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
				a.supplied[g] = a.supplied[g] || s.Times[g] != 0
			}
		}
	}
}

// add adds the sample at index i to the members. Identity leaves one sample for each container.
// If there are two, only the one that started later counts, whatever their order.
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
		p.members = make([]int32, 0, 2) // most pods have at most two
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

// podAt returns the pod of a slot. It makes one if there is none.
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

// addCurrent prepares p for this round.
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

// expect adds the pods that should be in the batch and are not, and sets the facts of all pods.
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

// expectBound adds the pods that the API server binds to the node.
func (a *Aggregator) expectBound(facts *cluster.Facts, b *metric.Batch) {
	e := metric.Entity{Kind: metric.Pod, Node: b.Node}
	for _, f := range facts.PodsOn(b.Node) {
		e.Namespace, e.Pod = f.Namespace, f.Name
		p := a.podAt(b.Slots.SlotOf(&e))
		a.addCurrent(p, b)
		p.current = f
	}
}

// isOf reports whether f is the pod that was reported, and not an earlier or later one of the
// same name.
func (p *pod) isOf(f *cluster.Pod, b *metric.Batch) bool {
	for _, m := range p.members {
		if uid := b.Samples[m].Instance.UID; uid != "" && !f.HasUID(uid) {
			return false
		}
	}
	return true
}

// expectReported adds the pods that only the node knows and that it reported in the previous
// read. It forgets those that are gone.
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

// expects reports whether a container that this batch does not have should be there: the
// previous read had it. If the source sees everything, it is gone at once.
func (a *Aggregator) expects(r report, b *metric.Batch) bool {
	if b.Err == nil && b.Exhaustive {
		return false
	}
	return a.reads-r.read <= 1
}

// remember records which containers the node reported in this read.
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
