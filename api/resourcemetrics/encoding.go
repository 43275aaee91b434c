package resourcemetrics

import (
	"cmp"
	"reflect"
	"slices"
	"time"
)

const groupVersion = "metrics.k8s.io/v1beta1"

// document is one answer: a list of all readings, or the only one.
type document struct {
	kind kind
	list bool
	*readings
	now time.Time // when it was made
}

// kind is what an object is called.
type kind struct {
	object, list string
	containers   bool // it has uses by container
}

var (
	podKind  = kind{"PodMetrics", "PodMetricsList", true}
	nodeKind = kind{"NodeMetrics", "NodeMetricsList", false}
)

// name returns what the document is called.
func (d *document) name() string {
	if d.list {
		return d.kind.list
	}
	return d.kind.object
}

// encoding appends documents as the library would write the objects, to the byte, but
// for the objects. Each is for one document.
type encoding interface {
	// begin appends what comes before the first object, and returns how many bytes
	// the document has; -1 if that is known only in the end.
	begin(b []byte, d *document) ([]byte, int)
	// object appends an object of d. i is its place.
	object(b []byte, d *document, i int) []byte
	// end appends what comes after the last object.
	end(b []byte, d *document) []byte
}

// label is one of an object's.
type label struct{ key, value string }

// labelled remembers how the last labels were written: the pods of an application come
// one after the other, and those of a replica set share one map.
type labelled struct {
	set    uintptr // which map it was
	text   []byte
	sorted []label
}

// write returns what is appended for labels in the order of their keys. It is good until
// the next call. The maps must live as long as l.
func (l *labelled) write(labels map[string]string, appendAll func([]byte, []label) []byte) []byte {
	if len(labels) == 0 {
		return nil
	}
	set := reflect.ValueOf(labels).Pointer()
	if set == l.set {
		return l.text
	}
	l.set, l.sorted = set, l.sorted[:0]
	for k, v := range labels {
		l.sorted = append(l.sorted, label{k, v})
	}
	slices.SortFunc(l.sorted, func(a, b label) int { return cmp.Compare(a.key, b.key) })
	l.text = appendAll(l.text[:0], l.sorted)
	return l.text
}
