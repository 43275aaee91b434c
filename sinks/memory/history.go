package memory

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// The history of one source of one node is a table of rows, which say where an
// entity's points lie, and rounds: the latest open, where a point is found by
// its place, the others packed by columns into blocks (pack.go). A row keeps its
// place for as long as it lives.
//
// What a pod uses is nearly always the sum of what its containers use. Then its
// row says so, and takes next to nothing.

// recorder is what all histories have in common.
type recorder struct {
	metrics []tracked
	layouts map[layout]*layout
	keep    time.Duration
	plans   []plan // scratch
	buf     []byte // scratch
}

// plan is which points records of one shape hold.
type plan struct {
	mask   uint64
	points []planned
}

// planned is one point of a record.
type planned struct {
	j, moment, value int
}

// history is the writer's side of one source's history.
type history struct {
	past
	seen   []uint32 // for each row, the last round in which it had a point
	rowOf  []int32  // for each entry of dir, its row; -1 for none
	dir    *directory
	width  uint32            // of an open round
	ids    uint32            // of rows, ever at once
	free   map[uint16][]spot // of rows that are gone, by width
	next   uint32            // counts rounds
	oldest uint32            // the first that has not expired
	sweep  int64             // when rows were last looked through
	bytes  int               // of all rounds
}

// spot is a row's place in rounds.
type spot struct{ offset, id uint32 }

// add stores the points of r, of which samples are the source, and drops what
// expired.
func (h *history) add(rec *recorder, r *round, samples []*metric.Sample, clock time.Duration, now int64) {
	h.expire(now - int64(rec.keep))
	if h.dir != r.dir || now-h.sweep > int64(time.Minute) {
		h.makeRoom(rec, r.dir, samples, now)
	}
	plans := rec.plan(r.dir)
	newest, oldest := h.span(r, plans)
	if newest == 0 {
		return
	}
	unit := int64(max(clock, time.Millisecond))
	for (newest-oldest)/unit > 1<<clockBits-1 {
		unit *= 2
	}
	if h.open != nil && (h.rounds == h.fill(r.dir.node) || h.open.unit != unit) {
		h.pack(rec)
	}
	if h.open == nil {
		h.open = &open{first: h.next, unit: unit}
	}
	data := make([]byte, h.width)
	h.write(rec, r, plans, data, newest)
	h.open.stamps[h.rounds] = stamp{newest, now}
	h.open.data[h.rounds] = data
	h.bytes += len(data)
	h.rounds++
	h.next++
}

// plan returns what each of d's shapes holds. It is good until the next call.
func (rec *recorder) plan(d *directory) []plan {
	for len(rec.plans) < len(d.shapes) {
		rec.plans = append(rec.plans, plan{})
	}
	plans := rec.plans[:len(d.shapes)]
	for i := range d.shapes {
		sh, p := &d.shapes[i], &plans[i]
		p.mask, p.points = 0, p.points[:0]
		for j := range rec.metrics {
			t := &rec.metrics[j]
			value, ok := sh.value(t.id)
			// An older round's number that still stands is no point.
			if moment := t.moment(sh); ok && moment >= 0 && sh.held&(1<<t.group) == 0 {
				p.mask |= 1 << j
				p.points = append(p.points, planned{j, moment, value})
			}
		}
	}
	return plans
}

// span returns the newest and the oldest time of r's points; 0 if there are none.
func (h *history) span(r *round, plans []plan) (newest, oldest int64) {
	oldest = math.MaxInt64
	for i, n := range h.rowOf {
		if n < 0 {
			continue
		}
		e := &r.dir.entries[i]
		last := -1
		for _, p := range plans[e.shape].points {
			if p.moment == last {
				continue
			}
			last = p.moment
			if when := int64(r.data[int(e.at)+p.moment]); when != 0 {
				newest, oldest = max(newest, when), min(oldest, when)
			}
		}
	}
	return newest, oldest
}

// write puts the points of r into the bytes of an open round.
func (h *history) write(rec *recorder, r *round, plans []plan, data []byte, base int64) {
	containers := r.dir.kinds[metric.Container]
	for i, n := range h.rowOf {
		e := &r.dir.entries[i]
		from := containers
		if r.dir.isPod(i) {
			from, containers = r.dir.after(containers, e.pod)
		}
		points := plans[e.shape].points
		if n < 0 || len(points) == 0 {
			continue
		}
		l := h.rows[n].layout
		row := data[h.rows[n].offset:][:l.width]
		record := r.data[e.at:]
		any := false
		for _, p := range points {
			when, v := int64(record[p.moment]), math.Float64frombits(record[p.value])
			// Rows of parts hold only some of them.
			if when == 0 || l.mask>>p.j&1 == 0 {
				continue
			}
			code := toFloat24(v)
			if from < containers && h.sums(r, plans, from, containers, p.j, when, v) {
				code = sum
			}
			at := l.value(p.j)
			row[at], row[at+1], row[at+2] = byte(code), byte(code>>8), byte(code>>16)
			if code > sum || code == zero {
				binary.LittleEndian.PutUint16(row[2*slot(l.clocks, rec.metrics[p.j].key):], uint16((base-when)/h.open.unit))
			}
			any = any || code != absent
		}
		if any {
			h.seen[n] = h.next
		}
	}
}

// sums reports whether metric j of a pod, which is v at when, is the sum of what
// is stored of its containers, which are the entries in between, at the time of
// the oldest.
func (h *history) sums(r *round, plans []plan, from, to, j int, when int64, v float64) bool {
	if v != 0 && (v < 1 || v > 1<<80) {
		return false // where a float24 has no room for the parts
	}
	total, oldest := 0.0, int64(math.MaxInt64)
	for i := from; i < to; i++ {
		e := &r.dir.entries[i]
		plan := &plans[e.shape]
		if plan.mask>>j&1 == 0 || e.what.Value().part != "" {
			continue
		}
		p := plan.points[bits.OnesCount64(plan.mask&(1<<j-1))]
		at, part := int64(r.data[int(e.at)+p.moment]), math.Float64frombits(r.data[int(e.at)+p.value])
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

// makeRoom sees to it that every sample has a row that fits it.
func (h *history) makeRoom(rec *recorder, d *directory, samples []*metric.Sample, now int64) {
	changed := h.dir != d
	if changed {
		h.dir = d
		h.join()
	}
	var fresh []row
	for i, s := range samples {
		if !changed {
			break
		}
		want, sh := wants(rec.metrics, s), &d.shapes[d.entries[i].shape]
		if n := h.rowOf[i]; n >= 0 {
			before := h.rows[n].layout
			if before.fits(rec.metrics, want, sh) {
				continue
			}
			want |= before.mask
		} else if want == 0 {
			continue
		}
		fresh = append(fresh, row{name: d.entries[i].name, layout: rec.layout(layOut(rec.metrics, want, sh))})
	}
	// Rows are let go when something new comes, and now and then.
	if len(fresh) > 0 || now-h.sweep > int64(time.Minute) {
		h.sweep = now
		if len(fresh) > 0 || h.anyGone() {
			h.replace(fresh)
		}
	}
}

// layout returns the stored copy of l.
func (rec *recorder) layout(l layout) *layout {
	kept := rec.layouts[l]
	if kept == nil {
		kept = new(layout)
		*kept = l
		rec.layouts[l] = kept
	}
	return kept
}

// expire drops what was received before then.
func (h *history) expire(then int64) {
	h.since = then
	if h.rounds > 0 && h.open.stamps[h.rounds-1].received < then {
		for _, data := range h.open.data[:h.rounds] {
			h.bytes -= len(data)
		}
		h.open, h.rounds = nil, 0
	}
	h.oldest = h.next - uint32(h.rounds)
	after := (*block)(nil)
	for b := h.packed; b != nil; b = b.prev.Load() {
		if b.stamps[len(b.stamps)-1].received >= then {
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

// fill returns how many open rounds are packed together. The first of a node's are fewer,
// how many goes by its name: so that of nodes that were first read together, half as many
// rounds wait to be packed when most do.
func (h *history) fill(node metric.NodeName) int {
	if h.open.first > 0 {
		return packRounds
	}
	return 1 + int(hashOf(metric.PodRef{Name: metric.PodName(node)})%packRounds)
}

// pack packs the open rounds.
func (h *history) pack(rec *recorder) {
	var b *block
	b, rec.buf = h.open.pack(h.rounds, h.rows, h.ids, rec.buf)
	for _, data := range h.open.data[:h.rounds] {
		h.bytes -= len(data)
	}
	h.bytes += b.size()
	b.prev.Store(h.packed)
	h.packed, h.open, h.rounds = b, nil, 0
}

// size returns the bytes of b's points.
func (b *block) size() int { return len(b.data) + 2*len(b.index) }

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
