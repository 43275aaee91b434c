package controller

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
)

// selectorIndex keeps the selectors of the autoscalers' targets and finds pods that belong to
// several of them. It is safe for concurrent use.
//
// Kubernetes' controller matches every pod against every selector. Here most are excluded at
// once: two selectors that require different values of one label have no pod in common.
type selectorIndex struct {
	mu struct {
		sync.Mutex
		known map[objectKey]*targetSelector
		// spaces has the claims of a kind in a namespace, by the key and value of a label
		// that they require; by "" if they require none.
		spaces map[objectKey]map[string]map[string]map[objectKey]*targetSelector
	}
}

// targetSelector is a target, its selector and the label values that the selector requires.
type targetSelector struct {
	id           scaleclient.WorkloadID
	text         string
	selector     labels.Selector
	values       map[string]string
	label, value string // where it is found
}

func newSelectorIndex() *selectorIndex {
	r := &selectorIndex{}
	r.mu.known, r.mu.spaces = map[objectKey]*targetSelector{}, map[objectKey]map[string]map[string]map[objectKey]*targetSelector{}
	return r
}

// setSelector sets the selector of k.
func (r *selectorIndex) setSelector(k objectKey, id scaleclient.WorkloadID, text string, selector labels.Selector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.mu.known[k]; old != nil {
		if old.text == text && old.id == id {
			return
		}
		r.removeLocked(k, old)
	}
	c := &targetSelector{id: id, text: text, selector: selector, values: map[string]string{}}
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
	space := r.mu.spaces[k.sameKind()]
	if space == nil {
		space = map[string]map[string]map[objectKey]*targetSelector{}
		r.mu.spaces[k.sameKind()] = space
	}
	if space[c.label] == nil {
		space[c.label] = map[string]map[objectKey]*targetSelector{}
	}
	if space[c.label][c.value] == nil {
		space[c.label][c.value] = map[objectKey]*targetSelector{}
	}
	space[c.label][c.value][k] = c
}

// sameKind returns the key of all objects of k's kind in its namespace.
func (k objectKey) sameKind() objectKey { return objectKey{kind: k.kind, namespace: k.namespace} }

// deleteSelector removes k.
func (r *selectorIndex) deleteSelector(k objectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.mu.known[k]; c != nil {
		r.removeLocked(k, c)
	}
}

func (r *selectorIndex) removeLocked(k objectKey, c *targetSelector) {
	delete(r.mu.known, k)
	space := r.mu.spaces[k.sameKind()]
	delete(space[c.label][c.value], k)
	if len(space[c.label][c.value]) == 0 {
		delete(space[c.label], c.value)
	}
	if len(space[c.label]) == 0 {
		delete(space, c.label)
	}
	if len(space) == 0 {
		delete(r.mu.spaces, k.sameKind())
	}
}

// candidates returns the selectors of other targets that may match pods of k's selector.
func (r *selectorIndex) candidates(k objectKey) map[objectKey]labels.Selector {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.mu.known[k]
	if own == nil {
		return nil
	}
	var found map[objectKey]labels.Selector
	look := func(at map[objectKey]*targetSelector) {
		for other, c := range at {
			if other != k && c.id != own.id && !disjoint(own.values, c.values) {
				if found == nil {
					found = map[objectKey]labels.Selector{}
				}
				found[other] = c.selector
			}
		}
	}
	for label, byValue := range r.mu.spaces[k.sameKind()] {
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

// disjoint reports whether two selectors require different values of one label.
func disjoint(a, b map[string]string) bool {
	for label, value := range a {
		if other, ok := b[label]; ok && other != value {
			return true
		}
	}
	return false
}

// overlapping returns k and the objects whose selector matches one of its pods, by name. skip
// excludes objects that never write.
func (r *selectorIndex) overlapping(k objectKey, pods []autoscaler.Pod, podsOf func(labels.Selector) ([]autoscaler.Pod, error), skip func(objectKey) bool) []types.NamespacedName {
	names := []types.NamespacedName{k.namespacedName()}
	if len(pods) == 0 {
		return names
	}
	for other, selector := range r.candidates(k) {
		if skip(other) {
			continue
		}
		if theirs, err := podsOf(selector); err == nil && sharePod(pods, theirs) {
			names = append(names, other.namespacedName())
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	return names
}

// sharePod reports whether two lists of pods, sorted by name, have a pod in common.
func sharePod(a, b []autoscaler.Pod) bool {
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
