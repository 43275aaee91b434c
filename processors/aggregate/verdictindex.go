package aggregate

import (
	"hash/maphash"

	"github.com/weir-metrics/weir/metric"
)

// verdictIndex finds the verdict on a group of an entity among those of a batch. It is
// a hash table with open addressing that holds nothing but their places: a node that
// cannot be read has a verdict on each of a hundred entities, and a map would go on
// holding all their names for it. The zero verdictIndex is of no verdicts.
type verdictIndex struct {
	seed  maphash.Seed
	slots []int32 // places and 1; 0 for none. At most half are in use
	n     int
}

type verdictKey struct {
	entity metric.Entity
	group  metric.Group
}

func (x *verdictIndex) clear() {
	if x.n > 0 {
		clear(x.slots)
		x.n = 0
	}
}

// slot returns the slot of e's verdict among all, or the free one it would have.
func (x *verdictIndex) slot(all []metric.Verdict, e *metric.Entity, g metric.Group) int {
	mask := len(x.slots) - 1
	for i := int(maphash.Comparable(x.seed, verdictKey{*e, g})) & mask; ; i = (i + 1) & mask {
		at := x.slots[i] - 1
		if at < 0 || all[at].Group == g && all[at].Entity == *e {
			return i
		}
	}
}

// find returns the place of the verdict on a group of e.
func (x *verdictIndex) find(all []metric.Verdict, e *metric.Entity, g metric.Group) (at int, ok bool) {
	if x.n == 0 {
		return 0, false // Fast path: nothing was said
	}
	at = int(x.slots[x.slot(all, e, g)]) - 1
	return at, at >= 0
}

// set makes at, which is in all, the place of the verdict on its group of its entity.
func (x *verdictIndex) set(all []metric.Verdict, at int) {
	if 2*x.n >= len(x.slots) {
		x.grow(all)
	}
	i := x.slot(all, &all[at].Entity, all[at].Group)
	if x.slots[i] == 0 {
		x.n++
	}
	x.slots[i] = int32(at + 1)
}

func (x *verdictIndex) grow(all []metric.Verdict) {
	if len(x.slots) == 0 {
		x.seed = maphash.MakeSeed()
	}
	old := x.slots
	x.slots = make([]int32, max(16, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			v := &all[slot-1]
			x.slots[x.slot(all, &v.Entity, v.Group)] = slot
		}
	}
}
