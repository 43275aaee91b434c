// Package selectorindex finds the label selectors that match an object's labels.
//
// Nearly every selector requires one value of some label, and the index finds it by that value. The
// cost of a lookup therefore depends on the labels, not on the number of selectors.
package selectorindex

import (
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Index keeps one selector for each key. It is safe for concurrent use.
type Index[K comparable] struct {
	mu      sync.RWMutex
	buckets map[K]bucket
	entries map[bucket]map[K]labels.Selector
}

// bucket is a label that selectors of one namespace require. Its key and value are empty for
// selectors that require no single value of any label.
type bucket struct{ namespace, key, value string }

// New returns an Index without selectors.
func New[K comparable]() *Index[K] {
	return &Index[K]{buckets: map[K]bucket{}, entries: map[bucket]map[K]labels.Selector{}}
}

// Set stores the selector of k and replaces an earlier one.
func (i *Index[K]) Set(k K, namespace string, selector labels.Selector) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deleteLocked(k)
	b := bucketOf(namespace, selector)
	if i.entries[b] == nil {
		i.entries[b] = map[K]labels.Selector{}
	}
	i.buckets[k], i.entries[b][k] = b, selector
}

func bucketOf(namespace string, selector labels.Selector) bucket {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				return bucket{namespace, r.Key(), values[0]}
			}
		}
	}
	return bucket{namespace: namespace}
}

// Delete removes the selector of k.
func (i *Index[K]) Delete(k K) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deleteLocked(k)
}

func (i *Index[K]) deleteLocked(k K) {
	b := i.buckets[k]
	delete(i.buckets, k)
	delete(i.entries[b], k)
	if len(i.entries[b]) == 0 {
		delete(i.entries, b)
	}
}

// Len returns the number of selectors.
func (i *Index[K]) Len() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.buckets)
}

// Matching yields the keys with selectors that match an object of the namespace, in any order. The
// loop must not change the index.
func (i *Index[K]) Matching(namespace string, set labels.Set) iter.Seq[K] {
	return func(yield func(K) bool) {
		i.mu.RLock()
		defer i.mu.RUnlock()
		visit := func(b bucket) bool {
			for k, selector := range i.entries[b] {
				if selector.Matches(set) && !yield(k) {
					return false
				}
			}
			return true
		}
		if !visit(bucket{namespace: namespace}) {
			return
		}
		for key, value := range set {
			if !visit(bucket{namespace, key, value}) {
				return
			}
		}
	}
}
