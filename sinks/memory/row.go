package memory

import (
	"math/bits"

	"github.com/weir-metrics/weir/metric"
)

// tracked is a metric with a history.
type tracked struct {
	id    metric.ID
	group metric.Group
	rate  bool
	of    metric.ID // where rate
	key   clockKey
}

func track(ids []metric.ID) []tracked {
	t := make([]tracked, len(ids))
	for i, id := range ids {
		d := id.Describe()
		t[i] = tracked{id: id, group: d.Group, rate: d.Shape == metric.Rate, of: d.Of, key: timeOf(d.Group)}
		if t[i].rate {
			t[i].key = endOf(d.Group)
		}
	}
	return t
}

// row says where an entity's points lie. It is immutable.
type row struct {
	name
	layout *layout
	born   uint32 // the first round of which it is true
	offset uint32 // in an open round
	id     uint32 // in a block's index
}

// layout is which points an entity has. Rows of many nodes share it.
type layout struct {
	mask uint64 // of Options.HistoryMetrics
	// clocks says, in four bits for each clockKey, which of the row's clocks it
	// goes by.
	clocks uint64
	count  uint8  // of clocks
	width  uint16 // in bytes of an open round
}

// columns returns how many numbers a round of the row has.
func (l *layout) columns() int { return int(l.count) + bits.OnesCount64(l.mask) }

// value returns where in the bytes of an open round metric j's value lies.
func (l *layout) value(j int) int {
	return 2*int(l.count) + 3*bits.OnesCount64(l.mask&(1<<j-1))
}

// wants returns which metrics s should have a place for: those it has, and
// rates that will come with the second sight of a counter. Of parts only file
// systems have a history; interfaces repeat what their entity has.
func wants(metrics []tracked, s *metric.Sample) (mask uint64) {
	for j := range metrics {
		t := &metrics[j]
		if s.Entity.Part != "" && t.group != metric.Filesystem {
			continue
		}
		if s.Values.Has(t.id) || t.rate && s.Values.Has(t.of) {
			mask |= 1 << j
		}
	}
	return mask
}

// moment returns which of a record's moments t goes by, -1 if there is none: for
// a rate the end of its window, else when its group was read.
func (t *tracked) moment(sh *shape) int {
	switch {
	case sh.dated(t.key):
		return slot(sh.slots, t.key)
	case sh.dated(timeOf(t.group)):
		return slot(sh.slots, timeOf(t.group))
	}
	return -1
}

// fits reports whether points of those metrics, of samples of a shape, can be
// written to the row.
func (l *layout) fits(metrics []tracked, want uint64, sh *shape) bool {
	if want&^l.mask != 0 {
		return false
	}
	at := [numClockKeys]int{}
	for m := want; m != 0; m &= m - 1 {
		t := &metrics[bits.TrailingZeros64(m)]
		n := t.moment(sh) + 1
		if c := slot(l.clocks, t.key); n == 0 {
			continue
		} else if at[c] == 0 {
			at[c] = n
		} else if at[c] != n {
			return false
		}
	}
	return true
}

// layOut returns the layout for metrics of samples of a shape. Those of one moment
// share a clock.
func layOut(metrics []tracked, want uint64, sh *shape) layout {
	l := layout{mask: want}
	var at [numClockKeys]int
	var have uint16
	for m := want; m != 0; m &= m - 1 {
		t := &metrics[bits.TrailingZeros64(m)]
		if have&(1<<t.key) != 0 {
			continue
		}
		have |= 1 << t.key
		n, c := t.moment(sh), uint8(0)
		for c < l.count && (n < 0 || at[c] != n) {
			c++
		}
		if c == l.count {
			at[c] = n
			l.count++
		}
		l.clocks |= uint64(c) << (4 * t.key)
	}
	l.width = 2*uint16(l.count) + 3*uint16(bits.OnesCount64(l.mask))
	return l
}
