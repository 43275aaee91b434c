package memory

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// replace gives the fresh rows a place and lets rows go: those without a point
// that has not expired, and beyond as many gone entities as there are living
// ones the ones that went first, so that a node on which pods come and go stays
// small. A pod and its containers go together, for it may be their sum.
func (h *history) replace(fresh []row) {
	living, seen := make([]bool, len(h.rows)), slices.Clone(h.seen)
	for _, n := range h.rowOf {
		if n >= 0 {
			living[n] = true
		}
	}
	h.together(living, seen)
	var gone []uint32
	for n := range h.rows {
		if !living[n] && seen[n] >= h.oldest {
			gone = append(gone, seen[n])
		}
	}
	expired := h.oldest
	if most := len(h.rowOf) + 64; len(gone) > most {
		slices.Sort(gone)
		expired = gone[len(gone)-most-1] + 1
	}
	type kept struct {
		row
		seen uint32
	}
	rows := make([]kept, 0, len(h.rows)+len(fresh))
	for n, r := range h.rows {
		if living[n] || seen[n] >= expired {
			rows = append(rows, kept{r, h.seen[n]})
			continue
		}
		if h.free == nil {
			h.free = map[uint16][]spot{}
		}
		h.free[r.layout.width] = append(h.free[r.layout.width], spot{r.offset, r.id})
	}
	if len(fresh) == 0 && len(rows) == len(h.rows) {
		return
	}
	for _, r := range fresh {
		r.born = h.next
		if free := h.free[r.layout.width]; len(free) > 0 {
			r.offset, r.id = free[len(free)-1].offset, free[len(free)-1].id
			h.free[r.layout.width] = free[:len(free)-1]
		} else {
			r.offset, r.id = h.width, h.ids
			h.width += uint32(r.layout.width)
			h.ids++
		}
		rows = append(rows, kept{r, h.next})
	}
	slices.SortStableFunc(rows, func(a, b kept) int { return a.name.compare(b.name) })
	h.rows = make([]row, len(rows))
	h.seen = make([]uint32, len(rows))
	for n, k := range rows {
		h.rows[n], h.seen[n] = k.row, k.seen
	}
	h.join()
}

// anyGone reports whether there are rows of what is no longer reported, or of how
// it once was laid out.
func (h *history) anyGone() bool {
	living := 0
	for _, n := range h.rowOf {
		if n >= 0 {
			living++
		}
	}
	return living < len(h.rows)
}

// together makes the rows of a pod and of its containers alive if the pod's is,
// and seen when the last of them was.
func (h *history) together(living []bool, seen []uint32) {
	type fate struct {
		living bool
		seen   uint32
	}
	pods := map[metric.PodRef]fate{}
	for n := range h.rows {
		if r := &h.rows[n]; r.pod != nil {
			f := pods[r.ref()]
			f.seen = max(f.seen, seen[n])
			f.living = f.living || living[n] && r.what.Value().kind == metric.Pod
			pods[r.ref()] = f
		}
	}
	for n := range h.rows {
		if r := &h.rows[n]; r.pod != nil && r.what.Value().part == "" {
			f := pods[r.ref()]
			// What has no point left to show may go all the same.
			living[n] = living[n] || f.living && seen[n] >= h.oldest
			if seen[n] >= h.oldest {
				seen[n] = f.seen
			}
		}
	}
}

// join finds each entry's row: the latest, where it was laid out anew.
func (h *history) join() {
	h.rowOf = slices.Grow(h.rowOf[:0], len(h.dir.entries))[:len(h.dir.entries)]
	n := 0
	for i := range h.dir.entries {
		e := h.dir.entries[i].name
		h.rowOf[i] = -1
		for ; n < len(h.rows); n++ {
			c := h.rows[n].compare(e)
			if c > 0 {
				break
			}
			if c == 0 {
				h.rowOf[i] = int32(n)
			}
		}
	}
}
