package metric

import (
	"iter"
	"math/bits"
)

// words is how many 64-bit words hold one bit for each metric.
const words = (int(NumMetrics) + 63) / 64

// Values holds some metrics' values. A metric that was not set is absent,
// which is not zero. The zero Values is empty and ready to use.
//
// Values are kept dense, in the catalogue's order; Get costs a few
// instructions. Reset keeps the memory, so that filling the same Values again
// allocates nothing. Copying the struct shares its memory: use CopyFrom.
type Values struct {
	present [words]uint64
	values  []float64
}

// rank returns the index of id in v.values, were it present.
func (v *Values) rank(id ID) int {
	word, bit := int(id)/64, uint(id)%64
	n := bits.OnesCount64(v.present[word] & (1<<bit - 1))
	for w := range word {
		n += bits.OnesCount64(v.present[w])
	}
	return n
}

// Has reports whether id is present.
func (v *Values) Has(id ID) bool { return v.present[id/64]&(1<<(id%64)) != 0 }

// HasFrom reports whether id, or a metric that comes after it in the catalogue, is
// present.
func (v *Values) HasFrom(id ID) bool { return len(v.values) > v.rank(id) }

// Get returns the value of id in the catalogue's unit, and whether it is
// present.
func (v *Values) Get(id ID) (float64, bool) {
	if !v.Has(id) {
		return 0, false
	}
	return v.values[v.rank(id)], true
}

// Set makes id present with the given value in the catalogue's unit.
func (v *Values) Set(id ID, value float64) {
	i := v.rank(id)
	if v.Has(id) {
		v.values[i] = value
		return
	}
	v.present[id/64] |= 1 << (id % 64)
	v.values = append(v.values, 0)
	copy(v.values[i+1:], v.values[i:])
	v.values[i] = value
}

// SetAll sets everything that o holds.
func (v *Values) SetAll(o *Values) {
	if len(o.values) == 0 {
		return
	}
	if !v.HasFrom(o.first()) { // Fast path: o's come after all of v's
		for w := range v.present {
			v.present[w] |= o.present[w]
		}
		v.values = append(v.values, o.values...)
		return
	}
	for id, value := range o.All() {
		v.Set(id, value)
	}
}

// first returns the first metric that is present; v holds some.
func (v *Values) first() ID {
	w := 0
	for v.present[w] == 0 {
		w++
	}
	return ID(w*64 + bits.TrailingZeros64(v.present[w]))
}

// Delete makes id absent.
func (v *Values) Delete(id ID) {
	if !v.Has(id) {
		return
	}
	i := v.rank(id)
	v.values = append(v.values[:i], v.values[i+1:]...)
	v.present[id/64] &^= 1 << (id % 64)
}

// Len returns how many metrics are present.
func (v *Values) Len() int { return len(v.values) }

// Reset makes every metric absent and keeps the memory.
func (v *Values) Reset() {
	v.present = [words]uint64{}
	v.values = v.values[:0]
}

// Dense returns which metrics are present, a bit each, and their values in the catalogue's
// order. The slice is v's own, and not to be changed.
func (v *Values) Dense() (present [words]uint64, values []float64) { return v.present, v.values }

// CopyFrom makes v hold what o holds, in memory of its own.
func (v *Values) CopyFrom(o *Values) {
	v.present = o.present
	v.values = append(v.values[:0], o.values...)
}

// All yields each present metric and its value, in the catalogue's order.
func (v *Values) All() iter.Seq2[ID, float64] {
	return func(yield func(ID, float64) bool) {
		i := 0
		for w, word := range v.present {
			for ; word != 0; word &= word - 1 {
				if !yield(ID(w*64+bits.TrailingZeros64(word)), v.values[i]) {
					return
				}
				i++
			}
		}
	}
}
