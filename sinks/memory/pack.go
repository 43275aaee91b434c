package memory

import (
	"encoding/binary"
	"math"
	"math/bits"
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
	count := bits.OnesCount32(here)
	for c := range int(r.layout.timestamps) {
		var dst []uint32
		if c == int(r.layout.timestampIndexes[key]) {
			dst = clocks[:]
		}
		at = readColumn(b.data, at, count, offsetBits, dst)
	}
	for range bits.OnesCount64(r.layout.mask & (1<<j - 1)) {
		at = readColumn(b.data, at, count, valueBits, nil)
	}
	readColumn(b.data, at, count, valueBits, values[:])
	for i := range count {
		k := bits.TrailingZeros32(here)
		here &= here - 1
		s.codes[k], s.offsets[k] = float24(values[i]), clocks[i]
	}
}

// openRounds are the rounds that are not packed yet. A reader knows how many there were when
// its Snapshot was taken; the writer adds rounds only after those.
//
//	round   row row row ...
//	row     clock... value...
//	clock   2 bytes, little endian: how many of the block's units before its base
//	value   3 bytes, little endian: a float24
type openRounds struct {
	first  uint32
	unit   int64
	stamps [packRounds]roundTime
	data   [packRounds][]byte
}

// read fills s with metric j of a row in the first n rounds. key is the metric's timestamp.
func (o *openRounds) read(n int, r *historyRow, key timestampKey, j int, s *pointSeries) {
	*s = pointSeries{}
	value, clock := r.layout.valueOffset(j), 2*int(r.layout.timestampIndexes[key])
	for k := range n {
		if data := r.bytesIn(o, k); data != nil {
			s.codes[k] = float24(readUint(data, value, 3))
			s.offsets[k] = readUint(data, clock, 2)
		}
	}
}

// bytesIn returns the row's bytes in round k; nil if the row did not exist then.
func (r *historyRow) bytesIn(o *openRounds, k int) []byte {
	if o.first+uint32(k) < r.firstRound {
		return nil
	}
	return o.data[k][r.offset:][:r.layout.width]
}

func readUint(data []byte, at, size int) uint32 {
	v := uint32(data[at]) | uint32(data[at+1])<<8
	if size == 3 {
		v |= uint32(data[at+2]) << 16
	}
	return v
}

// pack packs the n rounds of o. ids is larger than every id in rows. buf is scratch memory,
// which is returned for the next call.
func (o *openRounds) pack(n int, rows []historyRow, ids uint32, buf []byte) (*packedBlock, []byte) {
	b := &packedBlock{first: o.first, unit: o.unit, stamps: append([]roundTime(nil), o.stamps[:n]...), index: make([]uint32, ids)}
	w := bitWriter{data: append(buf[:0], 0)} // index 0 means no points
	for i := range rows {
		r := &rows[i]
		switch here, all := r.holds(o, n); {
		case !here:
			continue
		case all:
			b.index[r.id] = indexSum
			continue
		}
		b.index[r.id] = uint32(len(w.data))
		r.pack(o, n, &w)
		w.flush()
	}
	b.data = append(make([]byte, 0, len(w.data)+readSlack), w.data...)[:len(w.data)+readSlack]
	return b, w.data
}

// holds reports whether the row has a point in any of the n rounds, and whether all its metrics
// are sums in all of them.
func (r *historyRow) holds(o *openRounds, n int) (here, sums bool) {
	sums = true
	for k := range n {
		h, s := r.holdsIn(o, k)
		here, sums = here || h, sums && s
	}
	return here, sums
}

func (r *historyRow) holdsIn(o *openRounds, k int) (here, sums bool) {
	data := r.bytesIn(o, k)
	if data == nil {
		return false, false
	}
	sums = true
	for at := 2 * int(r.layout.timestamps); at < len(data); at += 3 {
		code := float24(readUint(data, at, 3))
		here, sums = here || code != float24Absent, sums && code == float24Sum
	}
	return here, sums
}

// pack appends the row's points in the n rounds of o.
func (r *historyRow) pack(o *openRounds, n int, w *bitWriter) {
	var rounds [packRounds][]byte
	count, here := 0, uint32(0)
	for k := range n {
		if holds, _ := r.holdsIn(o, k); holds {
			here |= 1 << k
			rounds[count] = r.bytesIn(o, k)
			count++
		}
	}
	if count == n {
		w.writeBits(1, 1)
	} else {
		w.writeBits(0, 1)
		w.writeBits(here, uint(n))
	}
	var values [packRounds]uint32
	at := 0
	for c := range r.layout.columns() {
		size := 3
		if c < int(r.layout.timestamps) {
			size = 2
		}
		for i := range count {
			values[i] = readUint(rounds[i], at, size)
		}
		w.writeColumn(values[:count], uint(8*size))
		at += size
	}
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
