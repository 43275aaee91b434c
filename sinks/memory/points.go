package memory

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

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
		t[i] = tracked{id: id, group: d.Group, rate: d.Type == metric.Rate, of: d.RateOf, key: timeOf(d.Group)}
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

// Point is one value of a metric at one moment.
type Point struct {
	Time  int64   // nanoseconds since the Unix epoch, by the node's clock, to the millisecond
	Value float64 // in the catalogue's unit, within 4 millionths
}

// past is what a view shows of a history. It is immutable but for the blocks'
// prev.
type past struct {
	rows   []row // sorted by entity
	packed *block
	open   *open
	rounds int   // of open
	since  int64 // what was received before has expired
}

// piece is some rounds in a row.
type piece struct {
	first  uint32
	unit   int64
	stamps []stamp
	packed *block // or open
	open   *open
}

// read fills s with metric j, which goes by key, of a row.
func (p *piece) read(r *row, key clockKey, j int, s *series) {
	switch {
	case r.born >= p.first+uint32(len(p.stamps)):
		*s = series{} // another row had its place
	case p.packed != nil:
		p.packed.read(r, key, j, s)
	default:
		p.open.read(len(p.stamps), r, key, j, s)
	}
}

// pieces appends what there is, the oldest first.
func (p *past) pieces(all []piece) []piece {
	for b := p.packed; b != nil; b = b.prev.Load() {
		all = append(all, piece{first: b.first, unit: b.unit, stamps: b.stamps, packed: b})
	}
	slices.Reverse(all)
	if p.rounds > 0 {
		all = append(all, piece{first: p.open.first, unit: p.open.unit, stamps: p.open.stamps[:p.rounds], open: p.open})
	}
	return all
}

// points returns what is known of metric j, which is t, of e from one time to
// another, both included, oldest first.
func (p *past) points(e *metric.Entity, t *tracked, j int, from, to int64) []Point {
	own := p.of(e)
	if len(own) == 0 {
		return nil
	}
	var some [8]piece
	pieces := p.pieces(some[:0])
	var parts []row // those of a pod's containers, once they are asked for
	if e.Kind == metric.Pod && e.Part == "" {
		parts = p.containers(e.PodRef())
	}
	found := make([]Point, 0, len(pieces)*packRounds)
	var s series
	for i := range pieces {
		piece := &pieces[i]
		for n := range own {
			if own[n].layout.mask>>j&1 == 0 {
				continue
			}
			piece.read(&own[n], t.key, j, &s)
			var sums *[packRounds]Point
			for k, st := range piece.stamps {
				if st.received < p.since || piece.first+uint32(k) < own[n].born {
					continue
				}
				v, ok := s.codes[k].float()
				point := Point{st.base - int64(s.clocks[k])*piece.unit, v}
				if s.codes[k] == sum {
					if sums == nil {
						sums = piece.sum(parts, t.key, j)
					}
					point = sums[k]
					ok = point.Time != 0
				}
				if ok && point.Time >= from && point.Time <= to {
					found = append(found, point)
				}
			}
		}
	}
	return inOrder(found)
}

// inOrder returns points sorted by time, which they nearly always are. Times may
// repeat (a node that had nothing newer): the later read is kept. If a node's
// clock stepped they run backwards.
func inOrder(points []Point) []Point {
	slices.Reverse(points)
	later := func(a, b Point) int { return cmp.Compare(b.Time, a.Time) }
	if !slices.IsSortedFunc(points, later) {
		slices.SortStableFunc(points, later)
	}
	points = slices.CompactFunc(points, func(a, b Point) bool { return a.Time == b.Time })
	slices.Reverse(points)
	return points
}

// of returns the rows of e: several if it was laid out anew.
func (p *past) of(e *metric.Entity) []row {
	from := sort.Search(len(p.rows), func(n int) bool { return p.rows[n].compareTo(e) >= 0 })
	to := from
	for to < len(p.rows) && p.rows[to].of(e) {
		to++
	}
	return p.rows[from:to]
}

// containers returns the rows of a pod's containers and their parts.
func (p *past) containers(ref metric.PodRef) []row {
	e := metric.Entity{Kind: metric.Container, Namespace: ref.Namespace, Pod: ref.Name}
	from := sort.Search(len(p.rows), func(n int) bool { return p.rows[n].compareTo(&e) >= 0 })
	to := from
	for to < len(p.rows) && p.rows[to].ref() == ref {
		to++
	}
	return p.rows[from:to]
}

// sum adds up what the rows of a pod's containers have of metric j in each round.
// Time is the oldest one's; 0 if there is none.
func (p *piece) sum(rows []row, key clockKey, j int) *[packRounds]Point {
	var sums [packRounds]Point
	var s series
	for n := range rows {
		r := &rows[n]
		if r.layout.mask>>j&1 == 0 || r.what.Value().part != "" {
			continue
		}
		p.read(r, key, j, &s)
		for k, st := range p.stamps {
			v, ok := s.codes[k].float()
			if !ok || p.first+uint32(k) < r.born {
				continue
			}
			at := st.base - int64(s.clocks[k])*p.unit
			if sums[k].Time == 0 || at < sums[k].Time {
				sums[k].Time = at
			}
			sums[k].Value += v
		}
	}
	return &sums
}
