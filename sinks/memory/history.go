package memory

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// The history of one source of one node is a table of rows and a list of rounds. A row says
// where the points of an entity are. The latest rounds are open, each on its own. Older rounds are
// packed by columns into blocks (pack.go). A row never changes its ID.
//
// The usage of a pod is nearly always the sum of its containers' usage. The row of the pod
// then holds only the mark float24Sum.

// historyWriter is the state that all histories share.
type historyWriter struct {
	metrics []historyMetric
	layouts map[rowLayout]*rowLayout
	keep    time.Duration
	plans   []recordPlan // scratch
	buf     []byte       // scratch
}

// recordPlan lists the points in records of one layout.
type recordPlan struct {
	mask   uint64
	points []plannedPoint
}

// plannedPoint is one point of a record.
type plannedPoint struct {
	metric, timestamp, value int // value is a rank
	key                      timestampKey
}

// sourceHistory is the writer's side of one source's history.
type sourceHistory struct {
	historyView
	lastSeen  []uint32 // for each row, the last round in which it had a point
	rowOf     []int32  // for each entry of table, its row; -1 for none
	table     *entityTable
	ids       uint32   // the number of row ids in use or free
	free      []uint32 // ids of removed rows
	next      uint32   // the number of the next round
	oldest    uint32   // the number of the first round that has not expired
	lastSweep int64    // when unused rows were last removed
	bytes     int      // of all rounds
}

// add stores the points of r, the round of samples, and drops expired rounds.
func (h *sourceHistory) add(rec *historyWriter, r *round, samples []*metric.Sample, clock time.Duration, now int64) {
	h.expire(now - int64(rec.keep))
	if h.table != r.table || now-h.lastSweep > int64(time.Minute) {
		h.ensureRows(rec, r.table, samples, now)
	}
	plans := rec.planRecords(r.table)
	newest, oldest := h.span(r, plans)
	if newest == 0 {
		return
	}
	unit := int64(max(clock, time.Millisecond))
	for (newest-oldest)/unit > 1<<offsetBits-1 {
		unit *= 2
	}
	if h.open != nil && (h.rounds == h.roundsPerBlock(r.table.node) || h.open.unit != unit) {
		h.pack(rec)
	}
	if h.open == nil {
		h.open = &openRounds{first: h.next, unit: unit}
	}
	data := h.write(rec, r, plans, newest)
	h.open.stamps[h.rounds] = roundTime{newest, now}
	h.open.data[h.rounds] = data
	h.bytes += len(data)
	h.rounds++
	h.next++
}

// planRecords returns the plan of each layout of d, valid until the next call.
func (h *historyWriter) planRecords(d *entityTable) []recordPlan {
	for len(h.plans) < len(d.layouts) {
		h.plans = append(h.plans, recordPlan{})
	}
	plans := h.plans[:len(d.layouts)]
	for i := range d.layouts {
		sh, p := &d.layouts[i], &plans[i]
		p.mask, p.points = 0, p.points[:0]
		for j := range h.metrics {
			t := &h.metrics[j]
			// A repeated last known value is not a new point.
			if !sh.present.Has(t.id) || sh.lastKnown&(1<<t.group) != 0 {
				continue
			}
			if moment := t.timestampIn(sh); moment >= 0 {
				p.mask |= 1 << j
				p.points = append(p.points, plannedPoint{j, moment, sh.present.Rank(t.id), t.key})
			}
		}
	}
	return plans
}

// span returns the newest and the oldest time of r's points; 0 if there are none.
func (h *sourceHistory) span(r *round, plans []recordPlan) (newest, oldest int64) {
	oldest = math.MaxInt64
	for i, n := range h.rowOf {
		if n < 0 {
			continue
		}
		e := &r.table.entries[i]
		_, record := r.record(i)
		last := -1
		for _, p := range plans[e.layout].points {
			if p.timestamp == last {
				continue
			}
			last = p.timestamp
			if when := int64(record[p.timestamp]); when != 0 {
				newest, oldest = max(newest, when), min(oldest, when)
			}
		}
	}
	return newest, oldest
}

// write returns the points of r as the bytes of an open round.
func (h *sourceHistory) write(rec *historyWriter, r *round, plans []recordPlan, base int64) []byte {
	data := slices.Grow(rec.buf[:0], int(4*h.ids))[:4*h.ids]
	clear(data)
	containers := r.table.kinds[metric.Container]
	for i, n := range h.rowOf {
		e := &r.table.entries[i]
		from := containers
		if r.table.isPod(i) {
			from, containers = r.table.containersAfter(containers, e.pod)
		}
		points := plans[e.layout].points
		if n < 0 || len(points) == 0 {
			continue
		}
		l, begin, sums := h.rows[n].layout, len(data), 0
		tags, end := int(l.tagBytes), int(l.tagBytes)+2*int(l.timestamps)
		data = slices.Grow(data, int(l.width))[:begin+int(l.width)]
		row := data[begin:]
		clear(row[:end])
		sh, record := r.record(i)
		any := false
		for _, p := range points {
			when, v := int64(record[p.timestamp]), sh.valueAt(record, p.value)
			// Rows of parts have only some metrics.
			if when == 0 || l.mask>>p.metric&1 == 0 {
				continue
			}
			code := toFloat24(v)
			if from < containers && h.sums(r, plans, from, containers, p.metric, when, v) {
				code = float24Sum
				sums++
			}
			end = l.setValue(row, end, p.metric, code)
			if code > float24Sum || code == float24Zero {
				binary.LittleEndian.PutUint16(row[tags+2*int(l.timestampIndexes[p.key]):], uint16((base-when)/h.open.unit))
			}
			any = any || code != float24Absent
		}
		at := uint32(begin)
		data = data[:begin+end]
		switch {
		case !any:
			data = data[:begin]
			continue
		case sums == int(l.values):
			data, at = data[:begin], indexSum
		}
		binary.LittleEndian.PutUint32(data[4*h.rows[n].id:], at)
		h.lastSeen[n] = h.next
	}
	rec.buf = data
	return slices.Clone(data)
}

// sums reports whether v, the value of metric j of a pod at the time when, equals the sum of
// the stored values of its containers, entries from to to, at the time of the oldest one.
func (h *sourceHistory) sums(r *round, plans []recordPlan, from, to, j int, when int64, v float64) bool {
	if v != 0 && (v < 1 || v > 1<<80) {
		return false // a float24 may not represent the containers' values
	}
	total, oldest := 0.0, int64(math.MaxInt64)
	for i := from; i < to; i++ {
		e := &r.table.entries[i]
		plan := &plans[e.layout]
		if plan.mask>>j&1 == 0 || e.local.Value().part != "" {
			continue
		}
		p := plan.points[bits.OnesCount64(plan.mask&(1<<j-1))]
		sh, record := r.record(i)
		at, part := int64(record[p.timestamp]), sh.valueAt(record, p.value)
		if at == 0 {
			continue
		}
		if !(part >= 0) || h.rowOf[i] < 0 {
			return false
		}
		total += part
		oldest = min(oldest, at)
	}
	return oldest == when && math.Abs(total-v) <= v*1e-9
}

// ensureRows gives every sample a row with a fitting layout.
func (h *sourceHistory) ensureRows(rec *historyWriter, d *entityTable, samples []*metric.Sample, now int64) {
	changed := h.table != d
	if changed {
		h.table = d
		h.matchRows()
	}
	var fresh []historyRow
	for i, s := range samples {
		if !changed {
			break
		}
		want, sh := wantedMetrics(rec.metrics, s), &d.layouts[d.entries[i].layout]
		if n := h.rowOf[i]; n >= 0 {
			before := h.rows[n].layout
			if before.matches(rec.metrics, want, sh) {
				continue
			}
			want |= before.mask
		} else if want == 0 {
			continue
		}
		fresh = append(fresh, historyRow{entityName: d.entries[i].entityName, layout: rec.layout(newRowLayout(rec.metrics, want, sh))})
	}
	// Unused rows are removed when new rows come, and once a minute.
	if len(fresh) > 0 || now-h.lastSweep > int64(time.Minute) {
		h.lastSweep = now
		if len(fresh) > 0 || h.hasGoneRows() {
			h.replaceRows(fresh)
		}
	}
}

// layout returns the stored copy of l.
func (h *historyWriter) layout(l rowLayout) *rowLayout {
	kept := h.layouts[l]
	if kept == nil {
		kept = new(rowLayout)
		*kept = l
		h.layouts[l] = kept
	}
	return kept
}

// expire drops the rounds that were received before then.
func (h *sourceHistory) expire(limit int64) {
	h.since = limit
	if h.rounds > 0 && h.open.stamps[h.rounds-1].received < limit {
		for _, data := range h.open.data[:h.rounds] {
			h.bytes -= len(data)
		}
		h.open, h.rounds = nil, 0
	}
	h.oldest = h.next - uint32(h.rounds)
	after := (*packedBlock)(nil)
	for b := h.packed; b != nil; b = b.prev.Load() {
		if b.stamps[len(b.stamps)-1].received >= limit {
			after, h.oldest = b, b.first
			continue
		}
		if after == nil {
			h.packed = nil
		} else {
			after.prev.Store(nil)
		}
		for ; b != nil; b = b.prev.Load() {
			h.bytes -= b.size()
		}
		return
	}
}

// roundsPerBlock returns how many open rounds are packed together. The first block of a node is
// shorter, by a hash of the node's name, so that nodes that were first read together do not
// pack their rounds at the same time.
func (h *sourceHistory) roundsPerBlock(node metric.NodeName) int {
	if h.open.first > 0 {
		return packRounds
	}
	return 1 + int(hashPod(metric.PodRef{Name: metric.PodName(node)})%packRounds)
}

// pack packs the open rounds.
func (h *sourceHistory) pack(rec *historyWriter) {
	var b *packedBlock
	b, rec.buf = h.open.pack(h.rounds, h.rows, h.ids, rec.buf)
	for _, data := range h.open.data[:h.rounds] {
		h.bytes -= len(data)
	}
	h.bytes += b.size()
	b.prev.Store(h.packed)
	h.packed, h.open, h.rounds = b, nil, 0
}

// size returns the bytes of b's points.
func (b *packedBlock) size() int { return len(b.data) + 4*len(b.index) }

// replaceRows adds the fresh rows and removes two kinds of rows: those without an unexpired
// point, and the oldest rows of gone entities when there are more of them than of present ones,
// so that a node with many short pods stays small. The rows of a pod and of its containers are
// removed together, because the pod's values may be sums of theirs.
func (h *sourceHistory) replaceRows(fresh []historyRow) {
	living, seen := make([]bool, len(h.rows)), slices.Clone(h.lastSeen)
	for _, n := range h.rowOf {
		if n >= 0 {
			living[n] = true
		}
	}
	h.keepPodsWhole(living, seen)
	expired := h.firstKept(living, seen)
	type kept struct {
		historyRow
		seen uint32
	}
	rows := make([]kept, 0, len(h.rows)+len(fresh))
	for n, r := range h.rows {
		if living[n] || seen[n] >= expired {
			rows = append(rows, kept{r, h.lastSeen[n]})
			continue
		}
		h.free = append(h.free, r.id)
	}
	if len(fresh) == 0 && len(rows) == len(h.rows) {
		return
	}
	for _, r := range fresh {
		r.firstRound = h.next
		h.place(&r)
		rows = append(rows, kept{r, h.next})
	}
	slices.SortStableFunc(rows, func(a, b kept) int { return a.entityName.compare(b.entityName) })
	h.rows = make([]historyRow, len(rows))
	h.lastSeen = make([]uint32, len(rows))
	for n, k := range rows {
		h.rows[n], h.lastSeen[n] = k.historyRow, k.seen
	}
	h.matchRows()
}

// firstKept returns the round in which a row of a gone entity must have been seen to be kept:
// the oldest round of the history, or a later one if there are too many such rows.
func (h *sourceHistory) firstKept(living []bool, seen []uint32) uint32 {
	var gone []uint32
	for n := range h.rows {
		if !living[n] && seen[n] >= h.oldest {
			gone = append(gone, seen[n])
		}
	}
	most := len(h.rowOf) + 64
	if len(gone) <= most {
		return h.oldest
	}
	slices.Sort(gone)
	return gone[len(gone)-most-1] + 1
}

// place sets the ID of r to that of a removed row, or to a new one.
func (h *sourceHistory) place(r *historyRow) {
	if last := len(h.free) - 1; last >= 0 {
		r.id, h.free = h.free[last], h.free[:last]
		return
	}
	r.id = h.ids
	h.ids++
}

// hasGoneRows reports whether there are rows of gone entities or of replaced layouts.
func (h *sourceHistory) hasGoneRows() bool {
	living := 0
	for _, n := range h.rowOf {
		if n >= 0 {
			living++
		}
	}
	return living < len(h.rows)
}

// keepPodsWhole marks the rows of a pod's containers as living if the pod's row is, and sets
// the last round of all of them to the latest.
func (h *sourceHistory) keepPodsWhole(living []bool, seen []uint32) {
	type fate struct {
		living bool
		seen   uint32
	}
	pods := map[metric.PodRef]fate{}
	for n := range h.rows {
		if r := &h.rows[n]; r.pod != nil {
			f := pods[r.podRef()]
			f.seen = max(f.seen, seen[n])
			f.living = f.living || living[n] && r.local.Value().kind == metric.Pod
			pods[r.podRef()] = f
		}
	}
	for n := range h.rows {
		if r := &h.rows[n]; r.pod != nil && r.local.Value().part == "" {
			f := pods[r.podRef()]
			// A row without an unexpired point may still be removed.
			living[n] = living[n] || f.living && seen[n] >= h.oldest
			if seen[n] >= h.oldest {
				seen[n] = f.seen
			}
		}
	}
}

// matchRows finds the row of each entry: the newest, if its layout was replaced.
func (h *sourceHistory) matchRows() {
	h.rowOf = slices.Grow(h.rowOf[:0], len(h.table.entries))[:len(h.table.entries)]
	n := 0
	for i := range h.table.entries {
		e := h.table.entries[i].entityName
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
