package memory

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// round is one round of one source: an entityTable and the numbers of its entries. A round
// in a Snapshot is immutable.
//
// words holds where the record of each entry begins, two in a word, then the records. A recordLayout
// describes a record:
//
//	each timestamp, in nanoseconds since the Unix epoch
//	for each group with a window: the window's length, in nanoseconds
//	the number of processes, if it is known
//	one bit for each value that may be served, in the catalogue's order: 1 if it is not zero
//	each of these values that is not zero: the bits of its float64
//
// So every number is exact, and a reader finds it without decoding those before it. Many are zero: of
// what explain slow reads, nearly all.
type round struct {
	table *entityTable
	words []uint64
}

// bufferPool has the words of rounds that were replaced before a Snapshot had them: one slice
// for each capacity. Writes are serial, so the next round of the same size reuses the slice and
// finds it in the processor's caches.
type bufferPool map[int][]uint64

// bufferStep divides every capacity, so that rounds of nearly the same size share a slice.
const bufferStep = 64

// take returns an empty slice with room for the given number of words.
func (b bufferPool) take(words int) []uint64 {
	size := (words + bufferStep - 1) / bufferStep * bufferStep
	if data := b[size]; data != nil {
		b[size] = nil
		return data
	}
	return make([]uint64, 0, size)
}

// giveBack stores a slice that no reader has.
func (b bufferPool) giveBack(data []uint64) { b[cap(data)] = data[:0] }

// newRound returns the round of samples, which are in d's order. It appends the words to data, an empty
// slice.
func newRound(d *entityTable, samples []*metric.Sample, data []uint64) round {
	data = append(data, make([]uint64, (len(samples)+1)/2)...)
	for i, s := range samples {
		data[i/2] |= uint64(len(data)) << (i % 2 * 32)
		data = appendRecord(data, &d.layouts[d.entries[i].layout], s)
	}
	return round{table: d, words: data}
}

func appendRecord(data []uint64, sh *recordLayout, s *metric.Sample) []uint64 {
	begin := len(data)
	data = slices.Grow(data, int(sh.timestamps))[:begin+int(sh.timestamps)]
	for m := sh.timestampKeys; m != 0; m &= m - 1 {
		k := timestampKey(bits.TrailingZeros32(uint32(m)))
		data[begin+int(sh.timestampIndexes[k])] = uint64(timestampOf(s, k))
	}
	for m := sh.windows; m != 0; m &= m - 1 {
		data = append(data, uint64(s.Rates[bits.TrailingZeros16(uint16(m))].Length))
	}
	if sh.processes {
		data = append(data, uint64(s.Instance.Processes))
	}
	present, values := s.Values.Dense()
	if present != sh.present { // Slow path: some groups are not served
		values = make([]float64, 0, metric.NumMetrics)
		for id, v := range s.Values.All() {
			if sh.present.Has(id) {
				values = append(values, v)
			}
		}
	}
	nonzero := len(data)
	data = append(data, make([]uint64, sh.bitWords)...)
	for rank, v := range values {
		if word := math.Float64bits(v); word != 0 {
			data[nonzero+rank/64] |= 1 << (rank % 64)
			data = append(data, word)
		}
	}
	return data
}

// record returns the layout and the words of entry i.
func (r *round) record(i int) (*recordLayout, []uint64) {
	e := &r.table.entries[i]
	return &r.table.layouts[e.layout], r.words[uint32(r.words[i/2]>>(i%2*32)):]
}

// value returns a record's value of a metric, and whether there is one that may be served. It
// decodes nothing else.
func (r *recordLayout) value(rec []uint64, id metric.ID) (float64, bool) {
	if !r.present.Has(id) {
		return 0, false
	}
	return r.valueAt(rec, r.present.Rank(id)), true
}

// valueAt returns a record's value of the metric of this rank among those present.
func (r *recordLayout) valueAt(rec []uint64, rank int) float64 {
	rec = rec[r.headWords:]
	word, bit := rank/64, uint64(1)<<(rank%64)
	if rec[word]&bit == 0 {
		return 0
	}
	before := bits.OnesCount64(rec[word] & (bit - 1))
	for _, w := range rec[:word] {
		before += bits.OnesCount64(w)
	}
	return math.Float64frombits(rec[int(r.bitWords)+before])
}

// time returns when group g of entry i was read; 0 if it was not.
func (r *round) time(i int, g metric.Group) int64 {
	layout, rec := r.record(i)
	return layout.time(rec, g)
}

func (r *recordLayout) time(rec []uint64, g metric.Group) int64 {
	if !r.hasTimestamp(groupTime(g)) {
		return 0
	}
	return int64(rec[r.timestampIndexes[groupTime(g)]])
}

// window returns the window of a record's rates of group g, or the zero Window.
func (r *recordLayout) window(rec []uint64, g metric.Group) metric.Window {
	if !r.hasTimestamp(windowEnd(g)) {
		return metric.Window{}
	}
	n := int(r.timestamps) + bits.OnesCount16(uint16(r.windows&(1<<g-1)))
	return metric.Window{End: int64(rec[r.timestampIndexes[windowEnd(g)]]), Length: time.Duration(rec[n])}
}

// readAt returns when CPU and memory of entry i were read, the older one of the two; 0 if they were
// not.
func (r *round) readAt(i int) int64 {
	cpu, memory := r.time(i, metric.CPU), r.time(i, metric.Memory)
	if cpu == 0 || memory == 0 {
		return max(cpu, memory)
	}
	return min(cpu, memory)
}

// decode fills s with entry i. It reuses the memory of s.
func (r *round) decode(i int, s *metric.Sample) {
	e := &r.table.entries[i]
	sh, rec := r.record(i)
	values := s.Values
	values.Reset()
	*s = metric.Sample{
		Entity: e.entity(r.table.node), Instance: e.instance(), Values: values,
		Received: sh.received, LastKnown: sh.lastKnown, Reasons: sh.reasons,
	}
	for m := sh.times; m != 0; m &= m - 1 {
		g := metric.Group(bits.TrailingZeros16(uint16(m)))
		s.Times[g] = int64(rec[sh.timestampIndexes[groupTime(g)]])
	}
	for m := sh.windows; m != 0; m &= m - 1 {
		g := metric.Group(bits.TrailingZeros16(uint16(m)))
		s.Rates[g] = sh.window(rec, g)
	}
	if sh.processes {
		s.Instance.Processes = int32(rec[sh.headWords-1])
	}
	for k, id := range sh.present.All() {
		s.Values.Set(id, sh.valueAt(rec, k))
	}
}

// recordLayout is everything in a sample except its numbers. Most samples of a node share a few
// layouts.
type recordLayout struct {
	present             metric.IDSet // the metrics that have a value in the record
	unserved            metric.IDSet // the metrics of groups that are not served
	reasons             [metric.NumGroups]metric.Reason
	received, lastKnown uint16
	times, windows      groupMask // the groups with a time, with a window
	// timestampIndexes has, for each timestampKey in timestampKeys, the index of its timestamp
	// in the record. Keys with equal timestamps share one index.
	timestampIndexes timestampIndexes
	timestampKeys    timestampKeyMask // the keys that have a timestamp
	timestamps       uint8            // number of timestamps in a record
	processes        bool             // the record has the number of processes
	headWords        uint8            // how many words of a record come before the bits of its values
	bitWords         uint8            // how many words these bits take
}

// groupMask has one bit for each metric.Group.
type groupMask uint16

// timestampKeyMask has one bit for each timestampKey.
type timestampKeyMask uint32

// timestampIndexes has one index of a timestamp for each timestampKey.
type timestampIndexes [numTimestampKeys]uint8

// The masks have bits for 16 groups. With more groups this does not compile.
const _ = uint(16 - metric.NumGroups)

// timestampKey names one timestamp of a sample: the time of a group (even keys) or the end of
// the window of its rates (odd keys).
type timestampKey uint8

const numTimestampKeys = 2 * metric.NumGroups

func groupTime(g metric.Group) timestampKey { return timestampKey(2 * g) }
func windowEnd(g metric.Group) timestampKey { return timestampKey(2*g + 1) }

// serves reports whether group g has numbers that may be served.
func (r *recordLayout) serves(g metric.Group) bool { return served(r.reasons[g]) }

// empty reports whether there is no number to serve.
func (r *recordLayout) empty() bool { return r.present == metric.IDSet{} }

// hasTimestamp reports whether records have a timestamp for key k.
func (r *recordLayout) hasTimestamp(k timestampKey) bool { return r.timestampKeys>>k&1 != 0 }

// served reports whether a group with reason r is served.
func served(r metric.Reason) bool { return r == metric.Measured || r == metric.Ambiguous }

// layoutOf returns the layout of s. Keys share a timestamp if their times are equal and they
// shared it in before, the entity's previous layout, which may be nil. Keys that once differed
// stay separate, so that layouts stop changing.
func layoutOf(s *metric.Sample, before *recordLayout) recordLayout {
	sh := recordLayout{reasons: s.Reasons, received: s.Received, lastKnown: s.LastKnown, processes: s.Instance.Processes != -1}
	sh.times, sh.windows = timestampGroups(s)
	sh.timestampKeys = timestampKeysOf(sh.times, sh.windows)
	for g, reason := range s.Reasons {
		if !served(reason) {
			for w := range sh.unserved {
				sh.unserved[w] |= metricsOfGroup[g][w]
			}
		}
	}
	sh.present = presentIn(s, &sh.unserved)
	var first [numTimestampKeys]timestampKey
	for k := range timestampKey(numTimestampKeys) {
		if !sh.hasTimestamp(k) {
			continue
		}
		n := 0
		for n < int(sh.timestamps) && (timestampOf(s, first[n]) != timestampOf(s, k) || before.separates(first[n], k)) {
			n++
		}
		if n == int(sh.timestamps) {
			first[n] = k
			sh.timestamps++
		}
		sh.timestampIndexes[k] = uint8(n)
	}
	sh.headWords, sh.bitWords = sh.timestamps+uint8(bits.OnesCount16(uint16(sh.windows))), uint8(sh.present.Len()+63)/64
	if sh.processes {
		sh.headWords++
	}
	return sh
}

// separates reports whether r has different timestamps for a and b. r may be nil.
func (r *recordLayout) separates(a, b timestampKey) bool {
	return r != nil && r.hasTimestamp(a) && r.hasTimestamp(b) && r.timestampIndexes[a] != r.timestampIndexes[b]
}

func timestampOf(s *metric.Sample, k timestampKey) int64 {
	if k&1 != 0 {
		return s.Rates[k/2].End
	}
	return s.Times[k/2]
}

// timestampGroups returns the groups of s with a time and those with a window.
func timestampGroups(s *metric.Sample) (times, windows groupMask) {
	for g := range metric.NumGroups {
		if s.Times[g] != 0 {
			times |= 1 << g
		}
		if s.Rates[g] != (metric.Window{}) {
			windows |= 1 << g
		}
	}
	return times, windows
}

// presentIn returns the metrics of s that may be served.
func presentIn(s *metric.Sample, unserved *metric.IDSet) metric.IDSet {
	present, _ := s.Values.Dense()
	present.Remove(unserved)
	return present
}

// metricsOfGroup are the metrics of each group.
var metricsOfGroup = func() (sets [metric.NumGroups]metric.IDSet) {
	for id, d := range metric.Catalogue {
		sets[d.Group].Add(metric.ID(id))
	}
	return sets
}()

// matches reports whether sample has this layout.
func (r *recordLayout) matches(sample *metric.Sample) bool {
	if r.reasons != sample.Reasons || r.received != sample.Received || r.lastKnown != sample.LastKnown ||
		r.processes != (sample.Instance.Processes != -1) || r.present != presentIn(sample, &r.unserved) {
		return false
	}
	if times, windows := timestampGroups(sample); times != r.times || windows != r.windows {
		return false
	}
	var at [numTimestampKeys]int64
	var seen uint32 // one bit for each index
	for m := r.timestampKeys; m != 0; m &= m - 1 {
		k := timestampKey(bits.TrailingZeros32(uint32(m)))
		n := r.timestampIndexes[k]
		if when := timestampOf(sample, k); seen>>n&1 == 0 {
			at[n] = when
			seen |= 1 << n
		} else if at[n] != when {
			return false
		}
	}
	return true
}

// timestampKeysOf returns the keys of the groups in times and in windows.
func timestampKeysOf(times, windows groupMask) (set timestampKeyMask) {
	for g := range metric.NumGroups {
		set |= timestampKeyMask(times>>g&1)<<(2*g) | timestampKeyMask(windows>>g&1)<<(2*g+1)
	}
	return set
}
