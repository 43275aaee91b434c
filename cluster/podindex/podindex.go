// Package podindex finds pods by a label selector. The autoscaler and the metrics API look up one
// application again and again, often in a namespace with many others.
package podindex

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Index finds pods by their labels. It compares a selector only with the pods that have a label
// value that the selector requires. Its methods may be called concurrently.
type Index struct {
	mu     sync.Mutex
	spaces map[metric.Namespace]*namespaceIndex
}

// New returns an index without pods. Find fills it.
func New() *Index { return &Index{spaces: map[metric.Namespace]*namespaceIndex{}} }

// Find returns the pods of a namespace that a selector matches, sorted by name.
func (i *Index) Find(facts *cluster.Facts, namespace metric.Namespace, sel labels.Selector) []*cluster.Pod {
	pods := facts.Namespace(namespace)
	if pods == nil {
		return nil
	}
	i.mu.Lock()
	s := i.spaces[namespace]
	if s == nil {
		// Remove namespaces without pods.
		maps.DeleteFunc(i.spaces, func(n metric.Namespace, _ *namespaceIndex) bool { return facts.Namespace(n) == nil })
		s = &namespaceIndex{labels: map[string]podsByValue{}}
		i.spaces[namespace] = s
	}
	i.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(pods)
	return s.find(sel, func() []*cluster.Pod { return facts.PodsIn(namespace) })
}

// namespaceIndex has the pods of one namespace, keyed by the labels that selectors required.
type namespaceIndex struct {
	mu     sync.Mutex
	pods   *cluster.NamespacePods // the pods from which the index was built
	labels map[string]podsByValue
}

// podsByValue has pods, keyed by their value of a label.
type podsByValue map[string]map[*cluster.Pod]bool

func (n *namespaceIndex) update(pods *cluster.NamespacePods) {
	pods.Since(n.pods, func(before, after *cluster.Pod) {
		for label, index := range n.labels {
			if before != nil {
				index.remove(label, before)
			}
			if after != nil {
				index.add(label, after)
			}
		}
	})
	maps.DeleteFunc(n.labels, func(_ string, index podsByValue) bool { return len(index) == 0 })
	n.pods = pods
}

func (v podsByValue) add(label string, p *cluster.Pod) {
	if value, ok := p.Labels[label]; ok {
		if v[value] == nil {
			v[value] = map[*cluster.Pod]bool{}
		}
		v[value][p] = true
	}
}

func (v podsByValue) remove(label string, p *cluster.Pod) {
	value := p.Labels[label]
	delete(v[value], p)
	if len(v[value]) == 0 {
		delete(v, value)
	}
}

// find returns the pods that a selector matches, sorted by name. all returns all pods of the
// namespace.
func (n *namespaceIndex) find(sel labels.Selector, all func() []*cluster.Pod) (found []*cluster.Pod) {
	requirements, _ := sel.Requirements()
	few, ok := n.fewest(requirements, all)
	candidates := maps.Keys(few)
	if !ok {
		candidates = slices.Values(all())
	}
	for p := range candidates {
		if sel.Matches(labels.Set(p.Labels)) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *cluster.Pod) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return found
}

// fewest returns the smallest set of pods that one of the requirements allows. ok is false if none
// of them requires one value of a label.
func (n *namespaceIndex) fewest(requirements labels.Requirements, all func() []*cluster.Pod) (few map[*cluster.Pod]bool, ok bool) {
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		values := r.ValuesUnsorted()
		if len(values) != 1 {
			continue
		}
		index := n.labels[r.Key()]
		if index == nil {
			index = podsByValue{}
			for _, p := range all() {
				index.add(r.Key(), p)
			}
			if len(index) > 0 { // callers may ask for any number of labels that no pod has
				n.labels[r.Key()] = index
			}
		}
		if pods := index[values[0]]; !ok || len(pods) < len(few) {
			few, ok = pods, true
		}
	}
	return few, ok
}
