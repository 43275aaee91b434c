package recording

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	errShort     = errors.New("a record ends too early")
	errReference = errors.New("a reference to something that does not exist")
)

// maxSkew is how far the time of day may move against the monotonic clock without
// counting as a clock step. The two clocks are not read at the same instant.
const maxSkew = 100 * time.Millisecond

// codec encodes or decodes messages in the wire format of Protocol Buffers. Each message is
// described once, by a function that calls a method of codec for each field, in ascending order
// of the field numbers. When encoding, a method appends its field unless it is zero. When
// decoding, it reads its field if that is the next one, and skips unknown fields before it. The
// first error is kept. After an error all fields are zero.
type codec struct {
	decoding bool
	buf      []byte // encoding: the bytes written; decoding: the rest of the present message
	err      error

	// field and wireType are the next field of the message, if its tag was read; else field
	// is 0. Only when decoding.
	field    protowire.Number
	wireType protowire.Type

	// names is the table of names since the last Begin; numbers has their indexes + 1. New
	// names are written before the record.
	names    []string
	numbers  map[string]uint64
	newNames []byte

	subjects subjects

	began  time.Time // of the run; instants are relative to it
	wall   int64     // time of day of the last instant, in nanoseconds since the Unix epoch
	budget int64     // bytes that the decoder may still keep
	ids    catalogueIDs

	mostSamples     int    // the most samples of any batch so far, when decoding
	packed, packed2 []byte // memory for the packed fields of samples
}

// reset empties the tables of names and subjects.
func (c *codec) reset(began time.Time, budget int64) {
	c.names, c.began, c.budget = c.names[:0], began, budget
	c.numbers = map[string]uint64{}
	c.newNames = c.newNames[:0]
	c.subjects = subjects{index: map[subject]int{}}
}

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.buf, c.field = nil, 0
}

// spend reduces the budget by n bytes that are kept.
func (c *codec) spend(n int) {
	if c.budget -= int64(n); c.decoding && c.budget < 0 {
		c.fail(errors.New("it names more than this reader has memory for"))
	}
}

// next reports whether the next field is number n, and moves to its value.
func (c *codec) next(n protowire.Number, t protowire.Type) bool {
	for c.field < n {
		if c.field != 0 { // a field that this version does not know
			c.consume(protowire.ConsumeFieldValue(c.field, c.wireType, c.buf))
			c.field = 0
		}
		if len(c.buf) == 0 {
			return false
		}
		field, wireType, size := protowire.ConsumeTag(c.buf)
		if !c.consume(size) {
			return false
		}
		c.field, c.wireType = field, wireType
	}
	if c.field != n {
		return false
	}
	if c.wireType != t {
		c.fail(fmt.Errorf("field %d has wire type %d, not %d", n, c.wireType, t))
		return false
	}
	c.field = 0
	return true
}

// consume skips n bytes; n is negative for an error of protowire.
func (c *codec) consume(n int) bool {
	if n < 0 {
		c.fail(errShort)
		return false
	}
	c.buf = c.buf[n:]
	return true
}

// bytes reads the value of a field of bytes.
func (c *codec) bytes() []byte {
	b, size := protowire.ConsumeBytes(c.buf)
	c.consume(size)
	return b
}

// begin begins a nested message. When decoding it reports whether there is one; end must be called if so.
func (c *codec) begin(n protowire.Number) (outer nesting, ok bool) {
	if !c.decoding {
		c.buf = protowire.AppendTag(c.buf, n, protowire.BytesType)
		c.buf = append(c.buf, 0) // the length, if it has one byte
		return nesting{at: len(c.buf)}, true
	}
	if !c.next(n, protowire.BytesType) {
		return nesting{}, false
	}
	content := c.bytes()
	outer = nesting{rest: c.buf}
	c.buf = content
	return outer, c.err == nil
}

// nesting is the state of the outer message, for end.
type nesting struct {
	at   int
	rest []byte
}

// end ends a nested message. When decoding it skips the fields that were not read.
func (c *codec) end(outer nesting) {
	if c.decoding {
		if c.err == nil {
			c.buf, c.field = outer.rest, 0
		}
		return
	}
	n := uint64(len(c.buf) - outer.at)
	if extra := protowire.SizeVarint(n) - 1; extra > 0 {
		var space [8]byte
		c.buf = slices.Insert(c.buf, outer.at, space[:extra]...)
	}
	protowire.AppendVarint(c.buf[:outer.at-1], n)
}

// repeated encodes or decodes a list of messages. size is about the memory of one.
func repeated[T any](c *codec, n protowire.Number, list *[]T, size int, message func(*codec, *T)) {
	if !c.decoding {
		for i := range *list {
			outer, _ := c.begin(n)
			message(c, &(*list)[i])
			c.end(outer)
		}
		return
	}
	for {
		outer, ok := c.begin(n)
		if !ok {
			return
		}
		if c.spend(size); c.err != nil {
			return
		}
		*list = append(*list, *new(T))
		message(c, &(*list)[len(*list)-1])
		c.end(outer)
	}
}

// unsigned is a field of type uint64.
func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *codec, n protowire.Number, v *T) {
	if !c.decoding {
		if *v != 0 {
			c.buf = protowire.AppendTag(c.buf, n, protowire.VarintType)
			c.buf = protowire.AppendVarint(c.buf, uint64(*v))
		}
		return
	}
	if *v = 0; c.next(n, protowire.VarintType) {
		value := c.takeVarint(&c.buf)
		if *v = T(value); uint64(*v) != value {
			c.fail(fmt.Errorf("field %d is %d, which is out of range", n, value))
		}
	}
}

// enum is a field of type uint64 that is below limit.
func enum[T ~uint8](c *codec, n protowire.Number, v *T, limit int) {
	unsigned(c, n, v)
	if c.decoding && int(*v) >= limit {
		c.fail(fmt.Errorf("%d where there are %d", *v, limit))
		*v = 0
	}
}

// signed is a field of type sint64.
func signed[T ~int | ~int32 | ~int64](c *codec, n protowire.Number, v *T) {
	u := protowire.EncodeZigZag(int64(*v))
	unsigned(c, n, &u)
	if c.decoding {
		*v = T(protowire.DecodeZigZag(u))
	}
}

// boolean is a field of type bool.
func (c *codec) boolean(n protowire.Number, v *bool) {
	u := uint8(0)
	if *v {
		u = 1
	}
	unsigned(c, n, &u)
	if c.decoding {
		*v = u != 0
	}
}

// double is a field of type double. Its bits do not change, also for -0 and NaN.
func (c *codec) double(n protowire.Number, v *float64) {
	if !c.decoding {
		if b := math.Float64bits(*v); b != 0 {
			c.buf = protowire.AppendTag(c.buf, n, protowire.Fixed64Type)
			c.buf = protowire.AppendFixed64(c.buf, b)
		}
		return
	}
	if *v = 0; c.next(n, protowire.Fixed64Type) {
		b, size := protowire.ConsumeFixed64(c.buf)
		c.consume(size)
		*v = math.Float64frombits(b)
	}
}

// text is a field of type string that seldom occurs twice.
func text[S ~string | ~[]byte](c *codec, n protowire.Number, s *S) {
	if !c.decoding {
		if len(*s) > 0 {
			c.buf = protowire.AppendTag(c.buf, n, protowire.BytesType)
			c.buf = protowire.AppendVarint(c.buf, uint64(len(*s)))
			c.buf = append(c.buf, *s...)
		}
		return
	}
	if *s = *new(S); c.next(n, protowire.BytesType) {
		b := c.bytes()
		if c.spend(len(b)); c.err == nil {
			*s = S(slices.Clone(b))
		}
	}
}

// name is a string in the table of names: a field of type uint64 with its index + 1.
func name[S ~string](c *codec, n protowire.Number, s *S) {
	u := c.numberOf(string(*s))
	unsigned(c, n, &u)
	if !c.decoding {
		return
	}
	if *s = ""; u > uint64(len(c.names)) {
		c.fail(errReference)
	} else if u > 0 {
		*s = S(c.names[u-1])
	}
}

// numberOf returns the number of a name when encoding, and gives it one if it is new.
func (c *codec) numberOf(s string) uint64 {
	if c.decoding || s == "" {
		return 0
	}
	n, ok := c.numbers[s]
	if !ok {
		n = uint64(len(c.numbers)) + 1
		c.numbers[s] = n
		c.newNames = protowire.AppendTag(c.newNames, recordNames, protowire.BytesType)
		c.newNames = protowire.AppendString(c.newNames, s)
	}
	return n
}

// nameList is a repeated field of names.
func nameList[S ~string](c *codec, n protowire.Number, list *[]S) {
	repeated(c, n, list, 16, func(c *codec, s *S) { name(c, 1, s) })
}

// labels are a repeated field of pairs of names, sorted by the first.
func (c *codec) labels(n protowire.Number, m *map[string]string) {
	type label struct{ name, value string }
	var pairs []label
	if !c.decoding {
		for k, v := range *m {
			pairs = append(pairs, label{k, v})
		}
		slices.SortFunc(pairs, func(a, b label) int { return strings.Compare(a.name, b.name) })
	}
	repeated(c, n, &pairs, 48, func(c *codec, l *label) { name(c, 1, &l.name); name(c, 2, &l.value) })
	if c.decoding && len(pairs) > 0 {
		*m = make(map[string]string, len(pairs))
		for _, l := range pairs {
			(*m)[l.name] = l.value
		}
	}
}

// instant is a time by weir's clock: a message with the time of day since began, and its skew:
// by how much the time of day has moved against the monotonic clock since began. If that is a
// clock step, the decoded time is without it. So the difference of two instants of one run is
// that of the monotonic clock.
func (c *codec) instant(n protowire.Number, t *time.Time) {
	if !c.decoding && t.IsZero() {
		return
	}
	outer, ok := c.begin(n)
	if !ok {
		*t = time.Time{}
		return
	}
	var wall, skew int64
	if !c.decoding {
		wall = t.UnixNano() - c.began.UnixNano()
		skew = wall - int64(t.Sub(c.began))
	}
	signed(c, 1, &wall)
	signed(c, 2, &skew)
	c.end(outer)
	c.wall = c.began.UnixNano() + wall
	if c.decoding {
		if skew > int64(maxSkew) || skew < -int64(maxSkew) {
			wall -= skew
		}
		*t = time.Unix(0, c.began.UnixNano()+wall)
	}
}

// stamp is a time by the API server: an optional field of type fixed64, in nanoseconds since
// the Unix epoch.
func (c *codec) stamp(n protowire.Number, t *time.Time) {
	if !c.decoding {
		if !t.IsZero() {
			c.buf = protowire.AppendTag(c.buf, n, protowire.Fixed64Type)
			c.buf = protowire.AppendFixed64(c.buf, uint64(t.UnixNano()))
		}
		return
	}
	if *t = (time.Time{}); c.next(n, protowire.Fixed64Type) {
		ns, size := protowire.ConsumeFixed64(c.buf)
		c.consume(size)
		*t = time.Unix(0, int64(ns))
	}
}

// packedField reads the bytes of a packed field; nil if there is none.
func (c *codec) packedField(n protowire.Number) []byte {
	if !c.next(n, protowire.BytesType) {
		return nil
	}
	return c.bytes()
}

// appendPacked appends a packed field unless it is empty.
func (c *codec) appendPacked(n protowire.Number, packed []byte) {
	if len(packed) > 0 {
		c.buf = protowire.AppendTag(c.buf, n, protowire.BytesType)
		c.buf = protowire.AppendBytes(c.buf, packed)
	}
}

// takeVarint takes a varint from the front of a field.
func (c *codec) takeVarint(from *[]byte) uint64 {
	v, size := protowire.ConsumeVarint(*from)
	if size < 0 {
		c.fail(errShort)
		return 0
	}
	*from = (*from)[size:]
	return v
}

// eachBit calls do with the index of each bit of mask, ascending.
func eachBit(mask uint16, do func(i int)) {
	for ; mask != 0; mask &= mask - 1 {
		do(bits.TrailingZeros16(mask))
	}
}
