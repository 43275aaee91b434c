package podmetrics

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// labelIndex finds pods by their labels. Pods of one owner share one map of labels (see the pool
// of package informer), so a selector is matched against maps, not pods, and only against maps
// with a value that it requires.
type labelIndex struct {
	mu     sync.Mutex
	spaces map[metric.Namespace]*namespaceIndex
}

func newLabelIndex() *labelIndex { return &labelIndex{spaces: map[metric.Namespace]*namespaceIndex{}} }

// find returns the pods of a namespace that a selector matches, sorted by name.
func (x *labelIndex) find(facts *cluster.Facts, namespace metric.Namespace, sel labels.Selector) []*cluster.Pod {
	pods := facts.PodsIn(namespace)
	x.mu.Lock()
	s := x.spaces[namespace]
	switch {
	case len(pods) == 0:
		delete(x.spaces, namespace)
	case s == nil:
		x.dropEmpty(facts)
		s = newNamespaceIndex()
		x.spaces[namespace] = s
	}
	x.mu.Unlock()
	if len(pods) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(pods)
	return s.find(sel)
}

// dropEmpty drops namespaces without pods.
func (x *labelIndex) dropEmpty(facts *cluster.Facts) {
	maps.DeleteFunc(x.spaces, func(n metric.Namespace, _ *namespaceIndex) bool { return len(facts.PodsIn(n)) == 0 })
}

// namespaceIndex has the pods of one namespace by their labels.
type namespaceIndex struct {
	mu sync.Mutex
	// pods is the slice of the facts that the index was built from.
	pods   []*cluster.Pod
	groups map[uintptr]*labelGroup // by the address of their labels
	// keys has the groups by label key and value, for each key that a selector required.
	keys map[string]map[string][]*labelGroup
}

// labelGroup is the pods that share one map of labels.
type labelGroup struct {
	labels map[string]string // kept, so that no other map gets its address
	pods   []*cluster.Pod
	sorted bool // by name
}

func newNamespaceIndex() *namespaceIndex {
	return &namespaceIndex{groups: map[uintptr]*labelGroup{}, keys: map[string]map[string][]*labelGroup{}}
}

// update updates the index to pods. Facts change by removing pods from the list and appending
// others, which costs one pass here. Any other change costs more, but the result is right.
func (s *namespaceIndex) update(pods []*cluster.Pod) {
	if len(pods) == len(s.pods) && &pods[0] == &s.pods[0] {
		return
	}
	kept := 0
	removed := map[*cluster.Pod]struct{}{}
	for _, p := range s.pods {
		if kept < len(pods) && pods[kept] == p {
			kept++
		} else {
			removed[p] = struct{}{}
		}
	}
	thinned := map[uintptr]struct{}{}
	for p := range removed {
		thinned[labelsAddress(p.Labels)] = struct{}{}
	}
	for at := range thinned {
		s.removePods(at, removed)
	}
	for _, p := range pods[kept:] {
		s.addPod(p)
	}
	s.pods = pods
}

// removePods removes pods from a group.
func (s *namespaceIndex) removePods(at uintptr, removed map[*cluster.Pod]struct{}) {
	g := s.groups[at]
	g.pods = slices.DeleteFunc(g.pods, func(p *cluster.Pod) bool { _, is := removed[p]; return is })
	if len(g.pods) > 0 {
		return
	}
	delete(s.groups, at)
	for key, values := range s.keys {
		value, ok := g.labels[key]
		if !ok {
			continue
		}
		if values[value] = slices.DeleteFunc(values[value], func(o *labelGroup) bool { return o == g }); len(values[value]) == 0 {
			delete(values, value)
		}
	}
}

// addPod adds a pod to its group.
func (s *namespaceIndex) addPod(p *cluster.Pod) {
	at := labelsAddress(p.Labels)
	g := s.groups[at]
	if g == nil {
		g = &labelGroup{labels: p.Labels}
		s.groups[at] = g
		for key, values := range s.keys {
			if value, ok := g.labels[key]; ok {
				values[value] = append(values[value], g)
			}
		}
	}
	g.pods = append(g.pods, p)
	g.sorted = len(g.pods) == 1
}

// labelsAddress returns the address of a map of labels. Equal maps with two addresses make two
// groups.
func labelsAddress(labels map[string]string) uintptr { return reflect.ValueOf(labels).Pointer() }

// find returns the pods that a selector matches, sorted by name.
func (s *namespaceIndex) find(sel labels.Selector) (found []*cluster.Pod) {
	requirements, selects := sel.Requirements()
	if !selects {
		return nil
	}
	groups := 0
	take := func(g *labelGroup) {
		if !sel.Matches(labels.Set(g.labels)) {
			return
		}
		if !g.sorted {
			slices.SortFunc(g.pods, byName)
			g.sorted = true
		}
		groups++
		found = append(found, g.pods...)
	}
	if few, ok := s.smallestGroups(requirements); ok {
		for _, g := range few {
			take(g)
		}
	} else {
		for _, g := range s.groups {
			take(g)
		}
	}
	if groups > 1 {
		slices.SortFunc(found, byName)
	}
	return found
}

// smallestGroups returns the shortest list of groups that one of the requirements allows; ok is
// false if none limits them.
func (s *namespaceIndex) smallestGroups(requirements labels.Requirements) (few []*labelGroup, ok bool) {
	for i := range requirements {
		r := &requirements[i]
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		values := r.ValuesUnsorted()
		if len(values) != 1 {
			continue
		}
		if with := s.groupsByValue(r.Key())[values[0]]; !ok || len(with) < len(few) {
			few, ok = with, true
		}
	}
	return few, ok
}

// groupsByValue returns the groups by their value of a key.
func (s *namespaceIndex) groupsByValue(key string) map[string][]*labelGroup {
	values := s.keys[key]
	if values != nil {
		return values
	}
	values = map[string][]*labelGroup{}
	for _, g := range s.groups {
		if value, ok := g.labels[key]; ok {
			values[value] = append(values[value], g)
		}
	}
	s.keys[key] = values
	return values
}

func byName(p, q *cluster.Pod) int { return strings.Compare(string(p.Name), string(q.Name)) }
