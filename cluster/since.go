package cluster

import "github.com/weir-metrics/weir/metric"

// Since returns the change that makes f of old: old.With(f.Since(old)) says what
// f says. Where f came of old by a few changes it costs little, for what both
// share is passed over. old may be nil; f may not.
func (f *Facts) Since(old *Facts) FactsChange {
	c := FactsChange{Synced: f.Synced, At: f.At}
	if old == nil {
		old = &Facts{}
	}
	f.nodes.since(&old.nodes, func(name metric.NodeName, _, is *Node) {
		if is != nil {
			c.Nodes = append(c.Nodes, is)
		} else {
			c.GoneNodes = append(c.GoneNodes, name)
		}
	})
	f.pods.since(&old.pods, func(_ metric.Namespace, was, is *NamespacePods) {
		is.Since(was, func(was, is *Pod) {
			if is != nil {
				c.Pods = append(c.Pods, is)
			} else {
				c.GonePods = append(c.GonePods, was.PodRef)
			}
		})
	})
	return c
}

// SameNodes reports whether f says of nodes what old does. It compares no node: that
// nothing has changed is seen at once, and what is as it was but was said anew counts
// as a change. Both may be nil.
func (f *Facts) SameNodes(old *Facts) bool {
	if f == nil || old == nil {
		return f == old
	}
	return f.nodes.generation == old.nodes.generation
}

// NamespacePods is the pods of one namespace. It never changes: while Facts have the same
// NamespacePods of a namespace, its pods are the same, unchanged. It may be nil for none.
type NamespacePods struct {
	table[metric.PodName, *Pod]
}

// noPods are the pods of a namespace without any.
var noPods = &NamespacePods{}

// orNone returns p, or noPods for nil.
func (p *NamespacePods) orNone() *NamespacePods {
	if p == nil {
		return noPods
	}
	return p
}

// Since calls do for each pod that differs from old: was is nil for one that has come, is is
// nil for one that is gone.
func (p *NamespacePods) Since(old *NamespacePods, do func(was, is *Pod)) {
	p.orNone().since(&old.orNone().table, func(_ metric.PodName, was, is *Pod) { do(was, is) })
}
