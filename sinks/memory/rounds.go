package memory

import (
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// round is one round of one source: an entityTable and the numbers of its entries. A round
// in a Snapshot is immutable.
//
// words holds a record for each entry, at entityEntry.offset. Its recordLayout describes it:
//
//	each timestamp, in nanoseconds since the Unix epoch
//	for each group with a window: the window's length, in nanoseconds
//	the number of processes, if it is known
//	each value that may be served, in the catalogue's order: the bits of its float64
//
// So every number is exact, and a reader finds it without decoding those before it.
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

// newRound returns the round of samples, which are in d's order. It appends the records to
// data, an empty slice.
func newRound(d *entityTable, samples []*metric.Sample, data []uint64) round {
	for i, s := range samples {
		data = appendRecord(data, &d.layouts[d.entries[i].layout], s)
	}
	return round{table: d, words: data}
}

func appendRecord(data []uint64, sh *recordLayout, s *metric.Sample) []uint64 {
	begin := len(data)
	data = data[:begin+int(sh.timestamps)]
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
	for id, v := range s.Values.All() {
		if sh.present.Has(id) {
			data = append(data, math.Float64bits(v))
		}
	}
	return data
}

// record returns the layout and the words of entry i.
func (r *round) record(i int) (*recordLayout, []uint64) {
	e := &r.table.entries[i]
	return &r.table.layouts[e.layout], r.words[e.offset:]
}

// value returns a record's value of a metric, and whether there is one that may be served. It
// decodes nothing else.
func (r *recordLayout) value(rec []uint64, id metric.ID) (float64, bool) {
	n, ok := r.valueIndex(id)
	if !ok {
		return 0, false
	}
	return math.Float64frombits(rec[n]), true
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
	n := sh.headWords()
	if sh.processes {
		s.Instance.Processes = int32(rec[n-1])
	}
	for k, id := range sh.present.All() {
		s.Values.Set(id, math.Float64frombits(rec[n+k]))
	}
}

// recordLayout is everything in a sample except its numbers. Most samples of a node share a few
// layouts.
type recordLayout struct {
	present             metric.IDSet // the metrics that have a value in the record
	reasons             [metric.NumGroups]metric.Reason
	received, lastKnown uint16
	times, windows      groupMask // the groups with a time, with a window
	// timestampIndexes has, for each timestampKey in timestampKeys, the index of its timestamp
	// in the record. Keys with equal timestamps share one index.
	timestampIndexes timestampIndexes
	timestampKeys    timestampKeyMask // the keys that have a timestamp
	timestamps       uint8            // number of timestamps in a record
	processes        bool             // the record has the number of processes
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

// headWords returns how many words of a record come before its values.
func (r *recordLayout) headWords() int {
	n := int(r.timestamps) + bits.OnesCount16(uint16(r.windows))
	if r.processes {
		n++
	}
	return n
}

// recordWords returns how many words a record has.
func (r *recordLayout) recordWords() int { return r.headWords() + r.present.Len() }

// valueIndex returns where in a record the value of id is, and whether there is one.
func (r *recordLayout) valueIndex(id metric.ID) (int, bool) {
	if !r.present.Has(id) {
		return 0, false
	}
	return r.headWords() + r.present.Rank(id), true
}

// served reports whether a group with reason r is served.
func served(r metric.Reason) bool { return r == metric.Measured || r == metric.Ambiguous }

// layoutOf returns the layout of s. Keys share a timestamp if their times are equal and they
// shared it in before, the entity's previous layout, which may be nil. Keys that once differed
// stay separate, so that layouts stop changing.
func layoutOf(s *metric.Sample, before *recordLayout) recordLayout {
	sh := recordLayout{reasons: s.Reasons, received: s.Received, lastKnown: s.LastKnown, processes: s.Instance.Processes != -1}
	sh.times, sh.windows = timestampGroups(s)
	sh.timestampKeys, sh.present = timestampKeysOf(sh.times, sh.windows), presentIn(s)
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
	return sh
}

// separates reports whether s has different timestamps for a and b. s may be nil.
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
func presentIn(s *metric.Sample) metric.IDSet {
	present, _ := s.Values.Dense()
	for g, r := range s.Reasons {
		if !served(r) {
			present.Remove(&metricsOfGroup[g])
		}
	}
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
		r.processes != (sample.Instance.Processes != -1) || r.present != presentIn(sample) {
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
