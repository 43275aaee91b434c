package resourcemetrics

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric/served"
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
	object(b []byte, d *document, o *object, i int) []byte
	// end appends what comes after the last object.
	end(b []byte, d *document) []byte
}

// object is a reading as it is written.
type object struct {
	*subject
	reading
	uses []usage
}

// usage is a use as it is written.
type usage struct {
	name        string
	cpu, memory quantity
}

// block is how many objects are made ready at a time.
const block = 64

// ready is a block of objects and what they are made of.
type ready struct {
	objects [block]object
	said    []served.Use
	uses    []usage
}

// each calls do for each object in order, until it returns an error. What the objects are
// made of lies all over the memory, and a processor waits for many pieces at once only if
// hardly anything else is to be done between: so pieces are fetched first.
func (d *document) each(do func(o *object, i int) error) error {
	m := &d.ready
	for from := 0; from < len(d.items); from += block {
		objects := m.objects[:min(block, len(d.items)-from)]
		for i := range objects {
			objects[i].reading = *d.at(from + i)
		}
		m.said, m.uses = m.said[:0], m.uses[:0]
		for i := range objects {
			m.said = append(m.said, d.of(&objects[i].reading)...)
		}
		for i := range m.said {
			u := &m.said[i]
			m.uses = append(m.uses, usage{u.Name, cpuText(u.CPU), memoryText(u.Memory)})
		}
		rest := m.uses
		for i := range objects {
			o := &objects[i]
			n := int(o.to - o.from)
			o.subject, o.uses, rest = d.subject(&o.reading), rest[:n], rest[n:]
			if err := do(o, from+i); err != nil {
				return err
			}
		}
	}
	return nil
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
