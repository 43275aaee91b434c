package memory

import (
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/metric"
)

// EachPodUsage calls do for every pod that was measured completely, by node, namespace and
// name, until do returns false. u has those of the pod's containers that were measured, and is
// valid until do returns. The result is that of Each with the rule of package resourceusage,
// but EachPodUsage decodes only what the rule needs, because a LIST of a large cluster is one
// call of it.
func (s *Snapshot) EachPodUsage(do func(u *resourceusage.PodUsage) bool) {
	var (
		u  resourceusage.PodUsage
		rd sampleReader
	)
	for i := range s.nodes.names {
		n := s.nodes.at(i)
		if len(n.sources) == 1 {
			// Fast path: one source, with pods and containers in the same order.
			r := &n.sources[0].round
			at := r.table.kinds[metric.Container]
			for pod := r.table.kinds[metric.Pod]; pod < r.table.kinds[metric.Pod+1]; pod++ {
				var ok bool
				if at, ok = r.podUsage(pod, at, &u); ok && (len(s.placements) == 0 || s.isPlacedOn(n, *u.PodRef)) && !do(&u) {
					return
				}
			}
			continue
		}
		pods := func(d *entityTable) (from, to int) { return d.kinds[metric.Pod], d.kinds[metric.Pod+1] }
		index := -1
		for e := range n.entries(pods, &rd) {
			if e.local.Value().part != "" {
				continue
			}
			index++
			if rd.pod.choose(n, e.podRef()); !s.isPlacedOn(n, e.podRef()) || !rd.pod.usage(&u) {
				continue
			}
			if u.Index = index; !do(&u) {
				return
			}
		}
	}
}

// PodUsage fills u with what EachPodUsage returns for one pod. It reuses the memory of u. It
// returns false if EachPodUsage does not return the pod.
func (s *Snapshot) PodUsage(ref metric.PodRef, u *resourceusage.PodUsage) bool {
	n := s.nodes.get(s.nodeOf(metric.Entity{Kind: metric.Pod, Namespace: ref.Namespace, Pod: ref.Name}))
	switch {
	case n == nil || !s.isPlacedOn(n, ref):
		return false
	case len(n.sources) > 1:
		var p podSources
		p.choose(n, ref)
		return p.usage(u)
	}
	r := &n.sources[0].round
	pod, end := r.table.rangeOfPod(metric.Pod, ref)
	at, _ := r.table.rangeOfPod(metric.Container, ref)
	ok := false
	for ; pod < end && !ok; pod++ { // the pod's parts have entries too
		_, ok = r.podUsage(pod, at, u)
	}
	return ok
}

// NodeUsage returns the usage of a node and its window. ok is false unless the node was
// measured completely.
func (s *Snapshot) NodeUsage(name metric.NodeName) (u resourceusage.Usage, over metric.Window, ok bool) {
	n := s.nodes.get(name)
	if n == nil {
		return u, over, false
	}
	e := metric.Entity{Kind: metric.Node, Node: name}
	if len(n.sources) == 1 {
		r := &n.sources[0].round
		i, ok := r.table.find(&e)
		if !ok {
			return u, over, false
		}
		return r.usage(i)
	}
	var rd sampleReader
	if !n.find(&e, &rd) {
		return u, over, false
	}
	return resourceusage.UsageOf(&rd.out)
}

// isPlacedOn reports whether n is the node of a pod's placement, or the pod has none. An ambiguous
// placement has no node: metrics.k8s.io cannot mark the number.
func (s *Snapshot) isPlacedOn(n *nodeView, ref metric.PodRef) bool {
	p, contested := s.placements[ref]
	return !contested || p.winner == n.name && !p.ambiguous
}

// usage fills u with the usage of the pod, which is that of its lead. It reports whether there is
// one.
func (p *podSources) usage(u *resourceusage.PodUsage) bool {
	if p.lead < 0 {
		return false
	}
	r, source := &p.node.sources[p.lead].round, &p.sources[p.lead]
	ok := false
	for i := source.pods.from; i < source.pods.to && !ok; i++ { // the pod's parts have entries too
		_, ok = r.podUsage(i, source.containers.from, u)
	}
	if !ok {
		return false
	}
	u.Generation, u.Index = 0, 0 // the pods of a node may have different leads
	mine := r.table.entries[source.pods.from].instance()
	for k, v := range p.node.sources {
		if o := &p.sources[k]; *u.UID == "" && !o.outdated && o.pods.from < o.pods.to {
			e := &v.round.table.entries[o.pods.from]
			if other := e.instance(); mayBeOne(&mine, &other) {
				u.UID = e.podUID()
			}
		}
	}
	return true
}

// podUsage fills u with the usage of the pod at entry pod, and reports whether it was measured
// completely. The entries of its containers are at or after at. next is where the search for
// the next pod's containers begins.
func (r *round) podUsage(pod, at int, u *resourceusage.PodUsage) (next int, ok bool) {
	e := &r.table.entries[pod]
	if e.local.Value().part != "" {
		return at, false
	}
	if _, _, ok := r.usage(pod); !ok {
		return at, false
	}
	*u = resourceusage.PodUsage{
		PodRef: &e.pod.PodRef, UID: e.podUID(), Node: r.table.node, Containers: u.Containers[:0], Runs: u.Runs[:0],
		Generation: r.table.generation, Index: pod - r.table.kinds[metric.Pod],
	}
	for end := r.table.kinds[metric.Container+1]; at < end; at++ {
		c := &r.table.entries[at]
		if c.pod != e.pod { // a table has one podIdentity for each pod
			if len(u.Containers) > 0 || comparePods(c.pod.PodRef, e.pod.PodRef) > 0 {
				break
			}
			continue
		}
		w := c.local.Value()
		if w.part != "" {
			continue
		}
		if use, over, ok := r.usage(at); ok {
			use.Name = w.name
			u.Add(use, resourceusage.NewRun(over, r.time(at, metric.Memory), c.containerID(), c.start, c.origin))
		}
	}
	return at, len(u.Containers) > 0
}

// podUID returns a pointer to the UID of the entry's instance.
func (e *entityEntry) podUID() *metric.PodUID {
	if e.details != nil {
		return &e.details.uid
	}
	return &e.pod.uid
}

// containerID returns the ID of the entry's instance; empty if the source reports none.
func (e *entityEntry) containerID() metric.ContainerID {
	if e.details == nil {
		return ""
	}
	return e.details.id
}

// usage returns the usage of entry i, without its name, and its window, as
// resourceusage.UsageOf does for a sample.
func (r *round) usage(i int) (u resourceusage.Usage, over metric.Window, ok bool) {
	layout, rec := r.record(i)
	if layout.reasons[metric.CPU] == metric.Ambiguous || layout.reasons[metric.Memory] == metric.Ambiguous {
		return u, over, false
	}
	cpu, ok := layout.value(rec, metric.CPUUsageRate)
	if !ok {
		return u, over, false
	}
	memory, ok := layout.value(rec, metric.MemoryWorkingSet)
	if !ok {
		return u, over, false
	}
	swap, ok := layout.value(rec, metric.MemorySwap)
	if !ok {
		swap = -1
	}
	if u, ok = resourceusage.NewUsage(cpu, memory, swap); !ok {
		return u, over, false
	}
	if w := layout.window(rec, metric.CPU); w.End != 0 {
		return u, w, true
	}
	return u, metric.Window{End: layout.time(rec, metric.CPU)}, true
}
