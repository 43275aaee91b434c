package memory

import (
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// round is one round of one source: a directory, and the numbers in its order.
// As a part of a Snapshot it is immutable.
//
// data holds a record for each entry, at entry.at, as its shape says:
//
//	each moment, in nanoseconds since the Unix epoch
//	for each group with a window: the window's length, in nanoseconds
//	the number of processes, if it is known
//	each value served, in the catalogue's order: the bits of its float64
//
// so that every number is exact, and found without decoding those before it.
type round struct {
	dir  *directory
	at   time.Time // when the read ended
	data []uint64
}

// spares holds the words of rounds that were replaced before a Snapshot could show them,
// by their capacity, one of each: writes take turns, so that the next of a round as large
// needs no memory of its own, and finds it in the processor's caches.
type spares map[int][]uint64

// spareStep is what capacities are multiples of, for rounds of nearly one size to share.
const spareStep = 64

// take returns an empty slice for so many words.
func (s spares) take(words int) []uint64 {
	size := (words + spareStep - 1) / spareStep * spareStep
	if data := s[size]; data != nil {
		s[size] = nil
		return data
	}
	return make([]uint64, 0, size)
}

// put gives back a slice that nobody reads any more.
func (s spares) put(data []uint64) { s[cap(data)] = data[:0] }

// newRound returns the numbers of samples, which are in d's order, in the memory of data,
// which is empty.
func newRound(d *directory, at time.Time, samples []*metric.Sample, data []uint64) round {
	for i, s := range samples {
		data = appendRecord(data, &d.shapes[d.entries[i].shape], s)
	}
	return round{dir: d, at: at, data: data}
}

func appendRecord(data []uint64, sh *shape, s *metric.Sample) []uint64 {
	begin := len(data)
	data = data[:begin+int(sh.moments)]
	for m := sh.keys; m != 0; m &= m - 1 {
		k := clockKey(bits.TrailingZeros16(m))
		data[begin+slot(sh.slots, k)] = uint64(momentOf(s, k))
	}
	for m := sh.windows; m != 0; m &= m - 1 {
		data = append(data, uint64(s.Rates[bits.TrailingZeros8(m)].Length))
	}
	if sh.processes {
		data = append(data, uint64(s.Instance.Processes))
	}
	for id, v := range s.Values.All() {
		if sh.present[id/64]>>(id%64)&1 != 0 {
			data = append(data, math.Float64bits(v))
		}
	}
	return data
}

// record returns the shape and the words of entry i.
func (r *round) record(i int) (*shape, []uint64) {
	e := &r.dir.entries[i]
	return &r.dir.shapes[e.shape], r.data[e.at:]
}

// value returns what entry i has of a metric, and whether it is served. It
// decodes nothing else.
func (r *round) value(i int, id metric.ID) (float64, bool) {
	sh, rec := r.record(i)
	n, ok := sh.value(id)
	if !ok {
		return 0, false
	}
	return math.Float64frombits(rec[n]), true
}

// time returns when group g of entry i was read; 0 if it was not.
func (r *round) time(i int, g metric.Group) int64 {
	sh, rec := r.record(i)
	if !sh.dated(timeOf(g)) {
		return 0
	}
	return int64(rec[slot(sh.slots, timeOf(g))])
}

// window returns over which window the rates of group g of entry i were
// measured; zero if it has none.
func (r *round) window(i int, g metric.Group) metric.Window {
	sh, rec := r.record(i)
	return sh.window(rec, g)
}

func (s *shape) window(rec []uint64, g metric.Group) metric.Window {
	if !s.dated(endOf(g)) {
		return metric.Window{}
	}
	n := int(s.moments) + bits.OnesCount8(s.windows&(1<<g-1))
	return metric.Window{End: int64(rec[slot(s.slots, endOf(g))]), Length: time.Duration(rec[n])}
}

// decode fills s with entry i, in the memory s has.
func (r *round) decode(i int, s *metric.Sample) {
	e := &r.dir.entries[i]
	sh, rec := r.record(i)
	values := s.Values
	values.Reset()
	*s = metric.Sample{
		Entity: e.entity(r.dir.node), Instance: e.instance(), Values: values,
		Received: sh.received, Held: sh.held, Reasons: sh.reasons,
	}
	for m := sh.times; m != 0; m &= m - 1 {
		g := metric.Group(bits.TrailingZeros8(m))
		s.Times[g] = int64(rec[slot(sh.slots, timeOf(g))])
	}
	for m := sh.windows; m != 0; m &= m - 1 {
		g := metric.Group(bits.TrailingZeros8(m))
		s.Rates[g] = sh.window(rec, g)
	}
	n := sh.head()
	if sh.processes {
		s.Instance.Processes = int32(rec[n-1])
	}
	for w, word := range sh.present {
		for ; word != 0; word &= word - 1 {
			s.Values.Set(metric.ID(w*64+bits.TrailingZeros64(word)), math.Float64frombits(rec[n]))
			n++
		}
	}
}
