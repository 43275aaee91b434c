package simulator

import (
	"strconv"
	"time"
)

// writer appends JSON or protobuf. The caller must call its methods in a valid
// order. It escapes only quotes and backslashes, because all values are known.
type writer struct {
	b      []byte
	pretty bool // one value on each line, indented by one space a level, as in the kubelet's summary
	depth  int
	comma  bool
	proto  *proto // not nil: protobuf, see proto.go
}

func (w *writer) line() {
	if w.comma {
		w.b = append(w.b, ',')
	}
	if w.pretty && w.depth > 0 {
		w.b = append(w.b, '\n')
		for range w.depth {
			w.b = append(w.b, ' ')
		}
	}
	w.comma = true
}

// key begins a member of an object.
func (w *writer) key(name string) {
	w.line()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
	if w.pretty {
		w.b = append(w.b, ' ')
	}
}

func (w *writer) open(c byte) {
	w.b = append(w.b, c)
	w.depth++
	w.comma = false
}

func (w *writer) close(c byte) {
	if w.proto != nil {
		w.finish()
		return
	}
	empty := !w.comma
	w.depth--
	w.comma = false
	if !empty && w.pretty {
		w.b = append(w.b, '\n')
		for range w.depth {
			w.b = append(w.b, ' ')
		}
	}
	w.b = append(w.b, c)
	w.comma = true
}

// object begins an object with that name. end ends it.
func (w *writer) object(name string) {
	if w.proto != nil {
		w.begin(name, false)
		return
	}
	w.key(name)
	w.open('{')
}

// array begins an array with that name. endArray ends it.
func (w *writer) array(name string) {
	if w.proto != nil {
		w.begin(name, true)
		return
	}
	w.key(name)
	w.open('[')
}

// item begins an object in an array.
func (w *writer) item() {
	if w.proto != nil {
		w.beginItem()
		return
	}
	w.line()
	w.open('{')
}

func (w *writer) end()      { w.close('}') }
func (w *writer) endArray() { w.close(']') }

func (w *writer) int(name string, v int64) {
	if w.proto != nil {
		w.protoInt(name, uint64(v))
		return
	}
	w.key(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *writer) float(name string, v float64) {
	w.key(name)
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
}

func (w *writer) bool(name string, v bool) {
	if w.proto != nil {
		n := uint64(0)
		if v {
			n = 1
		}
		w.protoInt(name, n)
		return
	}
	w.key(name)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) string(name, v string) {
	if w.proto != nil {
		w.protoText(name, v)
		return
	}
	w.key(name)
	w.quote(v)
}

func (w *writer) quote(v string) {
	w.b = append(w.b, '"')
	for i := range len(v) {
		if v[i] == '"' || v[i] == '\\' {
			w.b = append(w.b, '\\')
		}
		w.b = append(w.b, v[i])
	}
	w.b = append(w.b, '"')
}

// time writes whole seconds, rounded down, as metav1.Time does.
func (w *writer) time(name string, ns int64) {
	if w.proto != nil {
		w.protoTime(name, ns)
		return
	}
	w.key(name)
	w.b = append(w.b, '"')
	w.b = time.Unix(0, ns).UTC().AppendFormat(w.b, "2006-01-02T15:04:05Z")
	w.b = append(w.b, '"')
}

// exactTime writes all nanoseconds.
func (w *writer) exactTime(name string, ns int64) {
	if w.proto != nil {
		w.protoText(name, time.Unix(0, ns).UTC().Format(time.RFC3339Nano))
		return
	}
	w.key(name)
	w.b = append(w.b, '"')
	w.b = time.Unix(0, ns).UTC().AppendFormat(w.b, time.RFC3339Nano)
	w.b = append(w.b, '"')
}
