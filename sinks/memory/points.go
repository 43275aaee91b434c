package memory

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// historyMetric is a metric with a history.
type historyMetric struct {
	id     metric.ID
	group  metric.Group
	rate   bool
	rateOf metric.ID // where rate
	key    timestampKey
}

func historyMetrics(ids []metric.ID) []historyMetric {
	t := make([]historyMetric, len(ids))
	for i, id := range ids {
		d := id.Describe()
		t[i] = historyMetric{id: id, group: d.Group, rate: d.Type == metric.Rate, rateOf: d.RateOf, key: groupTime(d.Group)}
		if t[i].rate {
			t[i].key = windowEnd(d.Group)
		}
	}
	return t
}

// historyRow shows where an entity's points are stored. It is immutable.
type historyRow struct {
	entityName
	layout     *rowLayout
	firstRound uint32 // the first round that has this row
	id         uint32 // in the index of a round or block
}

// rowLayout lists the metrics of a row and their timestamps. Rows of many nodes share it.
type rowLayout struct {
	mask uint64 // of Options.HistoryMetrics
	// timestampIndexes holds the index of each timestampKey's timestamp in the row.
	timestampIndexes timestampIndexes
	timestamps       uint8  // number of timestamps
	values           uint8  // number of metrics
	tagBytes         uint8  // of a row in an open round
	width            uint16 // of such a row, at most
}

// columns returns how many numbers a round of the row has.
func (l *rowLayout) columns() int { return int(l.timestamps) + int(l.values) }

// setWidth computes the fields that follow from the others.
func (l *rowLayout) setWidth() {
	l.values = uint8(bits.OnesCount64(l.mask))
	l.tagBytes = (l.values + 3) / 4
	l.width = uint16(l.tagBytes) + 2*uint16(l.timestamps) + 3*uint16(l.values)
}

// column returns the index of metric j's value in a round of the row.
func (l *rowLayout) column(j int) int { return int(l.timestamps) + bits.OnesCount64(l.mask&(1<<j-1)) }

// wantedMetrics returns the metrics that the row of s needs: those that s has, and the rates
// that the second reading of a counter will add. File systems are the only parts with a
// history.
func wantedMetrics(metrics []historyMetric, s *metric.Sample) (mask uint64) {
	for j := range metrics {
		t := &metrics[j]
		if s.Entity.Part != "" && t.group != metric.Filesystem {
			continue
		}
		if s.Values.Has(t.id) || t.rate && s.Values.Has(t.rateOf) {
			mask |= 1 << j
		}
	}
	return mask
}

// timestampIn returns the index of t's timestamp in a record, or -1: the end of the window for
// a rate, else the time of the group.
func (h *historyMetric) timestampIn(sh *recordLayout) int {
	switch {
	case sh.hasTimestamp(h.key):
		return int(sh.timestampIndexes[h.key])
	case sh.hasTimestamp(groupTime(h.group)):
		return int(sh.timestampIndexes[groupTime(h.group)])
	}
	return -1
}

// matches reports whether the points of the metrics want, from records of layout sh, can be
// written to the row.
func (l *rowLayout) matches(metrics []historyMetric, want uint64, sh *recordLayout) bool {
	if want&^l.mask != 0 {
		return false
	}
	at := [numTimestampKeys]int{}
	for m := want; m != 0; m &= m - 1 {
		t := &metrics[bits.TrailingZeros64(m)]
		n := t.timestampIn(sh) + 1
		if c := l.timestampIndexes[t.key]; n == 0 {
			continue
		} else if at[c] == 0 {
			at[c] = n
		} else if at[c] != n {
			return false
		}
	}
	return true
}

// newRowLayout returns the layout for the metrics want of records of layout sh. Metrics with
// the same timestamp share one.
func newRowLayout(metrics []historyMetric, want uint64, sh *recordLayout) rowLayout {
	l := rowLayout{mask: want}
	var at [numTimestampKeys]int
	var present timestampKeyMask
	for m := want; m != 0; m &= m - 1 {
		t := &metrics[bits.TrailingZeros64(m)]
		if present&(1<<t.key) != 0 {
			continue
		}
		present |= 1 << t.key
		n, c := t.timestampIn(sh), uint8(0)
		for c < l.timestamps && (n < 0 || at[c] != n) {
			c++
		}
		if c == l.timestamps {
			at[c] = n
			l.timestamps++
		}
		l.timestampIndexes[t.key] = c
	}
	l.setWidth()
	return l
}

// Point is one value of a metric at one moment.
type Point struct {
	Time  int64   // nanoseconds since the Unix epoch, by the node's clock, to the millisecond
	Value float64 // in the catalogue's unit, within 4 millionths
}

// historyView is the part of a history that readers see. It is immutable, except the field prev
// of its blocks.
type historyView struct {
	rows   []historyRow // sorted by entity
	packed *packedBlock
	open   *openRounds
	rounds int   // of open
	since  int64 // rounds received earlier have expired
}

// historyPiece is consecutive rounds: one block, or the open rounds.
type historyPiece struct {
	first  uint32
	unit   int64
	stamps []roundTime
	packed *packedBlock // or open
	open   *openRounds
}

// read fills s with metric j of a row. key is the metric's timestamp.
func (p *historyPiece) read(r *historyRow, key timestampKey, j int, s *pointSeries) {
	switch {
	case r.firstRound >= p.first+uint32(len(p.stamps)):
		*s = pointSeries{} // another row had this ID then
	case p.packed != nil:
		p.packed.read(r, key, j, s)
	default:
		p.open.read(len(p.stamps), r, key, j, s)
	}
}

// pieces appends all pieces to all, the oldest first.
func (h *historyView) pieces(all []historyPiece) []historyPiece {
	for b := h.packed; b != nil; b = b.prev.Load() {
		all = append(all, historyPiece{first: b.first, unit: b.unit, stamps: b.stamps, packed: b})
	}
	slices.Reverse(all)
	if h.rounds > 0 {
		all = append(all, historyPiece{first: h.open.first, unit: h.open.unit, stamps: h.open.stamps[:h.rounds], open: h.open})
	}
	return all
}

// points returns the points of e from one time to another, both included, oldest first. t is
// the metric, and j its index.
func (h *historyView) points(e *metric.Entity, t *historyMetric, j int, from, to int64) []Point {
	own := h.rowsWhere(func(n entityName) int { return n.compareEntity(e) }) // several if its layout was replaced
	if len(own) == 0 {
		return nil
	}
	var some [8]historyPiece
	pieces := h.pieces(some[:0])
	var parts []historyRow // the rows of a pod's containers and their parts
	if e.Kind == metric.Pod && e.Part == "" {
		parts = h.rowsWhere(func(n entityName) int { return n.comparePod(metric.Container, e.PodRef()) })
	}
	found := make([]Point, 0, len(pieces)*packRounds)
	var s pointSeries
	for i := range pieces {
		piece := &pieces[i]
		for n := range own {
			if own[n].layout.mask>>j&1 == 0 {
				continue
			}
			piece.read(&own[n], t.key, j, &s)
			var sums *[packRounds]Point
			for k, st := range piece.stamps {
				if st.received < h.since || piece.first+uint32(k) < own[n].firstRound {
					continue
				}
				v, ok := s.codes[k].float()
				point := Point{st.base - int64(s.offsets[k])*piece.unit, v}
				if s.codes[k] == float24Sum {
					if sums == nil {
						sums = piece.sumRows(parts, t.key, j)
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
	return sortPoints(found)
}

// sortPoints returns points sorted by time, which they nearly always are already. Of several
// points of one time the last read is kept. Times run backwards if a node's clock stepped.
func sortPoints(points []Point) []Point {
	slices.Reverse(points)
	later := func(a, b Point) int { return cmp.Compare(b.Time, a.Time) }
	if !slices.IsSortedFunc(points, later) {
		slices.SortStableFunc(points, later)
	}
	points = slices.CompactFunc(points, func(a, b Point) bool { return a.Time == b.Time })
	slices.Reverse(points)
	return points
}

// rowsWhere returns the rows with a name for which compare is 0. The rows are in the order of compare.
func (h *historyView) rowsWhere(compare func(entityName) int) []historyRow {
	from, to := equalRange(len(h.rows), func(n int) int { return compare(h.rows[n].entityName) })
	return h.rows[from:to]
}

// sumRows returns, for each round, the sum of metric j over the rows of a pod's containers and
// the time of the oldest value, 0 if there is none.
func (p *historyPiece) sumRows(rows []historyRow, key timestampKey, j int) *[packRounds]Point {
	var sums [packRounds]Point
	var s pointSeries
	for n := range rows {
		r := &rows[n]
		if r.layout.mask>>j&1 == 0 || r.local.Value().part != "" {
			continue
		}
		p.read(r, key, j, &s)
		for k, st := range p.stamps {
			v, ok := s.codes[k].float()
			if !ok || p.first+uint32(k) < r.firstRound {
				continue
			}
			at := st.base - int64(s.offsets[k])*p.unit
			if sums[k].Time == 0 || at < sums[k].Time {
				sums[k].Time = at
			}
			sums[k].Value += v
		}
	}
	return &sums
}
