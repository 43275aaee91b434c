package memory

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// The history of one source of one node is a list of blocks, one for each
// round, and a table of rows, which say where in the blocks an entity's points
// lie. A row keeps its place for as long as it lives, so that a point is found
// without reading any other.
//
//	block   row row row ...             zeros at the end are cut off
//	row     clock... value...
//	clock   2 bytes, little endian: how many of the block's units before its base
//	value   3 bytes, little endian: a float24
//
// Metrics of an entity that were read at one moment share a clock; with two of
// them a point costs (2+3+3)/2 = 4 bytes.

// block holds the points of one round. It is immutable but for prev.
type block struct {
	seq      uint32 // counts the source's blocks
	base     int64  // the newest time in it, in nanoseconds since the Unix epoch
	unit     int64  // of clocks, in nanoseconds
	received int64  // when we read it, by our clock
	data     []byte
	// prev is the block before. It is cut when that expires, while readers
	// that began earlier may still walk on.
	prev atomic.Pointer[block]
}

// row says where an entity's points lie. It is immutable.
type row struct {
	entity *metric.Entity
	born   uint32 // the first block of which it is true
	offset uint32 // in the block
	width  uint16 // in bytes
	mask   uint64 // of Options.HistoryMetrics
	// clocks says, in four bits for each clockKey, which of the row's clocks it
	// goes by.
	clocks uint64
	count  uint8 // of clocks
	relaid uint8 // how often the entity's clocks had to be told apart anew
}

// clockKey tells apart the moments that one entity's metrics may be of: a
// group's time, and the end of the window of its rates.
type clockKey uint8

const numClockKeys = 2 * metric.NumGroups

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
		t[i] = tracked{id: id, group: d.Group, rate: d.Shape == metric.Rate, of: d.Of, key: clockKey(2 * d.Group)}
		if t[i].rate {
			t[i].key++
		}
	}
	return t
}

// history is the writer's side of one source's history.
type history struct {
	rows  []row   // sorted by entity; replaced, never changed, for readers hold it
	seen  []int64 // for each row, when it last had a point, by our clock
	rowOf []int32 // for each entry of dir, its row; -1 for none
	dir   *directory
	width uint32              // of a block
	free  map[uint16][]uint32 // places of rows that are gone, by width
	head  *block
	next  uint32 // the next block's seq
	sweep int64  // when rows were last looked through
	bytes int    // of all blocks' data
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

// moment returns when s measured t; 0 if there is no point to be kept: not
// served, or an older round's number that still stands.
func moment(t *tracked, s *metric.Sample) int64 {
	if !served(s.Reasons[t.group]) || s.Held&(1<<t.group) != 0 || !s.Values.Has(t.id) {
		return 0
	}
	if t.rate && s.Rates[t.group].End != 0 {
		return s.Rates[t.group].End
	}
	return s.Times[t.group]
}

// fits reports whether s can be written to the row.
func (r *row) fits(metrics []tracked, s *metric.Sample) bool {
	want := wants(metrics, s)
	if want&^r.mask != 0 {
		return false
	}
	var at [numClockKeys]int64
	for m := want; m != 0; m &= m - 1 {
		t := &metrics[bits.TrailingZeros64(m)]
		when := moment(t, s)
		if when == 0 {
			continue
		}
		if c := r.clock(t.key); at[c] == 0 {
			at[c] = when
		} else if at[c] != when {
			return false
		}
	}
	return true
}

func (r *row) clock(k clockKey) uint8 { return uint8(r.clocks >> (4 * k) & 15) }

// layOut returns the row for s. Metrics of one moment share a clock, until the
// entity had to be laid out anew twice: then each kind of moment has its own.
func layOut(metrics []tracked, s *metric.Sample, before *row) row {
	r := row{mask: wants(metrics, s)}
	if before != nil {
		r.mask |= before.mask
	}
	apart := false
	if before != nil && r.mask == before.mask {
		r.relaid = before.relaid + 1
		apart = r.relaid > 2
	}
	var at [numClockKeys]int64
	var have uint16
	for m := r.mask; m != 0; m &= m - 1 {
		t := &metrics[bits.TrailingZeros64(m)]
		if have&(1<<t.key) != 0 {
			continue
		}
		have |= 1 << t.key
		when, c := moment(t, s), uint8(0)
		if when == 0 {
			when = s.Times[t.group] // not served yet: a good guess
		}
		if apart {
			c = r.count
		}
		for c < r.count && at[c] != when {
			c++
		}
		if c == r.count {
			at[c] = when
			r.count++
		}
		r.clocks |= uint64(c) << (4 * t.key)
	}
	r.width = 2*uint16(r.count) + 3*uint16(bits.OnesCount64(r.mask))
	return r
}

// at returns where in the row metric j's value lies.
func (r *row) at(j int) uint32 {
	return 2*uint32(r.count) + 3*uint32(bits.OnesCount64(r.mask&(1<<j-1)))
}

// add stores the points of samples, which are in d's order, and drops what
// expired. buf is scratch, returned to be used again.
func (h *history) add(metrics []tracked, d *directory, samples []*metric.Sample, clock, keep time.Duration, now int64, buf []byte) []byte {
	h.expire(now - int64(keep))
	h.makeRoom(metrics, d, samples, now-int64(keep))
	newest, oldest := int64(0), int64(0)
	for i, s := range samples {
		if h.rowOf[i] < 0 {
			continue
		}
		for j := range metrics {
			if when := moment(&metrics[j], s); when != 0 {
				newest = max(newest, when)
				if oldest == 0 || when < oldest {
					oldest = when
				}
			}
		}
	}
	if newest == 0 {
		return buf
	}
	b := &block{seq: h.next, base: newest, unit: int64(max(clock, time.Millisecond)), received: now}
	h.next++
	for (newest-oldest)/b.unit > 1<<16-1 {
		b.unit *= 2
	}
	buf = slices.Grow(buf[:0], int(h.width))[:h.width]
	clear(buf)
	for i, s := range samples {
		if n := h.rowOf[i]; n >= 0 && h.rows[n].write(buf, b, metrics, s) {
			h.seen[n] = now
		}
	}
	end := len(buf)
	for end > 0 && buf[end-1] == 0 {
		end--
	}
	b.data = append([]byte(nil), buf[:end]...)
	h.bytes += len(b.data)
	b.prev.Store(h.head)
	h.head = b
	return buf
}

// write puts the points of s into a block's bytes. It reports whether there
// were any.
func (r *row) write(data []byte, b *block, metrics []tracked, s *metric.Sample) bool {
	data = data[r.offset : r.offset+uint32(r.width)]
	any := false
	for m := r.mask; m != 0; m &= m - 1 {
		j := bits.TrailingZeros64(m)
		t := &metrics[j]
		when := moment(t, s)
		if when == 0 {
			continue
		}
		v, _ := s.Values.Get(t.id)
		code := toFloat24(v)
		at := r.at(j)
		data[at], data[at+1], data[at+2] = byte(code), byte(code>>8), byte(code>>16)
		binary.LittleEndian.PutUint16(data[2*r.clock(t.key):], uint16((b.base-when)/b.unit))
		any = true
	}
	return any
}

// makeRoom sees to it that every sample has a row that fits it.
func (h *history) makeRoom(metrics []tracked, d *directory, samples []*metric.Sample, expired int64) {
	if h.dir != d {
		h.dir = d
		h.join()
	}
	var fresh []row
	for i, s := range samples {
		var before *row
		if n := h.rowOf[i]; n >= 0 {
			if before = &h.rows[n]; before.fits(metrics, s) {
				continue
			}
		} else if wants(metrics, s) == 0 {
			continue
		}
		r := layOut(metrics, s, before)
		r.entity = d.entries[i].entity
		fresh = append(fresh, r)
	}
	// Rows are let go when something new comes, and when they may be many.
	if now := expired; len(fresh) > 0 || now-h.sweep > int64(time.Minute) {
		h.sweep = now
		h.replace(fresh, expired)
	}
}

// replace gives the fresh rows a place and lets rows go: those without a point
// since expired, and beyond as many gone entities as there are living ones the
// ones that went first, so that a node on which pods come and go stays small.
func (h *history) replace(fresh []row, expired int64) {
	living := make([]bool, len(h.rows))
	for _, n := range h.rowOf {
		if n >= 0 {
			living[n] = true
		}
	}
	var gone []int64
	for n := range h.rows {
		if !living[n] && h.seen[n] >= expired {
			gone = append(gone, h.seen[n])
		}
	}
	if most := len(h.rowOf) + 64; len(gone) > most {
		slices.Sort(gone)
		expired = gone[len(gone)-most-1] + 1
	}
	type kept struct {
		row
		seen int64
	}
	rows := make([]kept, 0, len(h.rows)+len(fresh))
	for n, r := range h.rows {
		if living[n] || h.seen[n] >= expired {
			rows = append(rows, kept{r, h.seen[n]})
			continue
		}
		if h.free == nil {
			h.free = map[uint16][]uint32{}
		}
		h.free[r.width] = append(h.free[r.width], r.offset)
	}
	if len(fresh) == 0 && len(rows) == len(h.rows) {
		return
	}
	for _, r := range fresh {
		r.born = h.next
		if places := h.free[r.width]; len(places) > 0 {
			r.offset = places[len(places)-1]
			h.free[r.width] = places[:len(places)-1]
		} else {
			r.offset = h.width
			h.width += uint32(r.width)
		}
		rows = append(rows, kept{r, 0})
	}
	slices.SortStableFunc(rows, func(a, b kept) int { return compareNames(a.entity, b.entity) })
	h.rows = make([]row, len(rows))
	h.seen = make([]int64, len(rows))
	for n, k := range rows {
		h.rows[n], h.seen[n] = k.row, k.seen
	}
	h.join()
}

// join finds each entry's row: the latest, where it was laid out anew.
func (h *history) join() {
	h.rowOf = slices.Grow(h.rowOf[:0], len(h.dir.entries))[:len(h.dir.entries)]
	n := 0
	for i := range h.dir.entries {
		e := h.dir.entries[i].entity
		h.rowOf[i] = -1
		for ; n < len(h.rows); n++ {
			c := compareNames(h.rows[n].entity, e)
			if c > 0 {
				break
			}
			if c == 0 {
				h.rowOf[i] = int32(n)
			}
		}
	}
}

// expire cuts off blocks received before then.
func (h *history) expire(then int64) {
	if h.head != nil && h.head.received < then {
		h.bytes -= h.head.size()
		h.head = nil
		return
	}
	for b := h.head; b != nil; b = b.prev.Load() {
		if p := b.prev.Load(); p != nil && p.received < then {
			b.prev.Store(nil)
			h.bytes -= p.size()
			return
		}
	}
}

// size returns the bytes of b's data and of all before.
func (b *block) size() (n int) {
	for ; b != nil; b = b.prev.Load() {
		n += len(b.data)
	}
	return n
}
