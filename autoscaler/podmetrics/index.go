package podmetrics

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

// labelIndex finds pods by their labels. Pods of one owner have equal labels, so a selector is
// matched against sets of labels, not pods, and only against sets with a value that it requires.
type labelIndex struct {
	mu     sync.Mutex
	spaces map[metric.Namespace]*namespaceIndex
}

func newLabelIndex() *labelIndex { return &labelIndex{spaces: map[metric.Namespace]*namespaceIndex{}} }

// find returns the pods of a namespace that a selector matches, sorted by name.
func (x *labelIndex) find(facts *cluster.Facts, namespace metric.Namespace, sel labels.Selector) []*cluster.Pod {
	pods := facts.Namespace(namespace)
	x.mu.Lock()
	s := x.spaces[namespace]
	switch {
	case pods == nil:
		delete(x.spaces, namespace)
	case s == nil:
		x.dropEmpty(facts)
		s = newNamespaceIndex()
		x.spaces[namespace] = s
	}
	x.mu.Unlock()
	if pods == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(pods)
	return s.find(sel)
}

// dropEmpty drops namespaces without pods.
func (x *labelIndex) dropEmpty(facts *cluster.Facts) {
	maps.DeleteFunc(x.spaces, func(n metric.Namespace, _ *namespaceIndex) bool { return facts.Namespace(n) == nil })
}

// namespaceIndex has the pods of one namespace by their labels.
type namespaceIndex struct {
	mu     sync.Mutex
	pods   *cluster.NamespacePods // that the index was built from
	groups map[string]*labelGroup // by cluster.AppendLabelKey
	key    []byte                 // scratch
	// keys has the groups by label key and value, for each key that a selector required.
	keys map[string]map[string][]*labelGroup
}

// labelGroup is the pods with equal labels.
type labelGroup struct {
	labels map[string]string
	pods   []*cluster.Pod
	sorted bool // by name
}

func newNamespaceIndex() *namespaceIndex {
	return &namespaceIndex{groups: map[string]*labelGroup{}, keys: map[string]map[string][]*labelGroup{}}
}

// update updates the index to pods.
func (s *namespaceIndex) update(pods *cluster.NamespacePods) {
	pods.Since(s.pods, func(was, is *cluster.Pod) {
		if was != nil {
			s.removePod(was)
		}
		if is != nil {
			s.addPod(is)
		}
	})
	s.pods = pods
}

// removePod removes a pod from its group.
func (s *namespaceIndex) removePod(p *cluster.Pod) {
	key := s.keyOf(p)
	g := s.groups[string(key)]
	if i := slices.Index(g.pods, p); len(g.pods) > 1 {
		g.pods = slices.Delete(g.pods, i, i+1)
		return
	}
	delete(s.groups, string(key))
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
	of := s.keyOf(p)
	g := s.groups[string(of)]
	if g == nil {
		g = &labelGroup{labels: p.Labels}
		s.groups[string(of)] = g
		for key, values := range s.keys {
			if value, ok := g.labels[key]; ok {
				values[value] = append(values[value], g)
			}
		}
	}
	g.pods = append(g.pods, p)
	g.sorted = len(g.pods) == 1
}

// keyOf returns the key of a pod's group, valid until the next call.
func (s *namespaceIndex) keyOf(p *cluster.Pod) []byte {
	s.key = cluster.AppendLabelKey(s.key[:0], p.Labels)
	return s.key
}

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
