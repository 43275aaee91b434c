package live

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

// index finds pods by their labels. Pods of one owner share one set of labels (see
// cluster's pool), so that a selector is matched against sets, not pods, and of the
// sets only against those that have a value it asks for.
type index struct {
	mu     sync.Mutex
	spaces map[metric.Namespace]*space
}

func newIndex() *index { return &index{spaces: map[metric.Namespace]*space{}} }

// find returns the pods of a namespace that a selector matches, sorted by name.
func (x *index) find(facts *cluster.Facts, namespace metric.Namespace, sel labels.Selector) []*cluster.Pod {
	pods := facts.PodsIn(namespace)
	x.mu.Lock()
	s := x.spaces[namespace]
	switch {
	case len(pods) == 0:
		delete(x.spaces, namespace)
	case s == nil:
		x.sweep(facts)
		s = newSpace()
		x.spaces[namespace] = s
	}
	x.mu.Unlock()
	if len(pods) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(pods)
	return s.find(sel)
}

// sweep forgets namespaces without pods: of one that was deleted with its autoscalers
// nobody asks again.
func (x *index) sweep(facts *cluster.Facts) {
	maps.DeleteFunc(x.spaces, func(n metric.Namespace, _ *space) bool { return len(facts.PodsIn(n)) == 0 })
}

// space is one namespace's pods by their labels.
type space struct {
	mu sync.Mutex
	// pods is the list, in the facts' memory, that the rest is made of.
	pods   []*cluster.Pod
	groups map[uintptr]*group // by where their labels lie
	// keys holds, for each key that a selector asked for by value, the groups with
	// each value.
	keys map[string]map[string][]*group
}

// group is the pods that share one set of labels.
type group struct {
	labels map[string]string // held, so that no other set comes to lie there
	pods   []*cluster.Pod
	sorted bool // by name
}

func newSpace() *space {
	return &space{groups: map[uintptr]*group{}, keys: map[string]map[string][]*group{}}
}

// follow makes s what it is of pods. Facts are changed by taking pods out of such a
// list and appending others: what stays is found in passing. Any other change costs
// more, and comes out right as well.
func (s *space) follow(pods []*cluster.Pod) {
	if len(pods) == len(s.pods) && &pods[0] == &s.pods[0] {
		return
	}
	kept := 0
	gone := map[*cluster.Pod]struct{}{}
	for _, p := range s.pods {
		if kept < len(pods) && pods[kept] == p {
			kept++
		} else {
			gone[p] = struct{}{}
		}
	}
	thinned := map[uintptr]struct{}{}
	for p := range gone {
		thinned[whereabouts(p.Labels)] = struct{}{}
	}
	for at := range thinned {
		s.thin(at, gone)
	}
	for _, p := range pods[kept:] {
		s.add(p)
	}
	s.pods = pods
}

// thin takes pods out of a group.
func (s *space) thin(at uintptr, gone map[*cluster.Pod]struct{}) {
	g := s.groups[at]
	g.pods = slices.DeleteFunc(g.pods, func(p *cluster.Pod) bool { _, is := gone[p]; return is })
	if len(g.pods) > 0 {
		return
	}
	delete(s.groups, at)
	for key, values := range s.keys {
		value, ok := g.labels[key]
		if !ok {
			continue
		}
		if values[value] = slices.DeleteFunc(values[value], func(o *group) bool { return o == g }); len(values[value]) == 0 {
			delete(values, value)
		}
	}
}

// add puts a pod into its group.
func (s *space) add(p *cluster.Pod) {
	at := whereabouts(p.Labels)
	g := s.groups[at]
	if g == nil {
		g = &group{labels: p.Labels}
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

// whereabouts tells sets of labels apart by where they lie. Equal ones may lie in
// two places: that makes two groups.
func whereabouts(labels map[string]string) uintptr { return reflect.ValueOf(labels).Pointer() }

// find returns the pods that a selector matches, sorted by name.
func (s *space) find(sel labels.Selector) (found []*cluster.Pod) {
	requirements, selects := sel.Requirements()
	if !selects {
		return nil
	}
	groups := 0
	take := func(g *group) {
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
	if few, ok := s.fewest(requirements); ok {
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

// fewest returns the shortest list of groups of which one of the requirements says
// that there are no others; ok is false if none says so.
func (s *space) fewest(requirements labels.Requirements) (few []*group, ok bool) {
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
		if with := s.by(r.Key())[values[0]]; !ok || len(with) < len(few) {
			few, ok = with, true
		}
	}
	return few, ok
}

// by returns the groups by their value of a key.
func (s *space) by(key string) map[string][]*group {
	values := s.keys[key]
	if values != nil {
		return values
	}
	values = map[string][]*group{}
	for _, g := range s.groups {
		if value, ok := g.labels[key]; ok {
			values[value] = append(values[value], g)
		}
	}
	s.keys[key] = values
	return values
}

func byName(p, q *cluster.Pod) int { return strings.Compare(string(p.Name), string(q.Name)) }
