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
	if !shared(f.nodes, old.nodes) {
		for name, n := range f.nodes {
			if old.nodes[name] != n {
				c.Nodes = append(c.Nodes, n)
			}
		}
		for name := range old.nodes {
			if f.nodes[name] == nil {
				c.GoneNodes = append(c.GoneNodes, name)
			}
		}
	}
	for i, pods := range f.pods {
		was := old.pods[i]
		if shared(pods, was) {
			continue
		}
		for ref, p := range pods {
			if was[ref] != p {
				c.Pods = append(c.Pods, p)
			}
		}
		for ref := range was {
			if pods[ref] == nil {
				c.GonePods = append(c.GonePods, ref)
			}
		}
	}
	return c
}

// shared reports whether two maps are one.
func shared[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
