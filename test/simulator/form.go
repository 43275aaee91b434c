package simulator

import (
	"strconv"
	"time"
)

// Form is the encoding of an API object.
type Form struct {
	Protobuf bool  // otherwise JSON
	Typed    bool  // with kind and apiVersion, which protobuf has outside the object
	Metadata bool  // as PartialObjectMetadata: no spec, no status
	Version  int64 // metadata.resourceVersion; 0 for none
}

func (f Form) typed(w *writer, kind string) {
	switch {
	case !f.Typed || f.Protobuf:
	case f.Metadata:
		w.string("kind", "PartialObjectMetadata")
		w.string("apiVersion", "meta.k8s.io/v1")
	default:
		w.string("kind", kind)
		w.string("apiVersion", "v1")
	}
}

func (f Form) version(w *writer) {
	if f.Version != 0 {
		w.string("resourceVersion", strconv.FormatInt(f.Version, 10))
	}
}

// write appends an object of that schema. The function do writes its members.
func (f Form) write(dst []byte, schema message, do func(*writer)) []byte {
	w := &writer{b: dst}
	if f.Protobuf {
		var levels [8]level
		levels[0] = level{field: field{of: schema}}
		w.proto = &proto{levels: levels[:1]}
		do(w)
		return w.b
	}
	w.open('{')
	do(w)
	w.end()
	return w.b
}

// AppendAs appends the Pod as an API server returns it at now.
func (p *Pod) AppendAs(dst []byte, form Form, now time.Time) []byte {
	p.Node.mu.RLock()
	defer p.Node.mu.RUnlock()
	return form.write(dst, podSchema, func(w *writer) { p.object(w, now.UnixNano(), form) })
}

// AppendAs appends the Node as an API server returns it at now. port is the
// port of its kubelet.
func (n *Node) AppendAs(dst []byte, form Form, port int, now time.Time) []byte {
	return form.write(dst, nodeSchema, func(w *writer) { n.object(w, port, now, form) })
}
