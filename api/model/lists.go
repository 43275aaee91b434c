package model

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// list returns the names a list is of, sorted.
func (q *request) list() []string {
	var kind metric.Kind
	name := func(e metric.Entity) string { return e.Name }
	switch q.action {
	case listNodes:
		kind, name = metric.Node, func(e metric.Entity) string { return string(e.Node) }
	case listNamespaces:
		kind, name = metric.Namespaced, func(e metric.Entity) string { return string(e.Namespace) }
	case listPods:
		kind, name = metric.Pod, func(e metric.Entity) string { return string(e.Pod) }
	case listNodePods:
		kind, name = metric.Pod, func(e metric.Entity) string { return e.PodRef().String() }
	case listSystem:
		kind = metric.System
	case listContainers:
		names := []string{}
		_, containers := q.view.Pod(q.entity.PodRef())
		for _, c := range containers {
			names = append(names, c.Entity.Name)
		}
		return names
	}
	names := []string{}
	q.view.Each(kind, func(s *metric.Sample) bool {
		e := s.Entity
		if (q.entity.Node == "" || e.Node == q.entity.Node) && (q.entity.Namespace == "" || e.Namespace == q.entity.Namespace) {
			names = append(names, name(e))
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names) // parts go by the name of what they belong to
}

// keys returns Heapster's keys of everything that is measured, sorted.
func (q *request) keys() []string {
	keys := []string{}
	for kind := range metric.NumKinds {
		q.view.Each(metric.Kind(kind), func(s *metric.Sample) bool {
			keys = append(keys, key(s.Entity))
			return true
		})
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// key returns Heapster's key of an entity.
func key(e metric.Entity) string {
	switch e.Kind {
	case metric.Cluster:
		return "cluster"
	case metric.Node:
		return "node:" + string(e.Node)
	case metric.System:
		return "node:" + string(e.Node) + "/container:" + e.Name
	}
	k := "namespace:" + string(e.Namespace)
	if e.Pod != "" {
		k += "/pod:" + string(e.Pod)
	}
	if e.Name != "" {
		k += "/container:" + e.Name
	}
	return k
}
