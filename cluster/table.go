package cluster

import "maps"

// table is a map in parts: a change copies only the parts that it touches. A table is
// immutable: with returns another one. The zero table is empty.
type table[K ~string, V comparable] struct {
	parts      []part[K, V] // a power of two of them, by hash; none if there are no entries
	n          int
	generation uint64
}

// part is one part. Two parts with the same generation are equal.
type part[K ~string, V comparable] struct {
	entries    map[K]V
	generation uint64
}

// partSize is about how many entries a part has.
const partSize = 32

func (t *table[K, V]) index(name K) int {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return int(h^h>>15) & (len(t.parts) - 1)
}

func (t *table[K, V]) get(name K) (v V) {
	if t.n == 0 {
		return v
	}
	return t.parts[t.index(name)].entries[name]
}

// each calls do for every entry, in no order, until do returns false. It returns true if do
// never returned false.
func (t *table[K, V]) each(do func(K, V) bool) bool {
	for _, p := range t.parts {
		for k, v := range p.entries {
			if !do(k, v) {
				return false
			}
		}
	}
	return true
}

// with returns the table after changes. A zero value in changes deletes an entry.
func (t table[K, V]) with(changes map[K]V) table[K, V] {
	if len(changes) == 0 {
		return t
	}
	var gone V
	next := table[K, V]{n: t.n, generation: nextGeneration()}
	for k, v := range changes {
		switch known := t.get(k) != gone; {
		case known && v == gone:
			next.n--
		case !known && v != gone:
			next.n++
		}
	}
	if capacity := partSize * len(t.parts); next.n == 0 || next.n > 2*capacity || 8*next.n < capacity {
		next.rebuild(&t, changes)
		return next
	}
	next.parts = append(next.parts, t.parts...)
	for k, v := range changes {
		p := &next.parts[next.index(k)]
		if p.generation != next.generation {
			*p = part[K, V]{maps.Clone(p.entries), next.generation}
		}
		if p.entries == nil {
			p.entries = map[K]V{}
		}
		if p.entries[k] = v; v == gone {
			delete(p.entries, k)
		}
	}
	return next
}

// rebuild fills t with the entries of old after changes. t needs another number of parts than
// old.
func (t *table[K, V]) rebuild(old *table[K, V], changes map[K]V) {
	if t.n == 0 {
		return
	}
	parts := 1
	for parts*partSize < t.n {
		parts *= 2
	}
	t.parts = make([]part[K, V], parts)
	for i := range t.parts {
		t.parts[i] = part[K, V]{map[K]V{}, t.generation}
	}
	var gone V
	old.each(func(k K, v V) bool {
		if _, changed := changes[k]; !changed {
			t.parts[t.index(k)].entries[k] = v
		}
		return true
	})
	for k, v := range changes {
		if v != gone {
			t.parts[t.index(k)].entries[k] = v
		}
	}
}

// since calls do for each name with another value in t than in old. The zero value means that
// there is no entry. since skips the parts that both share.
func (t *table[K, V]) since(old *table[K, V], do func(name K, old, current V)) {
	var none V
	shared := func(i int) bool {
		return len(t.parts) == len(old.parts) && t.parts[i].generation == old.parts[i].generation
	}
	for i, p := range t.parts {
		if shared(i) {
			continue
		}
		for k, v := range p.entries {
			if before := old.get(k); before != v {
				do(k, before, v)
			}
		}
	}
	for i, p := range old.parts {
		if shared(i) {
			continue
		}
		for k, before := range p.entries {
			if t.get(k) == none {
				do(k, before, none)
			}
		}
	}
}
