package metric

import "reflect"

// Since returns the change that makes f of old: old.With(f.Since(old)) says what
// f says. Where f came of old by a few changes it costs little, for what both
// share is passed over. old may be nil; f may not.
func (f *Facts) Since(old *Facts) FactsChange {
	c := FactsChange{Synced: f.Synced, At: f.At}
	if old == nil {
		old = &Facts{}
	}
	for i, nodes := range f.nodes {
		was := old.nodes[i]
		if same(nodes, was) {
			continue
		}
		for name, n := range nodes {
			if was[name] != n {
				c.Nodes = append(c.Nodes, n)
			}
		}
		for name := range was {
			if nodes[name] == nil {
				c.GoneNodes = append(c.GoneNodes, name)
			}
		}
	}
	put := func(p *PodFacts) { c.Pods = append(c.Pods, p) }
	gone := func(p *PodFacts) { c.GonePods = append(c.GonePods, p.PodRef) }
	for i, namespaces := range f.pods {
		was := old.pods[i]
		if same(namespaces, was) {
			continue
		}
		for name, t := range namespaces {
			if was[name] != t {
				t.since(was[name], put, gone)
			}
		}
		for name, t := range was {
			if namespaces[name] == nil {
				t.each(func(p *PodFacts) bool { gone(p); return true })
			}
		}
	}
	return c
}

// SameNodes reports whether f says of nodes what old does. It compares no node: that
// nothing has changed is seen at once, and what is as it was but was said anew counts
// as a change. Both may be nil.
func (f *Facts) SameNodes(old *Facts) bool {
	if f == nil || old == nil {
		return f == old
	}
	for i, nodes := range f.nodes {
		if !same(nodes, old.nodes[i]) {
			return false
		}
	}
	return true
}

// same reports whether two maps are one.
func same[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
