package rate

import (
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// packedTrack is a track as it is kept between rounds. Fields equal to their predicted
// value are omitted; a bit in the head word says which are present. The end and the
// length of a rate's window, for example, follow from the stored readings.
//
// Thousands of nodes have a hundred tracks each, and nearly every track is used once in
// an interval: memory and cache misses count, not instructions. BenchmarkFleet measures
// both.
//
// The words of a track lie in packedTracks. The zero packedTrack is of an entity that
// was never seen. Its words are
//
//	head           line, groups in use, and which of these are present:
//	start, processes, seen, values: which, and each
//	for each group in use, its head, and which of these are present:
//	time, read, since, doubt, newest, least; stored readings: time and counters;
//	window: end, length
type packedTrack struct {
	at    uint32         // where its words may lie
	room  uint16         // a row of everything there is has some hundred words
	n     uint16         // how many there are
	names *instanceNames // nil if the source names nothing, or no more than pod does
	pod   *cluster.Pod
	run   *cluster.Container
}

// instanceNames are what an instance goes by where the source tells.
type instanceNames struct {
	uid     metric.PodUID
	id      metric.ContainerID
	path    metric.CgroupPath
	inode   uint64
	sandbox metric.ContainerID
}

// The bits of a track's head word.
const (
	headLine      = 0                       // 32 bits
	headUsed      = 32                      // maxGroups
	headAbsent    = headUsed + maxGroups    // 4
	headOrigin    = headAbsent + 4          // 2
	headSteady    = headOrigin + 2          //
	headOfPod     = headSteady + 1          // the UID is that of its pod
	headStart     = headOfPod + 1           // of here on: the word is present
	headProcesses = headStart + 1           //
	headValues    = headProcesses + 1       // valueWords
	headBits      = headValues + valueWords //
	maxAbsent     = 1<<(headOrigin-headAbsent) - 1
)

// The bits of a group's head word.
const (
	groupReason     = 0                                // 8
	groupImpossible = 8                                // 8
	groupEntries    = 16                               // 4
	groupReceived   = 20                               //
	groupSeries     = 21                               //
	seriesReceived  = 22                               //
	seriesReset     = 23                               //
	seriesStepped   = 24                               //
	seriesUnsure    = 25                               //
	groupTime       = 26                               // of here on: the word is present
	groupRead       = 27                               //
	groupSince      = 28                               //
	groupDoubt      = 29                               //
	groupNewest     = 30                               //
	groupLeast      = 31                               //
	groupEnd        = 32                               //
	groupLength     = 33                               //
	groupNewestTime = 34                               // of the newest entry
	groupNewestOf   = 35                               // countersPerGroup: the newest entry's counters
	groupColumns    = groupNewestOf + countersPerGroup // countersPerGroup: the counters that any entry has
	groupBits       = groupColumns + countersPerGroup  //
)

// The catalogue has outgrown a mask where one of these does not compile.
const (
	_ = uint(maxGroups - metric.NumGroups)
	_ = uint(64 - headBits)
	_ = uint(64 - groupBits)
	_ = uint(1<<(groupReceived-groupEntries) - 1 - maxEntries)
)

// usualValues has a bit for each value that most rows hold: those of /metrics/resource.
var usualValues = func() (present [valueWords]uint64) {
	for _, id := range [...]metric.ID{metric.CPUUsage, metric.CPUUsageRate, metric.MemoryWorkingSet, metric.MemorySwap} {
		present[id/64] |= 1 << (id % 64)
	}
	return present
}()

// empty reports whether the entity was never seen.
func (r *packedTrack) empty() bool { return r.n == 0 }

// appendUnlessPredicted appends a word, and marks it in a head, unless it is the predicted one.
func appendUnlessPredicted(words []uint64, head uint64, bit uint, word, predicted uint64) ([]uint64, uint64) {
	if word == predicted {
		return words, head
	}
	return append(words, word), head | 1<<bit
}

// pack appends the words of t, and keeps the rest of it in r.
func (r *packedTrack) pack(words []uint64, t *track) []uint64 {
	r.pod, r.run = t.pod, t.run
	i := &t.instance

	at := len(words)
	words = append(words, 0)
	head := uint64(i.Line)<<headLine | uint64(t.used)<<headUsed | uint64(t.absent)<<headAbsent |
		uint64(i.Origin)<<headOrigin | bit(t.steady)<<headSteady | bit(r.name(i))<<headOfPod
	words, head = appendUnlessPredicted(words, head, headStart, uint64(i.Start), 0)
	words, head = appendUnlessPredicted(words, head, headProcesses, uint64(uint32(i.Processes)), math.MaxUint32)
	words = append(words, uint64(t.seen))
	for k, word := range t.last.present {
		words, head = appendUnlessPredicted(words, head, headValues+uint(k), word, usualValues[k])
	}
	for _, value := range t.last.dense[:t.last.n] {
		words = append(words, math.Float64bits(value))
	}
	before := int64(0)
	for used := t.used; used != 0; used &= used - 1 {
		g := bits.TrailingZeros16(uint16(used))
		words = t.packGroup(words, metric.Group(g), before)
		before = t.groups[g].time
	}
	words[at] = head
	return words
}

// name keeps what an instance goes by, and reports whether that is the UID of its pod and
// nothing else, as of most containers: then nothing need be kept.
func (r *packedTrack) name(i *metric.Instance) (ofPod bool) {
	n := instanceNames{i.UID, i.ID, i.Path, i.Inode, i.Sandbox}
	ofPod = r.pod != nil && n == instanceNames{uid: r.pod.ReportedUID()}
	switch {
	case ofPod || n == instanceNames{}:
		r.names = nil
	case r.names == nil || *r.names != n:
		r.names = new(instanceNames)
		*r.names = n
	}
	return ofPod
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// packGroup appends the words of a group; before is the time of the group before it.
func (t *track) packGroup(words []uint64, id metric.Group, before int64) []uint64 {
	g := &t.groups[id]
	sr := &g.series
	at := len(words)
	words = append(words, 0)
	head := uint64(g.reason)<<groupReason | bit(g.received)<<groupReceived | bit(sr.on)<<groupSeries
	words, head = appendUnlessPredicted(words, head, groupTime, uint64(g.time), uint64(before))
	words, head = appendUnlessPredicted(words, head, groupRead, uint64(g.read), uint64(t.seen))
	if sr.on {
		head |= uint64(sr.impossible)<<groupImpossible | uint64(sr.n)<<groupEntries | bit(sr.received)<<seriesReceived |
			bit(sr.reset)<<seriesReset | bit(sr.stepped)<<seriesStepped | bit(sr.unsure)<<seriesUnsure
		words, head = appendUnlessPredicted(words, head, groupSince, uint64(sr.since), uint64(g.read))
		words, head = appendUnlessPredicted(words, head, groupDoubt, uint64(sr.doubt), 0)
		words, head = appendUnlessPredicted(words, head, groupNewest, uint64(sr.newest), uint64(sr.last().time))
		words, head = appendUnlessPredicted(words, head, groupLeast, math.Float64bits(sr.least), 0)
		words, head = t.packEntries(words, head, id)
	}
	end := t.predictedEnd(g)
	words, head = appendUnlessPredicted(words, head, groupEnd, uint64(g.window.End), uint64(end))
	words, head = appendUnlessPredicted(words, head, groupLength, uint64(g.window.Length), uint64(sr.predictedLength(g.window.End)))
	words[at] = head
	return words
}

// predictedEnd is the end of the window, most likely: a rate is of the last reading.
func (t *track) predictedEnd(g *group) int64 {
	if g.series.n < 2 {
		return 0
	}
	return g.time
}

// predictedLength is the length of the window, most likely: it began with the oldest
// entry.
func (sr *series) predictedLength(end int64) time.Duration {
	if end == 0 || sr.n == 0 {
		return 0
	}
	return time.Duration(end - sr.entries[0].time)
}

func (t *track) packEntries(words []uint64, head uint64, id metric.Group) ([]uint64, uint64) {
	g := &t.groups[id]
	sr := &g.series
	columns := sr.columns(id)
	head |= columns << groupColumns
	for i := range sr.n {
		e := &sr.entries[i]
		newest := i == sr.n-1
		if newest {
			words, head = appendUnlessPredicted(words, head, groupNewestTime, uint64(e.time), uint64(g.time))
		} else {
			words = append(words, uint64(e.time))
		}
		for k := range counters[id] {
			switch word := math.Float64bits(e.counters[k]); {
			case columns&(1<<k) == 0:
			case newest:
				words, head = appendUnlessPredicted(words, head, groupNewestOf+uint(k), word, t.predictedCounter(id, k))
			default:
				words = append(words, word)
			}
		}
	}
	return words, head
}

// predictedCounter is a counter of the newest entry, most likely: as it was last
// served.
func (t *track) predictedCounter(id metric.Group, k int) uint64 {
	value, ok := t.last.get(counters[id][k].of)
	if !ok {
		return math.Float64bits(noCounters[k])
	}
	return math.Float64bits(value)
}

// columns returns which counters any entry has; bit k is counter k of the group.
func (sr *series) columns(id metric.Group) (mask uint64) {
	for i := range sr.n {
		e := &sr.entries[i]
		for k := range counters[id] {
			if c := e.counters[k]; c == c { // not NaN
				mask |= 1 << k
			}
		}
	}
	return mask
}

// wordReader takes words in the order they were written.
type wordReader struct {
	words []uint64
	next  int
}

func (r *wordReader) take() uint64 {
	word := r.words[r.next]
	r.next++
	return word
}

func (r *wordReader) get(head uint64, bit uint, predicted uint64) uint64 {
	if head&(1<<bit) == 0 {
		return predicted
	}
	return r.take()
}

// unpack spreads r, whose words these are, out in t.
func (r *packedTrack) unpack(words []uint64, t *track) {
	if len(words) == 0 {
		*t = track{isNew: true}
		return
	}
	in := wordReader{words: words}
	head := in.take()
	t.pod, t.run, t.isNew = r.pod, r.run, false
	i := &t.instance
	*i = metric.Instance{Line: uint32(head >> headLine), Origin: metric.StartOrigin(head >> headOrigin & 3)}
	if head&(1<<headOfPod) != 0 {
		i.UID = r.pod.ReportedUID()
	} else if n := r.names; n != nil {
		i.UID, i.ID, i.Path, i.Inode, i.Sandbox = n.uid, n.id, n.path, n.inode, n.sandbox
	}
	t.absent, t.steady = uint8(head>>headAbsent&maxAbsent), head&(1<<headSteady) != 0
	i.Start = int64(in.get(head, headStart, 0))
	i.Processes = int32(uint32(in.get(head, headProcesses, math.MaxUint32)))
	t.seen = time.Duration(in.take())
	t.last.n = 0
	for k := range t.last.present {
		word := in.get(head, headValues+uint(k), usualValues[k])
		t.last.present[k] = word
		t.last.n += bits.OnesCount64(word)
	}
	for k := range t.last.n {
		t.last.dense[k] = math.Float64frombits(in.take())
	}
	was := t.used
	t.used = groupMask(head >> headUsed)
	for unused := was &^ t.used; unused != 0; unused &= unused - 1 {
		t.groups[bits.TrailingZeros16(uint16(unused))] = group{}
	}
	before := int64(0)
	for used := t.used; used != 0; used &= used - 1 {
		g := bits.TrailingZeros16(uint16(used))
		t.unpackGroup(&in, metric.Group(g), before)
		before = t.groups[g].time
	}
}

func (t *track) unpackGroup(in *wordReader, id metric.Group, before int64) {
	g := &t.groups[id]
	sr := &g.series
	head := in.take()
	g.reason, g.received = metric.Reason(head>>groupReason), head&(1<<groupReceived) != 0
	g.time = int64(in.get(head, groupTime, uint64(before)))
	g.read = time.Duration(in.get(head, groupRead, uint64(t.seen)))
	was := sr.on
	sr.on, sr.n = head&(1<<groupSeries) != 0, 0
	if sr.on {
		sr.impossible, sr.received = uint8(head>>groupImpossible), head&(1<<seriesReceived) != 0
		sr.reset, sr.stepped, sr.unsure = head&(1<<seriesReset) != 0, head&(1<<seriesStepped) != 0, head&(1<<seriesUnsure) != 0
		sr.since = time.Duration(in.get(head, groupSince, uint64(g.read)))
		sr.doubt = int64(in.get(head, groupDoubt, 0))
		newest, told := int64(0), head&(1<<groupNewest) != 0
		if told {
			newest = int64(in.take())
		}
		sr.least = math.Float64frombits(in.get(head, groupLeast, 0))
		t.unpackEntries(in, head, id)
		if !told {
			newest = sr.last().time
		}
		sr.newest = newest
	} else if was {
		*sr = series{}
	}
	g.window.End = int64(in.get(head, groupEnd, uint64(t.predictedEnd(g))))
	g.window.Length = time.Duration(in.get(head, groupLength, uint64(sr.predictedLength(g.window.End))))
}

func (t *track) unpackEntries(in *wordReader, head uint64, id metric.Group) {
	g := &t.groups[id]
	sr := &g.series
	sr.n = int(head >> groupEntries & (1<<(groupReceived-groupEntries) - 1))
	columns := head >> groupColumns & (1<<countersPerGroup - 1)
	for i := range sr.n {
		e := &sr.entries[i]
		e.counters = noCounters
		newest := i == sr.n-1
		if newest {
			e.time = int64(in.get(head, groupNewestTime, uint64(g.time)))
		} else {
			e.time = int64(in.take())
		}
		for k := range counters[id] {
			switch {
			case columns&(1<<k) == 0:
			case newest && head&(1<<(groupNewestOf+k)) == 0:
				e.counters[k] = math.Float64frombits(t.predictedCounter(id, k))
			default:
				e.counters[k] = math.Float64frombits(in.take())
			}
		}
	}
}
