package resourcemetrics

import (
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

// each calls do for each object in order, until it returns an error.
func (d *document) each(do func(o *object, i int) error) error {
	var o object
	for i := range d.items {
		o.reading = d.items[i]
		o.subject, o.uses = d.subject(&o.reading), d.texts[:0]
		for _, u := range d.of(&o.reading) {
			o.uses = append(o.uses, usage{u.Name, cpuText(u.CPU), memoryText(u.Memory)})
		}
		d.texts = o.uses
		if err := do(&o, i); err != nil {
			return err
		}
	}
	return nil
}
