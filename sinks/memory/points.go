package memory

import (
	"cmp"
	"slices"
	"sort"

	"github.com/weir-metrics/weir/metric"
)

// Point is one value of a metric at one moment.
type Point struct {
	Time  int64   // nanoseconds since the Unix epoch, by the node's clock, to the millisecond
	Value float64 // in the catalogue's unit, within 4 millionths
}

// points returns what rows and the blocks from head on know of metric j of e
// from one time to another, both included, oldest first.
func points(rows []row, head *block, e *metric.Entity, t *tracked, j int, from, to int64) []Point {
	n := sort.Search(len(rows), func(n int) bool { return compareNames(rows[n].entity, e) >= 0 })
	var found []Point
	for ; n < len(rows) && sameName(rows[n].entity, e); n++ {
		r := &rows[n]
		if r.mask&(1<<j) == 0 {
			continue
		}
		for b := head; b != nil && b.seq >= r.born; b = b.prev.Load() {
			if p, ok := r.read(b, t, j); ok && p.Time >= from && p.Time <= to {
				found = append(found, p)
			}
		}
	}
	// Blocks are in the order of reading; times may repeat (a node that had
	// nothing newer) and, if its clock stepped, run backwards.
	slices.SortStableFunc(found, func(a, b Point) int { return cmp.Compare(a.Time, b.Time) })
	return slices.CompactFunc(found, func(a, b Point) bool { return a.Time == b.Time })
}

// read returns the point of metric j, which is t, in b, and whether there is
// one.
func (r *row) read(b *block, t *tracked, j int) (Point, bool) {
	at := func(i uint32) uint32 {
		if i += r.offset; int(i) < len(b.data) {
			return uint32(b.data[i])
		}
		return 0 // what is cut off is zeros
	}
	i := r.at(j)
	v, ok := float24(at(i) | at(i+1)<<8 | at(i+2)<<16).float()
	if !ok {
		return Point{}, false
	}
	i = 2 * uint32(r.clock(t.key))
	ago := int64(at(i) | at(i+1)<<8)
	return Point{Time: b.base - ago*b.unit, Value: v}, true
}
