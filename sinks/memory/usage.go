package memory

import (
	rule "github.com/weir-metrics/weir/cluster/served"
	"github.com/weir-metrics/weir/metric"
)

// EachUse calls do for every pod that was measured whole, with those of its containers
// that were, by node and, on each, by namespace and name, until do returns false. It
// says what Each says, by the rule of package served, and decodes no more than that
// rule needs: a LIST of a large cluster is this. u is good until do returns.
func (s *Snapshot) EachUse(do func(u *rule.PodUse) bool) {
	var (
		u    rule.PodUse
		rd   reader
		refs []metric.PodRef
	)
	for i := range s.nodes.names {
		n := s.nodes.at(i)
		if len(n.views) == 1 {
			// Fast path: one source, whose pods and containers lie in one order.
			r := &n.views[0].rounds[0]
			at := r.dir.kinds[metric.Container]
			for pod := r.dir.kinds[metric.Pod]; pod < r.dir.kinds[metric.Pod+1]; pod++ {
				var ok bool
				if at, ok = r.podUse(pod, at, &u); ok && (len(s.places) == 0 || s.on(n, *u.PodRef)) && !do(&u) {
					return
				}
			}
			continue
		}
		refs = refs[:0]
		n.each(func(d *directory) (from, to int) { return d.kinds[metric.Pod], d.kinds[metric.Pod+1] }, &rd, func(p *metric.Sample) bool {
			if p.Entity.Part == "" {
				refs = append(refs, p.Entity.PodRef())
			}
			return true
		})
		for i, ref := range refs {
			if !s.on(n, ref) || !n.mergedUse(ref, &rd, &u) {
				continue
			}
			if u.Place = i; !do(&u) {
				return
			}
		}
	}
}

// Use makes u what EachUse says of one pod, in the memory that u has. It reports
// whether EachUse says anything.
func (s *Snapshot) Use(ref metric.PodRef, u *rule.PodUse) bool {
	n := s.nodes.get(s.nodeOf(metric.Entity{Kind: metric.Pod, Namespace: ref.Namespace, Pod: ref.Name}))
	switch {
	case n == nil:
		return false
	case len(n.views) > 1:
		return n.mergedUse(ref, &reader{}, u)
	}
	r := &n.views[0].rounds[0]
	pod, end := r.dir.ofPod(metric.Pod, ref)
	at, _ := r.dir.ofPod(metric.Container, ref)
	ok := false
	for ; pod < end && !ok; pod++ { // and the pod's parts
		_, ok = r.podUse(pod, at, u)
	}
	return ok
}

// NodeUse returns what a node uses and over which time. ok is whether it was measured
// whole.
func (s *Snapshot) NodeUse(name metric.NodeName) (u rule.Use, over rule.Span, ok bool) {
	n := s.nodes.get(name)
	if n == nil {
		return u, over, false
	}
	e := metric.Entity{Kind: metric.Node, Node: name}
	if len(n.views) == 1 {
		r := &n.views[0].rounds[0]
		i, ok := r.dir.find(&e)
		if !ok {
			return u, over, false
		}
		return r.use(i)
	}
	var rd reader
	if !n.find(&e, &rd) {
		return u, over, false
	}
	return rule.UseOf(&rd.out)
}

// on reports whether n is where a pod is settled to be.
func (s *Snapshot) on(n *nodeView, ref metric.PodRef) bool {
	p, contested := s.places[ref]
	return !contested || p.winner == n.name
}

// mergedUse makes u what the sources of n together say of one pod, and reports whether
// it was measured whole.
func (n *nodeView) mergedUse(ref metric.PodRef, rd *reader, u *rule.PodUse) bool {
	var uid metric.PodUID
	*u = rule.PodUse{PodRef: &ref, UID: &uid, Node: n.name, Uses: u.Uses[:0]}
	whole, kind := false, metric.Pod
	in := func(d *directory) (from, to int) { return d.ofPod(kind, ref) }
	n.each(in, rd, func(p *metric.Sample) bool {
		whole, uid, u.Held = p.Entity.Part == "" && rule.Whole(p), p.Instance.UID, rule.Held(p)
		return !whole
	})
	if !whole {
		return false
	}
	kind = metric.Container
	n.each(in, rd, func(c *metric.Sample) bool {
		if use, over, ok := rule.UseOf(c); ok && c.Entity.Part == "" {
			u.Uses, u.Over = append(u.Uses, use), u.Over.Oldest(over)
		}
		return true
	})
	return len(u.Uses) > 0
}

// podUse makes u what the round says of the pod at entry pod, whose containers' entries
// are at or after at, and reports whether it was measured whole. next is where to look
// for the containers of the pod after it.
func (r *round) podUse(pod, at int, u *rule.PodUse) (next int, ok bool) {
	e := &r.dir.entries[pod]
	if e.what.Value().part != "" {
		return at, false
	}
	_, over, ok := r.use(pod)
	if !ok {
		return at, false
	}
	var held int64
	if sh, _ := r.record(pod); sh.held&(1<<metric.CPU) != 0 {
		held = over.End
	}
	*u = rule.PodUse{PodRef: &e.pod.PodRef, UID: e.uid(), Node: r.dir.node, Held: held, Uses: u.Uses[:0], Among: r.dir, Place: pod - r.dir.kinds[metric.Pod]}
	for end := r.dir.kinds[metric.Container+1]; at < end; at++ {
		c := &r.dir.entries[at]
		if c.pod != e.pod { // a directory has one key of a pod
			if len(u.Uses) > 0 || comparePods(c.pod.PodRef, e.pod.PodRef) > 0 {
				break
			}
			continue
		}
		w := c.what.Value()
		if w.part != "" {
			continue
		}
		if use, over, ok := r.use(at); ok {
			use.Name = w.name
			u.Uses, u.Over = append(u.Uses, use), u.Over.Oldest(over)
		}
	}
	return at, len(u.Uses) > 0
}

// uid returns where the UID of the entry's instance is.
func (e *entry) uid() *metric.PodUID {
	if e.more != nil {
		return &e.more.uid
	}
	return &e.pod.uid
}

// use returns what entry i says its entity uses, without its name, and over which
// time. It reads of the record what served.UseOf reads of the sample.
func (r *round) use(i int) (u rule.Use, over rule.Span, ok bool) {
	cpu, ok := r.value(i, metric.CPUUsageRate)
	if !ok {
		return u, over, false
	}
	memory, ok := r.value(i, metric.MemoryWorkingSet)
	if !ok {
		return u, over, false
	}
	if u, ok = rule.Amounts(cpu, memory); !ok {
		return u, over, false
	}
	if w := r.window(i, metric.CPU); w.End != 0 {
		return u, rule.Span{End: w.End, Length: w.Length}, true
	}
	return u, rule.Span{End: r.time(i, metric.CPU)}, true
}
