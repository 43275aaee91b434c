package aggregate

import "hash/maphash"

// hashIndex finds things by their keys, of which it holds no more than their places in a
// slice that is another's: a map would go on holding all their names. It is a hash table
// with open addressing. The zero table is empty. keyOf, which whoever has the slice
// gives with each call, returns the key of the thing at a place.
type hashIndex[K comparable] struct {
	seed  maphash.Seed
	slots []int32 // places and 1; 0 for none. At most half are in use
	n     int
}

// clear forgets everything, and gives the memory up if there was nothing.
func (t *hashIndex[K]) clear() {
	if t.n == 0 {
		t.slots = nil
	}
	clear(t.slots)
	t.n = 0
}

// slot returns the slot of key, or the free one it would have.
func (t *hashIndex[K]) slot(key K, keyOf func(at int) K) *int32 {
	mask := len(t.slots) - 1
	for i := int(maphash.Comparable(t.seed, key)) & mask; ; i = (i + 1) & mask {
		if slot := &t.slots[i]; *slot == 0 || keyOf(int(*slot)-1) == key {
			return slot
		}
	}
}

// find returns the place of the thing with that key, and whether there is one.
func (t *hashIndex[K]) find(key K, keyOf func(at int) K) (at int, ok bool) {
	if t.n == 0 {
		return 0, false // Fast path
	}
	at = int(*t.slot(key, keyOf)) - 1
	return at, at >= 0
}

// set makes at the place of its key.
func (t *hashIndex[K]) set(at int, keyOf func(at int) K) {
	if 2*t.n >= len(t.slots) {
		t.grow(keyOf)
	}
	slot := t.slot(keyOf(at), keyOf)
	if *slot == 0 {
		t.n++
	}
	*slot = int32(at + 1)
}

func (t *hashIndex[K]) grow(keyOf func(at int) K) {
	if len(t.slots) == 0 {
		t.seed = maphash.MakeSeed()
	}
	old := t.slots
	t.slots = make([]int32, max(16, 2*len(old)))
	for _, place := range old {
		if place != 0 {
			*t.slot(keyOf(int(place)-1), keyOf) = place
		}
	}
}
