package resourcemetrics

import (
	"cmp"
	"reflect"
	"slices"
)

// labelSet is the labels of a subject, and how they are written. It is immutable.
type labelSet struct {
	all            map[string]string
	json, protobuf []byte
}

// label is one of a set.
type label struct{ key, value string }

func newLabelSet(all map[string]string) *labelSet {
	sorted, size := make([]label, 0, len(all)), 0
	for k, v := range all {
		sorted = append(sorted, label{k, v})
		size += len(k) + len(v) + len(`"":"",`) // in protobuf as much, unless it is long
	}
	slices.SortFunc(sorted, func(a, b label) int { return cmp.Compare(a.key, b.key) })
	text := appendLabels(make([]byte, 0, 2*size+len(`,"labels":{}`)), sorted)
	n := len(text)
	text = appendLabelFields(text, sorted)
	return &labelSet{all: all, json: text[:n:n], protobuf: text[n:]}
}

// noLabels is the set of what has none.
var noLabels = &labelSet{}

// labelSets are those that were met, by their maps: the pods of a replica set share one.
type labelSets map[uintptr]*labelSet

// of returns the set of labels, which nobody changes.
func (l labelSets) of(labels map[string]string) *labelSet {
	if len(labels) == 0 {
		return noLabels
	}
	set := l[address(labels)]
	if set == nil {
		set = newLabelSet(labels)
		l.add(set)
	}
	return set
}

// add has set be found.
func (l labelSets) add(set *labelSet) { l[address(set.all)] = set }

// address returns which map labels are.
func address(labels map[string]string) uintptr { return reflect.ValueOf(labels).Pointer() }
