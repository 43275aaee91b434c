package metric

import (
	"iter"
	"math/bits"
)

// IDSet is a set of metrics. The zero IDSet is empty.
type IDSet [(int(NumMetrics) + 63) / 64]uint64

// Has reports whether id is in s.
func (s *IDSet) Has(id ID) bool { return s[id/64]&(1<<(id%64)) != 0 }

// Rank returns how many members of s come before id in the catalogue.
func (s *IDSet) Rank(id ID) int {
	word, bit := int(id)/64, uint(id)%64
	n := bits.OnesCount64(s[word] & (1<<bit - 1))
	for w := range word {
		n += bits.OnesCount64(s[w])
	}
	return n
}

// Len returns how many members s has.
func (s *IDSet) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Add puts id into s.
func (s *IDSet) Add(id ID) { s[id/64] |= 1 << (id % 64) }

// Remove removes the members of o from s.
func (s *IDSet) Remove(o *IDSet) {
	for w := range s {
		s[w] &^= o[w]
	}
}

// All yields the members of s with their ranks, in the catalogue's order.
func (s *IDSet) All() iter.Seq2[int, ID] {
	return func(yield func(int, ID) bool) {
		i := 0
		for w, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i, ID(w*64+bits.TrailingZeros64(word))) {
					return
				}
				i++
			}
		}
	}
}

// Values holds the values of some metrics. A metric that was not set is absent, which is not
// zero. The zero Values is empty and ready to use.
//
// Values are stored without gaps, in the catalogue's order. Reset keeps the memory, so that
// filling the same Values again allocates nothing. A copy of the struct shares its memory: use
// CopyFrom.
type Values struct {
	present IDSet
	values  []float64
}

// Has reports whether id is present.
func (v *Values) Has(id ID) bool { return v.present.Has(id) }

// HasFrom reports whether id, or a metric that comes after it in the catalogue, is
// present.
func (v *Values) HasFrom(id ID) bool { return len(v.values) > v.present.Rank(id) }

// Get returns the value of id in the catalogue's unit, and whether it is
// present.
func (v *Values) Get(id ID) (float64, bool) {
	if !v.Has(id) {
		return 0, false
	}
	return v.values[v.present.Rank(id)], true
}

// Set makes id present with the given value in the catalogue's unit.
func (v *Values) Set(id ID, value float64) {
	i := v.present.Rank(id)
	if v.Has(id) {
		v.values[i] = value
		return
	}
	v.present.Add(id)
	v.values = append(v.values, 0)
	copy(v.values[i+1:], v.values[i:])
	v.values[i] = value
}

// SetAll sets every value of o.
func (v *Values) SetAll(o *Values) {
	if len(o.values) == 0 {
		return
	}
	if !v.HasFrom(o.first()) { // Fast path: all of o come after all of v
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

// first returns the first metric that is present. v must not be empty.
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
	i := v.present.Rank(id)
	v.values = append(v.values[:i], v.values[i+1:]...)
	v.present[id/64] &^= 1 << (id % 64)
}

// Len returns how many metrics are present.
func (v *Values) Len() int { return len(v.values) }

// Reset makes every metric absent and keeps the memory.
func (v *Values) Reset() {
	v.present = IDSet{}
	v.values = v.values[:0]
}

// Dense returns which metrics are present, and their values in the catalogue's order. The slice
// belongs to v and must not be changed.
func (v *Values) Dense() (present IDSet, values []float64) { return v.present, v.values }

// CopyFrom makes v a copy of o that shares no memory with it.
func (v *Values) CopyFrom(o *Values) {
	v.present = o.present
	v.values = append(v.values[:0], o.values...)
}

// All yields each present metric and its value, in the catalogue's order.
func (v *Values) All() iter.Seq2[ID, float64] {
	return func(yield func(ID, float64) bool) {
		for i, id := range v.present.All() {
			if !yield(id, v.values[i]) {
				return
			}
		}
	}
}
