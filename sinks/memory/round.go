package memory

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// round is one round of one source: a directory, and the numbers in its order.
// It is immutable.
//
// data begins with the offset of each entry's record, four bytes each, little
// endian. A record is a sequence of varints:
//
//	processes
//	for each group with a time:   the time, from that of the group before (the first: from base)
//	for each group with a window: its end, from the group's time; its length, from that of the window before
//	for each metric served:       the value's float64 bits, byte-reversed: round numbers end in zeros
//
// so every number is exact.
type round struct {
	dir  *directory
	at   time.Time // when the read ended
	base int64     // at, in nanoseconds since the Unix epoch
	data []byte
}

// appendRound appends the encoded numbers of samples, which are in d's order.
func appendRound(buf []byte, d *directory, base int64, samples []*metric.Sample) []byte {
	begin := len(buf)
	for range samples {
		buf = append(buf, 0, 0, 0, 0)
	}
	for i, s := range samples {
		binary.LittleEndian.PutUint32(buf[begin+4*i:], uint32(len(buf)-begin))
		buf = appendSample(buf, &d.shapes[d.entries[i].shape], base, s)
	}
	return buf
}

func appendSample(buf []byte, sh *shape, base int64, s *metric.Sample) []byte {
	buf = binary.AppendVarint(buf, int64(s.Instance.Processes))
	last := base
	for m := sh.times; m != 0; m &= m - 1 {
		t := s.Times[bits.TrailingZeros8(m)]
		buf = binary.AppendVarint(buf, t-last)
		last = t
	}
	length := time.Duration(0)
	for m := sh.windows; m != 0; m &= m - 1 {
		g := bits.TrailingZeros8(m)
		buf = binary.AppendVarint(buf, s.Rates[g].End-s.Times[g])
		buf = binary.AppendVarint(buf, int64(s.Rates[g].Length-length))
		length = s.Rates[g].Length
	}
	for id, v := range s.Values.All() {
		if sh.present[id/64]&(1<<(id%64)) != 0 {
			buf = binary.AppendUvarint(buf, bits.ReverseBytes64(math.Float64bits(v)))
		}
	}
	return buf
}

// decode fills s with entry i, in the memory s has.
func (r *round) decode(i int, s *metric.Sample) {
	e := &r.dir.entries[i]
	sh := &r.dir.shapes[e.shape]
	values := s.Values
	values.Reset()
	*s = metric.Sample{
		Entity: *e.entity, Instance: e.instance, Values: values,
		Received: sh.received, Held: sh.held, Reasons: sh.reasons,
	}
	rec := varints(r.data[binary.LittleEndian.Uint32(r.data[4*i:]):])
	s.Instance.Processes = int32(rec.signed())
	last := r.base
	for m := sh.times; m != 0; m &= m - 1 {
		last += rec.signed()
		s.Times[bits.TrailingZeros8(m)] = last
	}
	length := time.Duration(0)
	for m := sh.windows; m != 0; m &= m - 1 {
		g := bits.TrailingZeros8(m)
		s.Rates[g].End = s.Times[g] + rec.signed()
		length += time.Duration(rec.signed())
		s.Rates[g].Length = length
	}
	for w, word := range sh.present {
		for ; word != 0; word &= word - 1 {
			v := math.Float64frombits(bits.ReverseBytes64(rec.unsigned()))
			s.Values.Set(metric.ID(w*64+bits.TrailingZeros64(word)), v)
		}
	}
}

// varints is a sequence of varints that this package wrote.
type varints []byte

func (v *varints) unsigned() uint64 {
	x, n := binary.Uvarint(*v)
	*v = (*v)[n:]
	return x
}

func (v *varints) signed() int64 {
	x, n := binary.Varint(*v)
	*v = (*v)[n:]
	return x
}
