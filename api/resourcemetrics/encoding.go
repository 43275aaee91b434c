package resourcemetrics

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// How a LIST is encoded: sendResponse (stream.go) calls encoder.begin once, encoder.object for
// each item in order, and encoder.end once. Each of them appends to one buffer, which is sent
// whenever it has chunkBytes. No memory is allocated for an object: the names and labels of an
// objectMeta are encoded when it is made (labelSet), and timestampCache keeps the few
// timestamps of a LIST as text. Tests compare the bytes with those of the library.

// response is one answer: a list, or a single object.
type response struct {
	groupVersion string // "metrics.k8s.io/v1"
	kind         objectKind
	list         bool
	*usageList
	created time.Time // the creationTimestamp
}

// objectKind is the names of a kind.
type objectKind struct {
	object, list, resource string
	isPod                  bool // it has usage for each container
}

var (
	podKind  = objectKind{"PodMetrics", "PodMetricsList", "pods", true}
	nodeKind = objectKind{"NodeMetrics", "NodeMetricsList", "nodes", false}
)

// name returns the response's kind.
func (r *response) name() string {
	if r.list {
		return r.kind.list
	}
	return r.kind.object
}

// encoder appends one response in a format. The bytes are those that the library writes for
// the same objects.
type encoder interface {
	// begin appends what precedes the first object. It returns the size of the whole
	// response in bytes, or -1 if it is not known yet.
	begin(b []byte, d *response) ([]byte, int)
	// object appends the i-th object of d.
	object(b []byte, d *response, o *encodedObject, i int) []byte
	// end appends what follows the last object.
	end(b []byte, d *response) []byte
}

// encodedObject is an item to be encoded.
type encodedObject struct {
	*objectMeta
	usageItem
	uses []usageText
}

// usageText is a usage as text.
type usageText struct {
	name              string
	cpu, memory, swap quantityText // swap may be none
}

// eachObject calls do for each object in order, until it returns an error.
func (r *response) eachObject(do func(o *encodedObject, i int) error) error {
	var o encodedObject
	for i := range r.items {
		o.usageItem = r.items[i]
		o.objectMeta, o.uses = r.metaOf(&o.usageItem), r.texts[:0]
		usages := r.usagesOf(&o.usageItem)
		for i := range usages {
			u := &usages[i]
			o.uses = append(o.uses, usageText{name: u.Name, cpu: cpuText(u.CPU), memory: memoryText(u.Memory)})
			if o.swap && u.Swap >= 0 {
				o.uses[len(o.uses)-1].swap = memoryText(u.Swap)
			}
		}
		r.texts = o.uses
		if err := do(&o, i); err != nil {
			return err
		}
	}
	return nil
}

// jsonEncoder is application/json.
type jsonEncoder struct {
	timestamps timestampCache
	creation   string // the creation time
}

func (e *jsonEncoder) begin(b []byte, d *response) ([]byte, int) {
	e.creation = `,"creationTimestamp":"` + d.created.UTC().Format(time.RFC3339) + `"`
	b = append(b, `{"kind":"`...)
	b = append(b, d.name()...)
	b = append(b, `","apiVersion":"`...)
	b = append(b, d.groupVersion...)
	b = append(b, `",`...)
	if d.list {
		b = append(b, `"metadata":{},"items":[`...)
	}
	return b, -1
}

func (e *jsonEncoder) object(b []byte, d *response, o *encodedObject, i int) []byte {
	switch {
	case !d.list:
	case i > 0:
		b = append(b, `,{`...)
	default:
		b = append(b, '{')
	}
	b = append(b, `"metadata":{"name":`...)
	b = o.objectMeta.appendText(b, o.name)
	if o.namespace != "" {
		b = append(b, `,"namespace":`...)
		b = o.objectMeta.appendText(b, string(o.namespace))
	}
	b = append(b, e.creation...)
	b = append(b, o.labels.json...)
	b = append(b, e.timestamps.text(o.window)...)
	if !d.kind.isPod {
		b = append(b, ',')
		return append(appendUsage(b, &o.uses[0]), '}')
	}
	b = append(b, `,"containers":[`...)
	for i := range o.uses {
		u := &o.uses[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = appendString(b, u.name)
		b = append(b, ',')
		b = append(appendUsage(b, u), '}')
	}
	return append(b, `]}`...)
}

// appendText appends a name of s as encoding/json writes it.
func (m *objectMeta) appendText(b []byte, name string) []byte {
	if !m.plainNames {
		return appendString(b, name)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

// appendLabels appends labels as a field that is not the first.
func appendLabels(b []byte, labels []label) []byte {
	between := `,"labels":{`
	for _, l := range labels {
		b = append(b, between...)
		b = appendString(b, l.key)
		b = append(b, ':')
		b = appendString(b, l.value)
		between = `,`
	}
	return append(b, '}')
}

func appendUsage(b []byte, u *usageText) []byte {
	b = append(b, `"usage":{"cpu":"`...)
	b = u.cpu.append(b)
	b = append(b, `","memory":"`...)
	b = u.memory.append(b)
	if u.swap.isKnown() {
		b = append(b, `","swap":"`...)
		b = u.swap.append(b)
	}
	return append(b, `"}`...)
}

func (*jsonEncoder) end(b []byte, d *response) []byte {
	if d.list {
		b = append(b, `]}`...)
	}
	return append(b, '\n')
}

// isPlainJSON reports whether encoding/json writes s unchanged, in quotes. That is so for all
// names and labels that an API server accepts.
func isPlainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// appendString appends s as encoding/json writes it.
func appendString(b []byte, s string) []byte {
	if !isPlainJSON(s) {
		quoted, _ := json.Marshal(s) // a string never fails
		return append(b, quoted...)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// timestampCache stores timestamps and windows as text. Each time has one place by its second:
// the objects of a LIST have the times of a few seconds, in no order.
type timestampCache [16]struct {
	second int64
	window time.Duration
	text   []byte
}

// text returns the end of the metadata, the timestamp, which is cut to the second as in RFC
// 3339, and the window.
func (c *timestampCache) text(over metric.Window) []byte {
	second := unixSeconds(over.End)
	at := &c[uint64(second)%uint64(len(c))]
	if at.text == nil || at.second != second || at.window != over.Length {
		at.second, at.window = second, over.Length
		at.text = time.Unix(second, 0).UTC().AppendFormat(append(at.text[:0], `},"timestamp":"`...), time.RFC3339)
		at.text = append(append(append(at.text, `","window":"`...), over.Length.String()...), '"')
	}
	return at.text
}

// protobufEncoder is application/vnd.kubernetes.protobuf: the bytes "k8s" and 0, then a
// runtime.Unknown around the object, with the fields in the order of their numbers. The length
// of a message precedes it, so all lengths are computed before anything is written. Empty
// fields that the library writes are written here too.
type protobufEncoder struct {
	created int64
	sizes   []int32 // of the objects
}

// Tags of fields: the number, and the wire type for data with a length.
const (
	field1 = 1<<3 | 2
	field2 = 2<<3 | 2
	field3 = 3<<3 | 2
	field4 = 4<<3 | 2

	createdField = 8<<3 | 2  // of ObjectMeta
	labelsField  = 11<<3 | 2 // of ObjectMeta

	number1 = 1 << 3
	number2 = 2 << 3
)

const (
	listMeta     = "\x0a\x00\x12\x00\x1a\x00"              // no selfLink, resourceVersion and continue
	generateName = "\x12\x00"                              // between name and namespace
	noUID        = "\x22\x00\x2a\x00\x32\x00" + "\x38\x00" // selfLink, uid, resourceVersion; generation
	noContent    = "\x1a\x00\x22\x00"                      // contentEncoding and contentType
)

// varintSize returns the size of v as a varint, in bytes.
func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// fieldSize returns the size of a field with n bytes of data, including its tag and length.
func fieldSize(n int) int { return 1 + varintSize(uint64(n)) + n }

func appendLength(b []byte, tag byte, n int) []byte {
	return binary.AppendUvarint(append(b, tag), uint64(n))
}

func appendText[T string | []byte](b []byte, tag byte, text T) []byte {
	return append(appendLength(b, tag, len(text)), text...)
}

func (e *protobufEncoder) begin(b []byte, d *response) ([]byte, int) {
	e.created = d.created.Unix()
	raw := 0
	e.sizes = make([]int32, len(d.items))
	_ = d.eachObject(func(o *encodedObject, i int) error { // it never returns an error
		size := e.objectSize(d, o)
		if e.sizes[i] = int32(size); d.list {
			raw += fieldSize(size)
		} else {
			raw = size
		}
		return nil
	})
	if d.list {
		raw += fieldSize(len(listMeta))
	}
	begun := len(b)
	b = append(b, "k8s\x00"...)
	b = appendLength(b, field1, fieldSize(len(d.groupVersion))+fieldSize(len(d.name())))
	b = appendText(b, field1, d.groupVersion)
	b = appendText(b, field2, d.name())
	b = appendLength(b, field2, raw)
	size := len(b) - begun + raw + len(noContent)
	if d.list {
		b = appendText(b, field1, listMeta)
	}
	return b, size
}

func (*protobufEncoder) end(b []byte, _ *response) []byte { return append(b, noContent...) }

// objectSize returns the size of an object in bytes.
func (e *protobufEncoder) objectSize(d *response, o *encodedObject) int {
	n := fieldSize(e.metaSize(o.objectMeta)) + fieldSize(timeSize(unixSeconds(o.window.End))) + fieldSize(1+varintSize(uint64(o.window.Length)))
	for i := range o.uses {
		if u := &o.uses[i]; d.kind.isPod {
			n += fieldSize(u.containerSize())
		} else {
			n += u.size()
		}
	}
	return n
}

func (e *protobufEncoder) object(b []byte, d *response, o *encodedObject, i int) []byte {
	if d.list {
		b = appendLength(b, field2, int(e.sizes[i]))
	}
	b = e.appendMeta(b, o.objectMeta)
	b = appendTime(b, field2, unixSeconds(o.window.End))
	b = appendLength(b, field3, 1+varintSize(uint64(o.window.Length)))
	b = binary.AppendUvarint(append(b, number1), uint64(o.window.Length))
	for i := range o.uses {
		u := &o.uses[i]
		if !d.kind.isPod {
			b = u.appendFields(b, field4)
			continue
		}
		b = appendLength(b, field4, u.containerSize())
		b = appendText(b, field1, u.name)
		b = u.appendFields(b, field2)
	}
	return b
}

// A usage is a map from the resource's name to a message with the quantity's text. All of these
// are so short that their lengths take one byte.

const (
	cpuField    = 1 + 1 + 3 + 1 + 1 + 1 + 1 // plus the quantity
	memoryField = 1 + 1 + 6 + 1 + 1 + 1 + 1
	swapField   = 1 + 1 + 4 + 1 + 1 + 1 + 1
)

func (u *usageText) size() int {
	n := 1 + 1 + cpuField + u.cpu.size() + 1 + 1 + memoryField + u.memory.size()
	if u.swap.isKnown() {
		n += 1 + 1 + swapField + u.swap.size()
	}
	return n
}

func (u *usageText) containerSize() int { return fieldSize(len(u.name)) + u.size() }

func (u *usageText) appendFields(b []byte, tag byte) []byte {
	n := byte(u.cpu.size())
	b = append(b, tag, cpuField+n, field1, 3, 'c', 'p', 'u', field2, 2+n, field1, n)
	b = u.cpu.append(b)
	n = byte(u.memory.size())
	b = append(b, tag, memoryField+n, field1, 6, 'm', 'e', 'm', 'o', 'r', 'y', field2, 2+n, field1, n)
	b = u.memory.append(b)
	if !u.swap.isKnown() {
		return b
	}
	n = byte(u.swap.size())
	b = append(b, tag, swapField+n, field1, 4, 's', 'w', 'a', 'p', field2, 2+n, field1, n)
	return u.swap.append(b)
}

// metaSize returns the size of the ObjectMeta in bytes.
func (e *protobufEncoder) metaSize(o *objectMeta) int {
	return fieldSize(len(o.name)) + len(generateName) + fieldSize(len(o.namespace)) + len(noUID) + fieldSize(timeSize(e.created)) + len(o.labels.protobuf)
}

func (e *protobufEncoder) appendMeta(b []byte, o *objectMeta) []byte {
	b = appendLength(b, field1, e.metaSize(o))
	b = appendText(b, field1, o.name)
	b = append(b, generateName...)
	b = appendText(b, field3, string(o.namespace))
	b = append(b, noUID...)
	b = appendTime(b, createdField, e.created)
	return append(b, o.labels.protobuf...)
}

func appendLabelFields(b []byte, labels []label) []byte {
	for _, l := range labels {
		b = appendLength(b, labelsField, fieldSize(len(l.key))+fieldSize(len(l.value)))
		b = appendText(b, field1, l.key)
		b = appendText(b, field2, l.value)
	}
	return b
}

// unixSeconds returns a time in seconds, rounded down.
func unixSeconds(ns int64) int64 { return time.Unix(0, ns).Unix() }

// timeSize returns the size of a time in bytes: its seconds, and no nanoseconds.
func timeSize(unix int64) int { return 1 + varintSize(uint64(unix)) + 2 }

func appendTime(b []byte, tag byte, unix int64) []byte {
	b = appendLength(b, tag, timeSize(unix))
	b = binary.AppendUvarint(append(b, number1), uint64(unix))
	return append(b, number2, 0)
}
