package metric

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
)

// SlotTable gives each entity of one source a slot: a small number that stays the same from
// batch to batch. Every step keeps its state of the entity in a slice, by slot.
//
// Samples of one entity in a batch share its slot. A slot may have an owner: for a part it is
// the slot of its entity, for a container the slot of its pod, whether or not the pod is
// reported. A slot stays in use while it, or a slot that it owns, is in a batch or is kept by a
// step (Keep). After a round with neither, the next Assign frees it, and another entity may get
// it. BySlot clears the state of freed slots.
//
// An entity is first compared with the one at its index in the last batch, and then looked up
// in a hash table with open addressing. The table stores slots only: a Go map would store all
// names again.
//
// The zero SlotTable is empty. Slot 0 is never given. It is not safe for concurrent use.
type SlotTable struct {
	order      []uint32 // the slots of the last batch's samples
	slots      []slot   // by number
	index      []uint32 // hash table of slots, 0 for none; at most three quarters full
	used       int      // slots in index
	round      uint32   // counts batches that did not fail, from 1
	generation uint64
	free       []uint32
	freed      []uint32 // those of the current batch
}

// slot is one entity.
type slot struct {
	entity Entity
	owner  uint32 // 0 if there is none
	round  uint32 // the last in which it was in a batch or kept; 0 if the slot is free
}

var slotSeed = maphash.MakeSeed()

// slotGenerations counts the slots that all tables have given.
var slotGenerations atomic.Uint64

// Assign begins a round: it gives b's samples their slots, and frees the slots that no step has
// kept. A failed read frees no slot.
func (t *SlotTable) Assign(b *Batch) {
	b.Slots, t.freed = t, t.freed[:0]
	t.round = max(t.round, 1) // 0 marks a free slot
	if b.Failed() {
		return
	}
	t.freeUnused()
	t.round++
	if len(t.slots) == 0 {
		t.reserve(len(b.Samples))
	}
	before := len(t.order)
	t.order = slices.Grow(t.order, max(len(b.Samples)-before, 0))[:len(b.Samples)]
	for i := range b.Samples {
		sample := &b.Samples[i]
		// Fast path: the same entity as in the last batch.
		if s := t.order[i]; i < before && t.slots[s].entity == sample.Entity {
			sample.Slot = s
			t.Keep(s)
			continue
		}
		sample.Slot = t.SlotOf(&sample.Entity)
		t.order[i] = sample.Slot
	}
}

// SlotOf returns the slot of e for this round. It gives e a slot if it has none.
func (t *SlotTable) SlotOf(e *Entity) uint32 {
	s := t.give(e)
	t.Keep(s)
	return s
}

// Find returns the slot of e; 0 if it has none.
func (t *SlotTable) Find(e *Entity) uint32 {
	if t.used == 0 {
		return 0
	}
	return t.index[t.cell(e)]
}

// Keep keeps a slot and its owners for at least one more round.
func (t *SlotTable) Keep(s uint32) {
	for s != 0 {
		o := &t.slots[s]
		o.round, s = t.round, o.owner
	}
}

// Entity returns the entity of a slot; nil for a free slot. It must not be changed, and is
// valid until the slot is freed.
func (t *SlotTable) Entity(s uint32) *Entity {
	if t.slots[s].round == 0 {
		return nil
	}
	return &t.slots[s].entity
}

// Owner returns the slot of the entity that the part s belongs to, or of the pod of the
// container s; 0 for others.
func (t *SlotTable) Owner(s uint32) uint32 { return t.slots[s].owner }

// PodOf returns the slot of the pod that s is or belongs to; 0 if it belongs to none.
func (t *SlotTable) PodOf(s uint32) uint32 {
	for s != 0 {
		o := &t.slots[s]
		if o.owner == 0 && o.entity.Kind == Pod {
			return s
		}
		s = o.owner
	}
	return 0
}

// Len returns a number larger than every slot.
func (t *SlotTable) Len() int { return len(t.slots) }

// Generation changes with every slot that is given. No two tables have the same generation.
// While it is the same, a slot is of the same entity.
func (t *SlotTable) Generation() uint64 { return t.generation }

// Freed returns the slots that were freed when this round began. Some may be of other entities
// by now. The slice belongs to the table.
func (t *SlotTable) Freed() []uint32 { return t.freed }

// BySlot returns state with an element for each slot of t. Those of freed slots are zero. It
// must be called at least once in each round.
func BySlot[T any](t *SlotTable, state []T) []T {
	if n := t.Len(); n > len(state) {
		grown := make([]T, n)
		copy(grown, state)
		state = grown
	}
	for _, s := range t.freed {
		clear(state[s : s+1])
	}
	return state
}

// freeUnused frees the slots that were neither in the last batch nor kept since.
func (t *SlotTable) freeUnused() {
	for i := range t.slots {
		if o := &t.slots[i]; o.round != 0 && o.round != t.round {
			t.unlink(&o.entity)
			*o = slot{}
			t.freed = append(t.freed, uint32(i))
		}
	}
	t.free = append(t.free, t.freed...)
}

// give returns the slot of e. It makes one if there is none.
func (t *SlotTable) give(e *Entity) uint32 {
	if s := t.Find(e); s != 0 {
		return s
	}
	var owner uint32
	switch {
	case e.Part != "":
		whole := e.Whole()
		owner = t.give(&whole)
	case e.Kind == Container:
		pod := e.OfPod()
		owner = t.give(&pod)
	}
	var s uint32
	if n := len(t.free); n > 0 {
		s, t.free = t.free[n-1], t.free[:n-1]
	} else {
		s = uint32(max(len(t.slots), 1))
		t.reserve(1)
		t.slots = t.slots[:s+1]
	}
	t.slots[s] = slot{entity: *e, owner: owner, round: t.round}
	t.link(s)
	t.generation = slotGenerations.Add(1)
	return s
}

// reserve makes room for n more slots, and few beyond: each node has a table.
func (t *SlotTable) reserve(n int) {
	if length := max(len(t.slots), 1); length+n > cap(t.slots) {
		slots := make([]slot, length, length+max(n, length/8+4))
		copy(slots, t.slots)
		t.slots = slots
	}
}

// hash returns where the search for e begins.
func (t *SlotTable) hash(e *Entity) int {
	h := uint64(e.Kind)
	for _, part := range [...]string{string(e.Node), string(e.Namespace), string(e.Pod), e.Name, e.Part} {
		h = bits.RotateLeft64(h, 23) * 0x9e3779b97f4a7c15
		if part != "" {
			h ^= maphash.String(slotSeed, part)
		}
	}
	return int((h ^ h>>32) & uint64(len(t.index)-1))
}

// cell returns the index of the cell of e, or of the free cell where it would be.
func (t *SlotTable) cell(e *Entity) int {
	for i := t.hash(e); ; i = (i + 1) & (len(t.index) - 1) {
		if s := t.index[i]; s == 0 || t.slots[s].entity == *e {
			return i
		}
	}
}

// link adds slot s, which is not in the index, to it.
func (t *SlotTable) link(s uint32) {
	if 4*(t.used+1) > 3*len(t.index) {
		old := t.index
		t.index = make([]uint32, max(16, 2*len(old)))
		for _, other := range old {
			if other != 0 {
				t.index[t.cell(&t.slots[other].entity)] = other
			}
		}
	}
	t.index[t.cell(&t.slots[s].entity)] = s
	t.used++
}

// unlink removes e from the index and closes the gap in its chain (Knuth, The Art of Computer
// Programming, 6.4, algorithm R).
func (t *SlotTable) unlink(e *Entity) {
	mask := len(t.index) - 1
	gap := t.cell(e)
	for i := (gap + 1) & mask; t.index[i] != 0; i = (i + 1) & mask {
		if home := t.hash(&t.slots[t.index[i]].entity); (i-home)&mask >= (i-gap)&mask {
			t.index[gap], gap = t.index[i], i
		}
	}
	t.index[gap] = 0
	t.used--
}
