package memory

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// packRounds is the number of rounds in a block. With more, the column heads take fewer bytes
// and the rounds that are not packed yet take more.
const packRounds = 12

// roundTime is when a round was read.
type roundTime struct {
	base     int64 // the newest time in it, in nanoseconds since the Unix epoch
	received int64 // by our clock
}

// packedBlock is some rounds of one source, packed by columns. It is immutable, except prev.
//
// The points of a row are in data at index[historyRow.id]. Index 0 means that the row has no
// points, indexSum that in every round it is the sum of its pod's containers. The layout is:
//
//	1 bit     1 if the row has a point in every round
//	n bits    if not: one bit for each of the n rounds, 1 if the row has a point in it
//	column    for each of the row's clocks
//	column    for each of its values
//
// A column has a number for each round with a point. It is packed as frame of reference
// (Goldstein, Ramakrishnan and Shaft, "Compressing Relations and Indexes", 1998), either of the
// numbers or of the steps between them, whichever is shorter. The numbers of a constant column
// take no bits.
//
//	1 bit     0: offsets from the smallest number; 1: signed steps (zigzag)
//	5 bits    the number of bits of each offset or step
//	w bits    the smallest number, or the first one; w is 16 for a clock, 24 for a value
//	...       the offsets, or the steps, which are one fewer
//
// Steps of no bits mean something else: a run of columns of values that are zero, or absent, or
// sums in every round. Most of what explain slow needs is zero most of the time.
//
//	1 bit     1
//	5 bits    0
//	2 bits    the float24 of all values
//	4 bits    the number of columns, less 1
type packedBlock struct {
	first  uint32 // number of the first round, counted from the source's first
	unit   int64  // of clocks, in nanoseconds
	stamps []roundTime
	index  []uint32
	data   []byte // and readSlack bytes, so that every read of 8 bytes is inside
	// prev is the previous block. The writer sets it to nil when that block expires; readers
	// that started earlier may still read the expired block.
	prev atomic.Pointer[packedBlock]
}

const (
	offsetBits = 16
	valueBits  = 24
	// headBits is the size of a column's head without its first number.
	headBits  = 1 + 5
	readSlack = 8
	// runHead is the head of a run of columns: steps of no bits.
	runHead = 1
	maxRun  = 1 << 4
	// indexSum in the index marks a row that is a sum in every round.
	indexSum = 1<<32 - 1
)

// bitWriter appends bits, the lowest first.
type bitWriter struct {
	data        []byte
	pending     uint64
	pendingBits uint // number of bits in pending, below 8
}

func (w *bitWriter) writeBits(v uint32, n uint) {
	w.pending |= uint64(v) << w.pendingBits
	for w.pendingBits += n; w.pendingBits >= 8; w.pendingBits -= 8 {
		w.data = append(w.data, byte(w.pending))
		w.pending >>= 8
	}
}

// flush completes the last byte.
func (w *bitWriter) flush() {
	if w.pendingBits > 0 {
		w.data = append(w.data, byte(w.pending))
	}
	w.pending, w.pendingBits = 0, 0
}

// readBits returns n bits of data from the bit offset at.
func readBits(data []byte, at, n int) uint32 {
	return uint32(binary.LittleEndian.Uint64(data[at>>3:]) >> (at & 7) & (1<<n - 1))
}

// writeColumn packs values of size bits each. values must not be empty.
func (w *bitWriter) writeColumn(values []uint32, size uint) {
	least, most, step := values[0], values[0], uint32(0)
	for i, v := range values[1:] {
		least, most = min(least, v), max(most, v)
		step |= zigzag(v - values[i])
	}
	offset, steps := uint(bits.Len32(most-least)), uint(bits.Len32(step))
	if int(steps)*(len(values)-1) < int(offset)*len(values) {
		w.writeBits(1, 1)
		w.writeBits(uint32(steps), 5)
		w.writeBits(values[0], size)
		for i, v := range values[1:] {
			w.writeBits(zigzag(v-values[i]), steps)
		}
		return
	}
	w.writeBits(0, 1)
	w.writeBits(uint32(offset), 5)
	w.writeBits(least, size)
	for _, v := range values {
		w.writeBits(v-least, offset)
	}
}

func zigzag(d uint32) uint32   { return d<<1 ^ uint32(int32(d)>>31) }
func unzigzag(z uint32) uint32 { return z>>1 ^ -(z & 1) }

// readColumn unpacks count values of size bits from the bit offset at to dst, unless dst is
// nil. It returns the offset after them.
func readColumn(data []byte, at, count, size int, dst []uint32) int {
	stepped, each := readBits(data, at, 1) == 1, int(readBits(data, at+1, 5))
	at += headBits
	v := readBits(data, at, size)
	at += size
	if stepped {
		count--
	}
	end := at + count*each
	switch {
	case dst == nil:
	case stepped:
		dst[0] = v
		for i := 1; i <= count; i++ {
			v += unzigzag(readBits(data, at, each))
			dst[i] = v
			at += each
		}
	default:
		for i := range count {
			dst[i] = v + readBits(data, at, each)
			at += each
		}
	}
	return end
}

// columnReader reads the columns of a row one after another.
type columnReader struct {
	data  []byte
	at    int    // in bits
	count int    // of numbers in a column
	run   int    // columns that are left of the current run
	code  uint32 // of the run
}

// next unpacks the next column, whose numbers have size bits, to dst, unless dst is nil.
func (c *columnReader) next(size int, dst []uint32) {
	if c.run == 0 && readBits(c.data, c.at, headBits) == runHead {
		c.code, c.run = readBits(c.data, c.at+headBits, 2), int(readBits(c.data, c.at+headBits+2, 4))+1
		c.at += headBits + 2 + 4
	}
	if c.run == 0 {
		c.at = readColumn(c.data, c.at, c.count, size, dst)
		return
	}
	c.run--
	for i := range dst {
		dst[i] = c.code
	}
}

// pointSeries is one metric of one row over the rounds of a block or of open rounds.
type pointSeries struct {
	codes   [packRounds]float24
	offsets [packRounds]uint32
}

// read fills s with metric j of a row. key is the metric's timestamp.
func (b *packedBlock) read(r *historyRow, key timestampKey, j int, s *pointSeries) {
	*s = pointSeries{}
	switch {
	case int(r.id) >= len(b.index) || b.index[r.id] == 0:
		return
	case b.index[r.id] == indexSum:
		for k := range b.stamps {
			s.codes[k] = float24Sum
		}
		return
	}
	at := int(b.index[r.id]) << 3
	all := uint32(1)<<len(b.stamps) - 1
	here := all
	if at++; readBits(b.data, at-1, 1) == 0 {
		here = readBits(b.data, at, len(b.stamps))
		at += len(b.stamps)
	}
	var clocks, values [packRounds]uint32
	columns := columnReader{data: b.data, at: at, count: bits.OnesCount32(here)}
	for c := range int(r.layout.timestamps) {
		var dst []uint32
		if c == int(r.layout.timestampIndexes[key]) {
			dst = clocks[:]
		}
		columns.next(offsetBits, dst)
	}
	for range r.layout.column(j) - int(r.layout.timestamps) {
		columns.next(valueBits, nil)
	}
	columns.next(valueBits, values[:])
	s.set(here, &values, &clocks)
}

// set sets the rounds in here to the codes and the offsets, which have one number for each.
func (s *pointSeries) set(here uint32, codes, offsets *[packRounds]uint32) {
	for i := 0; here != 0; i++ {
		k := bits.TrailingZeros32(here)
		here &= here - 1
		s.codes[k], s.offsets[k] = float24(codes[i]), offsets[i]
	}
}

// openRounds are the rounds that are not packed yet. A reader knows how many there were when
// its Snapshot was taken; the writer adds rounds only after those.
//
//	round   index row row ...
//	index   4 bytes for each historyRow.id: where the row begins, or 0 or indexSum
//	row     tag... clock... value...
//	tag     2 bits for each value: its float24 if that is below storedTag, else storedTag
//	clock   2 bytes: how many of the block's units before its base
//	value   3 bytes for each storedTag: a float24
//
// All are little endian. Tags end with a byte. So a value of zero takes 2 bits.
type openRounds struct {
	first  uint32
	unit   int64
	stamps [packRounds]roundTime
	data   [packRounds][]byte
}

// storedTag marks a value that has bytes of its own: the float24s below it are absent, zero and a sum.
const storedTag = 3

// rowColumns are the numbers of a row, the clocks first, each in those rounds in which it has a point.
type rowColumns [numTimestampKeys + maxHistoryMetrics][packRounds]uint32

// read fills s with metric j of a row in the first n rounds. key is the metric's timestamp.
func (o *openRounds) read(n int, r *historyRow, key timestampKey, j int, s *pointSeries) {
	*s = pointSeries{}
	var columns rowColumns
	here, _ := o.columns(n, r, &columns)
	s.set(here, &columns[r.layout.column(j)], &columns[r.layout.timestampIndexes[key]])
}

// columns fills columns with a row's numbers in the first n rounds. It returns the rounds in which the
// row has a point, and whether in all n it is a sum.
func (o *openRounds) columns(n int, r *historyRow, columns *rowColumns) (here uint32, sums bool) {
	sums = true
	for k, i := 0, 0; k < n; k++ {
		at := uint32(0)
		if o.first+uint32(k) >= r.firstRound { // else another row had this ID, or none
			at = binary.LittleEndian.Uint32(o.data[k][4*r.id:])
		}
		sums = sums && at == indexSum
		switch at {
		case 0:
			continue
		case indexSum:
			columns.setSums(r.layout, i)
		default:
			columns.setRow(r.layout, i, o.data[k][at:])
		}
		here |= 1 << k
		i++
	}
	return here, sums
}

// setRow sets the numbers of round i to those of row, the bytes of an open round.
func (c *rowColumns) setRow(l *rowLayout, i int, row []byte) {
	at := int(l.tagBytes)
	for n := range l.columns() {
		if n < int(l.timestamps) {
			c[n][i] = readUint(row, at, 2)
			at += 2
			continue
		}
		v := n - int(l.timestamps)
		c[n][i] = uint32(row[v/4]>>(v%4*2)) & storedTag
		if c[n][i] == storedTag {
			c[n][i] = readUint(row, at, 3)
			at += 3
		}
	}
}

// setSums sets the values of round i to sums. The clock of a sum has no meaning: repeated, it takes
// no bits.
func (c *rowColumns) setSums(l *rowLayout, i int) {
	for n := range l.columns() {
		c[n][i] = uint32(float24Sum)
		if n < int(l.timestamps) {
			c[n][i] = c[n][max(i-1, 0)]
		}
	}
}

func readUint(data []byte, at, size int) uint32 {
	v := uint32(data[at]) | uint32(data[at+1])<<8
	if size == 3 {
		v |= uint32(data[at+2]) << 16
	}
	return v
}

// setValue sets metric j of row, whose bytes so far end at end, and returns where they end now. Metrics
// are set in their order.
func (l *rowLayout) setValue(row []byte, end, j int, code float24) int {
	v := bits.OnesCount64(l.mask & (1<<j - 1))
	row[v/4] |= byte(min(code, storedTag)) << (v % 4 * 2)
	if code < storedTag {
		return end
	}
	row[end], row[end+1], row[end+2] = byte(code), byte(code>>8), byte(code>>16)
	return end + 3
}

// pack packs the n rounds of o. ids is larger than every id in rows. buf is scratch memory,
// which is returned for the next call.
func (o *openRounds) pack(n int, rows []historyRow, ids uint32, buf []byte) (*packedBlock, []byte) {
	b := &packedBlock{first: o.first, unit: o.unit, stamps: append([]roundTime(nil), o.stamps[:n]...), index: make([]uint32, ids)}
	w := bitWriter{data: append(buf[:0], 0)} // index 0 means no points
	var columns rowColumns
	for i := range rows {
		r := &rows[i]
		switch here, sums := o.columns(n, r, &columns); {
		case here == 0:
		case sums:
			b.index[r.id] = indexSum
		default:
			b.index[r.id] = uint32(len(w.data))
			w.writeRow(r.layout, n, here, &columns)
			w.flush()
		}
	}
	b.data = append(make([]byte, 0, len(w.data)+readSlack), w.data...)[:len(w.data)+readSlack]
	return b, w.data
}

// writeRow packs a row that has points in the rounds here of n.
func (w *bitWriter) writeRow(l *rowLayout, n int, here uint32, columns *rowColumns) {
	count := bits.OnesCount32(here)
	if count == n {
		w.writeBits(1, 1)
	} else {
		w.writeBits(0, 1)
		w.writeBits(here, uint(n))
	}
	for c, all := 0, l.columns(); c < all; c++ {
		if c < int(l.timestamps) {
			w.writeColumn(columns[c][:count], offsetBits)
		} else if run := columns.runLength(c, min(all, c+maxRun), count); run > 0 {
			w.writeBits(runHead, headBits)
			w.writeBits(columns[c][0], 2)
			w.writeBits(uint32(run-1), 4)
			c += run - 1
		} else {
			w.writeColumn(columns[c][:count], valueBits)
		}
	}
}

// runLength returns how many columns from c on, before end, have the float24 below storedTag that
// column c begins with in all of the first count rounds.
func (c *rowColumns) runLength(from, end, count int) (n int) {
	code := c[from][0]
	for code < storedTag && from+n < end && !slices.ContainsFunc(c[from+n][:count], func(v uint32) bool { return v != code }) {
		n++
	}
	return n
}

// float24 is a value of the history in three bytes: 7 bits of exponent and 17 of mantissa,
// without a sign. It represents values from 2^-40 (smaller ones become 0) to 2^87 (larger ones
// become the largest), rounded to 2^-18 of the value, which is 4 millionths. No metric is
// negative: a negative value or NaN becomes absent.
type float24 uint32

const (
	float24Absent float24 = 0
	float24Zero   float24 = 1
	// float24Sum is a pod's value that is the sum of its containers'.
	float24Sum float24 = 2
	// Codes below 1<<mantissaBits have no exponent, so the three codes above are free.
	mantissaBits = 17
	maxFloat24   = 1<<24 - 1
	// droppedBits is how many mantissa bits of a float64 are dropped.
	droppedBits = 52 - mantissaBits
	// exponentBias is the difference between the exponent biases of float64 and float24.
	exponentBias = uint64(1023-41) << mantissaBits
)

func toFloat24(v float64) float24 {
	if v == 0 {
		return float24Zero
	}
	if !(v > 0) {
		return float24Absent
	}
	rounded := (math.Float64bits(v) + 1<<(droppedBits-1)) >> droppedBits
	if rounded < exponentBias+1<<mantissaBits {
		return float24Zero
	}
	return float24(min(rounded-exponentBias, maxFloat24))
}

// float returns the value, and whether there is one.
func (f float24) float() (float64, bool) {
	switch f {
	case float24Absent, float24Sum:
		return 0, false
	case float24Zero:
		return 0, true
	}
	return math.Float64frombits((uint64(f) + exponentBias) << droppedBits), true
}
