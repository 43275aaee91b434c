package cluster

// Since returns the change that makes f of old: old.With(f.Since(old)) says what
// f says. Where f came of old by a few changes it costs little, for what both
// share is passed over. old may be nil; f may not.
func (f *Facts) Since(old *Facts) Change {
	c := Change{Synced: f.Synced, At: f.At}
	if old == nil {
		old = &Facts{}
	}
	for i, nodes := range f.nodes {
		was := old.nodes[i]
		if nodes.generation == was.generation {
			continue
		}
		for name, n := range nodes.entries {
			if was.entries[name] != n {
				c.Nodes = append(c.Nodes, n)
			}
		}
		for name := range was.entries {
			if nodes.entries[name] == nil {
				c.GoneNodes = append(c.GoneNodes, name)
			}
		}
	}
	put := func(p *Pod) { c.Pods = append(c.Pods, p) }
	gone := func(p *Pod) { c.GonePods = append(c.GonePods, p.PodRef) }
	for i, namespaces := range f.pods {
		was := old.pods[i]
		if namespaces.generation == was.generation {
			continue
		}
		for name, t := range namespaces.entries {
			if was.entries[name] != t {
				t.since(was.entries[name], put, gone)
			}
		}
		for name, t := range was.entries {
			if namespaces.entries[name] == nil {
				t.each(func(p *Pod) bool { gone(p); return true })
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
		if nodes.generation != old.nodes[i].generation {
			return false
		}
	}
	return true
}
