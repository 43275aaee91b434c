package rate

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// tracks are the rows of all entities. While a source reports the same entities in
// the same order, which its Layout tells, a row is found by its place in the report;
// only those that are not of the Layout are looked up by name.
type tracks struct {
	layout   *metric.Layout
	slots    []int32                 // of the entities of the layout
	others   map[metric.Entity]int32 // the slots of those which are not of it; nil if there are none
	rows     packedTracks            // by slot
	reported []bool                  // by slot: reported in this round
	free     []int32                 // slots that nobody has
}

// none is the slot of an entity that nothing is kept of.
const none = -1

// begin readies for a round.
func (s *tracks) begin(b *metric.Batch) {
	// A read that gave nothing says nothing of the order either.
	if b.Layout != s.layout && len(b.Samples) > 0 {
		s.rearrange(b.Layout)
	}
	clear(s.reported)
}

// rearrange has the slots go by layout, or by name if it is nil.
func (s *tracks) rearrange(layout *metric.Layout) {
	was := map[metric.Entity]int32{}
	s.each(func(e metric.Entity, slot int32) { was[e] = slot })
	n := len(was)
	if layout != nil {
		n = len(layout.Entities) // and some more, at times
	}
	old := s.rows
	*s = tracks{layout: layout, rows: makePackedTracks(n), reported: make([]bool, 0, n)}
	move := func(e *metric.Entity) int32 {
		s.reported = append(s.reported, false)
		if slot, ok := was[*e]; ok {
			return s.rows.adopt(&old, slot)
		}
		return s.rows.add()
	}
	if layout != nil {
		now := make(map[metric.Entity]int32, n)
		s.slots = make([]int32, n)
		for i := range layout.Entities {
			e := &layout.Entities[i]
			slot, twice := now[*e]
			if !twice {
				slot = move(e)
				now[*e] = slot
				delete(was, *e)
			}
			s.slots[i] = slot
		}
	}
	for e := range was {
		s.addName(&e, move(&e))
	}
}

func (s *tracks) addName(e *metric.Entity, slot int32) {
	if s.others == nil {
		s.others = map[metric.Entity]int32{}
	}
	s.others[*e] = slot
}

// find returns the slot of sample i of b, or none.
func (s *tracks) find(b *metric.Batch, i int) int32 {
	if i < len(s.slots) {
		return s.slots[i]
	}
	e := &b.Samples[i].Entity
	if slot, ok := s.others[*e]; ok {
		return slot
	}
	if s.layout != nil { // added after what the source reported, so it is seldom asked for
		if i := slices.Index(s.layout.Entities, *e); i >= 0 {
			return s.slots[i]
		}
	}
	return none
}

// add returns a slot for an entity that has none.
func (s *tracks) add(e *metric.Entity) int32 {
	slot := int32(none)
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
	} else {
		slot, s.reported = s.rows.add(), append(s.reported, false)
	}
	s.addName(e, slot)
	return slot
}

// drop forgets the entity e of a slot.
func (s *tracks) drop(e *metric.Entity, slot int32) {
	s.rows.clear(slot)
	if _, ok := s.others[*e]; ok {
		delete(s.others, *e)
		s.free = append(s.free, slot)
		if len(s.others) == 0 {
			s.others = nil
		}
	}
}

// each calls do for every entity that something is kept of. It may drop it.
func (s *tracks) each(do func(e metric.Entity, slot int32)) {
	last := int32(none)
	for i, slot := range s.slots {
		// The first of an entity is the one whose slot was not there before.
		if slot > last && !s.rows.empty(slot) {
			do(s.layout.Entities[i], slot)
		}
		last = max(last, slot)
	}
	for e, slot := range s.others {
		do(e, slot)
	}
}
