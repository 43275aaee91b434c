package app

import (
	"github.com/weir-metrics/weir/explain"
)

// world returns what answers about missing numbers are made of, as of now.
func (f *front) world() *explain.World {
	w := &explain.World{Now: f.now(), Facts: f.facts(), Sources: f.sources(), Autoscalers: f.autoscalers}
	if snapshot := f.sinks.snapshot(); snapshot != nil {
		w.View = f.sinks.view(snapshot) // and not an interface that holds a nil
	}
	return w
}

// sources returns how sources fare in the words of package explain.
func (f *front) sources() []explain.Source {
	all := f.status()
	sources := make([]explain.Source, len(all))
	for i := range all {
		s := &all[i]
		sources[i] = explain.Source{
			Name: s.Kind, Node: s.Node, Interval: s.Interval,
			LastRead: s.Began, LastSuccess: s.Succeeded, Due: s.Due, Unread: s.Unread, Err: s.Err,
		}
	}
	return sources
}
