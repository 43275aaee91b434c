package cluster

import "github.com/weir-metrics/weir/metric"

// Since returns the change that leads from old to f: old.With(f.Since(old)) has the content of
// f. It skips what both share, so it is cheap if f was made from old by a few changes. old may
// be nil; f may not.
func (f *Facts) Since(old *Facts) FactsChange {
	c := FactsChange{Synced: f.Synced, At: f.At, LeftOutNodes: f.leftOut}
	old = old.orNone()
	f.nodes.since(&old.nodes, func(name metric.NodeName, _, n *Node) {
		if n != nil {
			c.Nodes = append(c.Nodes, n)
		} else {
			c.GoneNodes = append(c.GoneNodes, name)
		}
	})
	f.pods.since(&old.pods, func(_ metric.Namespace, before, pods *NamespacePods) {
		pods.Since(before, func(gone, p *Pod) {
			if p != nil {
				c.Pods = append(c.Pods, p)
			} else {
				c.GonePods = append(c.GonePods, gone.PodRef)
			}
		})
	})
	return c
}

// SameNodes reports whether f has the same nodes as old. It compares only a generation: a node
// that was replaced by an equal one counts as a change. Both may be nil.
func (f *Facts) SameNodes(old *Facts) bool {
	if f == nil || old == nil {
		return f == old
	}
	return f.nodes.generation == old.nodes.generation
}

// NamespacePods is the pods of one namespace. It is immutable: as long as Facts return the same
// NamespacePods, its pods have not changed. It may be nil if there are none.
type NamespacePods struct {
	table[metric.PodName, *Pod]
}

// noPods are the pods of a namespace without any.
var noPods = &NamespacePods{}

// orNone returns p, or noPods if p is nil.
func (p *NamespacePods) orNone() *NamespacePods {
	if p == nil {
		return noPods
	}
	return p
}

// Since calls do for each pod that differs from old. before is nil for a new pod, after is nil for a
// deleted one.
func (p *NamespacePods) Since(old *NamespacePods, do func(before, after *Pod)) {
	p.orNone().since(&old.orNone().table, func(_ metric.PodName, before, after *Pod) { do(before, after) })
}
