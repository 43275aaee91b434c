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
// The words of a track lie in packedTracks. packedTrack.code and track.codeGroup say what
// they are. The zero packedTrack is of an entity that was never seen.
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

const (
	absentBits  = 4
	maxAbsent   = 1<<absentBits - 1
	entriesBits = 4
)

// The catalogue has outgrown a mask or a head word where one of these does not compile.
const (
	_ = uint(maxGroups - metric.NumGroups)
	_ = uint(64 - (32 + maxGroups + absentBits + 7 + len(metric.IDSet{})))
	_ = uint(64 - (31 + entriesBits + 2*countersPerGroup))
	_ = uint(1<<entriesBits - 1 - maxEntries)
)

// usualValues has a bit for each value that most rows hold: those of /metrics/resource.
var usualValues = func() (present metric.IDSet) {
	for _, id := range [...]metric.ID{metric.CPUUsage, metric.CPUUsageRate, metric.MemoryWorkingSet, metric.MemorySwap} {
		present.Add(id)
	}
	return present
}()

// empty reports whether the entity was never seen.
func (r *packedTrack) empty() bool { return r.n == 0 }

// codec writes or reads the words of a track, in one order for both. It takes the values
// that it writes and returns them; when it reads, it returns those that were written.
//
// The bits of a head word are small values, and for each word that was predicted or follows
// the head, whether it follows.
type codec struct {
	words   []uint64
	writing bool
	next    int  // index of the word that is read next
	head    int  // index of the present head word
	bit     uint // of the head word, the next one
}

// word is a value that takes a word.
type word interface{ ~int64 | ~uint64 }

// beginHead goes on to a new head word.
func (c *codec) beginHead() {
	c.head, c.bit = len(c.words), 0
	if !c.writing {
		c.head = c.next
	}
	codeWord(c, uint64(0))
}

// bits codes the n bits of v in the head word.
func (c *codec) bits(v uint64, n uint) uint64 {
	at := c.bit
	c.bit += n
	if c.writing {
		c.words[c.head] |= v << at
		return v
	}
	return c.words[c.head] >> at & (1<<n - 1)
}

func (c *codec) flag(b bool) bool {
	if b {
		return c.bits(1, 1) != 0
	}
	return c.bits(0, 1) != 0
}

// codeWord codes v as a word.
func codeWord[T word](c *codec, v T) T {
	if c.writing {
		c.words = append(c.words, uint64(v))
		return v
	}
	c.next++
	return T(c.words[c.next-1])
}

// codeUnlessPredicted codes v as a word, unless it is the predicted one.
func codeUnlessPredicted[T word](c *codec, v, predicted T) T {
	if c.flag(v != predicted) {
		return codeWord(c, v)
	}
	return predicted
}

// pack appends the words of t, and keeps the rest of it in r.
func (r *packedTrack) pack(words []uint64, t *track) []uint64 {
	r.pod, r.run = t.pod, t.run
	c := codec{words: words, writing: true}
	r.code(&c, t)
	return c.words
}

// unpack fills t with r, which has these words.
func (r *packedTrack) unpack(words []uint64, t *track) {
	if len(words) == 0 {
		*t = track{isNew: true}
		return
	}
	t.pod, t.run, t.isNew = r.pod, r.run, false
	r.code(&codec{words: words}, t)
}

// code writes t to c, or reads it.
func (r *packedTrack) code(c *codec, t *track) {
	i := &t.instance
	c.beginHead()
	i.Line = uint32(c.bits(uint64(i.Line), 32))
	used := groupMask(c.bits(uint64(t.used), maxGroups))
	t.absent = uint8(c.bits(uint64(t.absent), absentBits))
	i.Origin = metric.StartOrigin(c.bits(uint64(i.Origin), 2))
	t.steady = c.flag(t.steady)
	if c.writing {
		c.flag(r.keepNames(i))
	} else {
		r.setNames(i, c.flag(false))
	}
	i.Start = codeUnlessPredicted(c, i.Start, 0)
	i.Processes = int32(uint32(codeUnlessPredicted(c, uint64(uint32(i.Processes)), math.MaxUint32)))
	t.seen = codeUnlessPredicted(c, t.seen, 0)
	for k, present := range t.last.present {
		t.last.present[k] = codeUnlessPredicted(c, present, usualValues[k])
	}
	t.last.n = t.last.present.Len()
	for k, value := range t.last.dense[:t.last.n] {
		t.last.dense[k] = math.Float64frombits(codeWord(c, math.Float64bits(value)))
	}
	for unused := t.used &^ used; unused != 0; unused &= unused - 1 {
		t.groups[bits.TrailingZeros16(uint16(unused))] = group{}
	}
	t.used = used
	before := int64(0)
	for ; used != 0; used &= used - 1 {
		g := bits.TrailingZeros16(uint16(used))
		t.codeGroup(c, metric.Group(g), before)
		before = t.groups[g].time
	}
}

// keepNames keeps what an instance goes by, and reports whether that is the UID of its pod and
// nothing else, as of most containers: then nothing need be kept.
func (r *packedTrack) keepNames(i *metric.Instance) (ofPod bool) {
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

// setNames gives i what keepNames kept and returned.
func (r *packedTrack) setNames(i *metric.Instance, ofPod bool) {
	var n instanceNames
	switch {
	case ofPod:
		n.uid = r.pod.ReportedUID()
	case r.names != nil:
		n = *r.names
	}
	i.UID, i.ID, i.Path, i.Inode, i.Sandbox = n.uid, n.id, n.path, n.inode, n.sandbox
}

// codeGroup writes a group to c, or reads it; before is the time of the group before it.
func (t *track) codeGroup(c *codec, id metric.Group, before int64) {
	g := &t.groups[id]
	sr := &g.series
	c.beginHead()
	g.reason = metric.Reason(c.bits(uint64(g.reason), 8))
	g.received = c.flag(g.received)
	g.time = codeUnlessPredicted(c, g.time, before)
	g.read = codeUnlessPredicted(c, g.read, t.seen)
	if c.flag(sr.on) {
		sr.on = true
		t.codeSeries(c, id)
	} else if sr.on {
		*sr = series{}
	}
	g.window.End = codeUnlessPredicted(c, g.window.End, t.predictedEnd(g))
	g.window.Length = codeUnlessPredicted(c, g.window.Length, sr.predictedLength(g.window.End))
}

// codeSeries writes the series of a group to c, or reads it.
func (t *track) codeSeries(c *codec, id metric.Group) {
	g := &t.groups[id]
	sr := &g.series
	sr.impossible = uint8(c.bits(uint64(sr.impossible), 8))
	sr.n = int(c.bits(uint64(sr.n), entriesBits))
	sr.received, sr.reset = c.flag(sr.received), c.flag(sr.reset)
	sr.stepped, sr.unsure = c.flag(sr.stepped), c.flag(sr.unsure)
	sr.since = codeUnlessPredicted(c, sr.since, g.read)
	sr.doubt = codeUnlessPredicted(c, sr.doubt, 0)
	sr.least = math.Float64frombits(codeUnlessPredicted(c, math.Float64bits(sr.least), 0))
	var columns uint64
	if c.writing {
		columns = sr.columns(id)
	}
	columns = c.bits(columns, countersPerGroup)
	for i := range sr.n {
		e := &sr.entries[i]
		newest := i == sr.n-1
		if newest {
			e.time = codeUnlessPredicted(c, e.time, g.time)
		} else {
			e.time = codeWord(c, e.time)
		}
		if !c.writing {
			e.counters = noCounters
		}
		for k := range counters[id] {
			value := math.Float64bits(e.counters[k])
			switch {
			case columns&(1<<k) == 0:
				continue
			case newest:
				value = codeUnlessPredicted(c, value, t.predictedCounter(id, k))
			default:
				value = codeWord(c, value)
			}
			e.counters[k] = math.Float64frombits(value)
		}
	}
	sr.newest = codeUnlessPredicted(c, sr.newest, sr.last().time)
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
