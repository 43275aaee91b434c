package controller

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/target"
)

// rivals knows the selectors of the autoscalers' targets, to find out whose pods
// are another's as well. Its methods may be called by several goroutines.
//
// Kubernetes' controller looks at every pod with every selector. Here most are
// ruled out at once: two selectors that ask for different values of one label
// select nothing in common.
type rivals struct {
	mu struct {
		sync.Mutex
		known map[key]*claim
		// spaces are the claims of a kind in a namespace, by a label whose value
		// they ask for and that value; by "" if they ask for none.
		spaces map[key]map[string]map[string]map[key]*claim
	}
}

// claim is a target, its selector and the values that asks for.
type claim struct {
	id           target.ID
	text         string
	selector     labels.Selector
	values       map[string]string
	label, value string // where it is found
}

func newRivals() *rivals {
	r := &rivals{}
	r.mu.known, r.mu.spaces = map[key]*claim{}, map[key]map[string]map[string]map[key]*claim{}
	return r
}

// put notes whose pods k is after.
func (r *rivals) put(k key, id target.ID, text string, selector labels.Selector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.mu.known[k]; old != nil {
		if old.text == text && old.id == id {
			return
		}
		r.remove(k, old)
	}
	c := &claim{id: id, text: text, selector: selector, values: map[string]string{}}
	requirements, _ := selector.Requirements()
	for _, q := range requirements {
		if op := q.Operator(); (op == selection.Equals || op == selection.DoubleEquals || op == selection.In) && q.Values().Len() == 1 {
			c.values[q.Key()] = q.Values().UnsortedList()[0]
		}
	}
	for label, value := range c.values {
		if c.label == "" || label < c.label {
			c.label, c.value = label, value
		}
	}
	r.mu.known[k] = c
	space := r.mu.spaces[k.space()]
	if space == nil {
		space = map[string]map[string]map[key]*claim{}
		r.mu.spaces[k.space()] = space
	}
	if space[c.label] == nil {
		space[c.label] = map[string]map[key]*claim{}
	}
	if space[c.label][c.value] == nil {
		space[c.label][c.value] = map[key]*claim{}
	}
	space[c.label][c.value][k] = c
}

// space is where k has rivals.
func (k key) space() key { return key{kind: k.kind, namespace: k.namespace} }

// drop forgets k.
func (r *rivals) drop(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.mu.known[k]; c != nil {
		r.remove(k, c)
	}
}

func (r *rivals) remove(k key, c *claim) {
	delete(r.mu.known, k)
	space := r.mu.spaces[k.space()]
	delete(space[c.label][c.value], k)
	if len(space[c.label][c.value]) == 0 {
		delete(space[c.label], c.value)
	}
	if len(space[c.label]) == 0 {
		delete(space, c.label)
	}
	if len(space) == 0 {
		delete(r.mu.spaces, k.space())
	}
}

// candidates returns who may be after pods that the selector of k matches, for
// another target.
func (r *rivals) candidates(k key) map[key]labels.Selector {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.mu.known[k]
	if own == nil {
		return nil
	}
	var found map[key]labels.Selector
	look := func(at map[key]*claim) {
		for other, c := range at {
			if other != k && c.id != own.id && !disjoint(own.values, c.values) {
				if found == nil {
					found = map[key]labels.Selector{}
				}
				found[other] = c.selector
			}
		}
	}
	for label, byValue := range r.mu.spaces[k.space()] {
		if value, asks := own.values[label]; asks {
			look(byValue[value])
			continue
		}
		for _, at := range byValue {
			look(at)
		}
	}
	return found
}

// disjoint reports whether two selectors ask for different values of one label.
func disjoint(a, b map[string]string) bool {
	for label, value := range a {
		if other, ok := b[label]; ok && other != value {
			return true
		}
	}
	return false
}

// of returns k and those whose selector matches one of its pods, by name. skip
// leaves out whom k need not mind.
func (r *rivals) of(k key, pods []autoscaler.Pod, podsOf func(labels.Selector) ([]autoscaler.Pod, error), skip func(key) bool) []types.NamespacedName {
	names := []types.NamespacedName{k.named()}
	if len(pods) == 0 {
		return names
	}
	for other, selector := range r.candidates(k) {
		if skip(other) {
			continue
		}
		if theirs, err := podsOf(selector); err == nil && share(pods, theirs) {
			names = append(names, other.named())
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	return names
}

// share reports whether two lists by name have a pod in common.
func share(a, b []autoscaler.Pod) bool {
	for len(a) > 0 && len(b) > 0 {
		switch n := strings.Compare(a[0].Name, b[0].Name); {
		case n == 0:
			return true
		case n < 0:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}
