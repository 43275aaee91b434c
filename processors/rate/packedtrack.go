package rate

import (
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// packedTrack is a track between rounds. Fields equal to their predicted value are omitted; a
// bit in the head word shows which are present. The end and the length of a rate's window, for
// example, follow from the stored readings.
//
// A cluster has thousands of nodes with a hundred tracks each, and nearly every track is used
// once in an interval. Memory and cache misses cost more than instructions. BenchmarkFleet
// measures both.
//
// The words of a track are in packedTracks. packedTrack.code and track.codeGroup define them.
// The zero packedTrack is of an entity that was never seen.
type packedTrack struct {
	at       uint32         // index of its first word in packedTracks.words
	capacity uint16         // words reserved for it; a track with every value has some hundred
	n        uint16         // words in use
	names    *instanceNames // nil if the source reports no names, or only the UID of pod
	pod      *cluster.Pod
	run      *cluster.Container
}

// instanceNames are the names of an instance, as far as the source reports them.
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

// If one of these lines does not compile, the catalogue has outgrown a mask or a head word.
const (
	_ = uint(maxGroups - metric.NumGroups)
	_ = uint(64 - (32 + maxGroups + absentBits + 7 + len(metric.IDSet{})))
	_ = uint(64 - (32 + entriesBits + 2*countersPerGroup))
	_ = uint(1<<entriesBits - 1 - maxEntries)
)

// usualValues has a bit for each value that most tracks have: those of /metrics/resource.
var usualValues = func() (present metric.IDSet) {
	for _, id := range [...]metric.ID{metric.CPUUsage, metric.CPUUsageRate, metric.MemoryWorkingSet, metric.MemorySwap} {
		present.Add(id)
	}
	return present
}()

// empty reports whether the entity was never seen.
func (p *packedTrack) empty() bool { return p.n == 0 }

// codec writes or reads the words of a track, in one order for both. Each method takes the
// value to write and returns it. When the codec reads, the method returns the value that was
// written.
//
// The bits of a head word are small values, and one bit for each predictable word, which says
// whether the word follows.
type codec struct {
	words   []uint64
	writing bool
	next    int  // index of the word that is read next
	head    int  // index of the present head word
	bit     uint // next bit of the head word
}

// word is a type that fits in one word.
type word interface{ ~int64 | ~uint64 }

// beginHead begins a new head word.
func (c *codec) beginHead() {
	c.head, c.bit = len(c.words), 0
	if !c.writing {
		c.head = c.next
	}
	codeWord(c, uint64(0))
}

// bits writes or reads n bits of the head word.
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

// codeWord writes or reads one word.
func codeWord[T word](c *codec, v T) T {
	if c.writing {
		c.words = append(c.words, uint64(v))
		return v
	}
	c.next++
	return T(c.words[c.next-1])
}

// codeUnlessPredicted writes or reads one word, unless it has the predicted value.
func codeUnlessPredicted[T word](c *codec, v, predicted T) T {
	if c.flag(v != predicted) {
		return codeWord(c, v)
	}
	return predicted
}

// pack appends the words of t to words, and keeps its pointers in p.
func (p *packedTrack) pack(words []uint64, t *track) []uint64 {
	p.pod, p.run = t.pod, t.run
	c := codec{words: words, writing: true}
	p.code(&c, t)
	return c.words
}

// unpack fills t from p and its words.
func (p *packedTrack) unpack(words []uint64, t *track) {
	if len(words) == 0 {
		*t = track{isNew: true}
		return
	}
	t.pod, t.run, t.isNew = p.pod, p.run, false
	p.code(&codec{words: words}, t)
}

// code writes t to c, or reads it from c.
func (p *packedTrack) code(c *codec, t *track) {
	i := &t.instance
	c.beginHead()
	i.Line = uint32(c.bits(uint64(i.Line), 32))
	used := groupMask(c.bits(uint64(t.used), maxGroups))
	t.absent = uint8(c.bits(uint64(t.absent), absentBits))
	i.Origin = metric.StartOrigin(c.bits(uint64(i.Origin), 2))
	t.steady = c.flag(t.steady)
	if c.writing {
		c.flag(p.keepNames(i))
	} else {
		p.setNames(i, c.flag(false))
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

// keepNames stores the names of an instance. It reports whether the only name is the UID of the
// pod, which is so for most containers: then nothing is stored.
func (p *packedTrack) keepNames(i *metric.Instance) (ofPod bool) {
	n := instanceNames{i.UID, i.ID, i.Path, i.Inode, i.Sandbox}
	ofPod = p.pod != nil && n == instanceNames{uid: p.pod.ReportedUID()}
	switch {
	case ofPod || n == instanceNames{}:
		p.names = nil
	case p.names == nil || *p.names != n:
		p.names = new(instanceNames)
		*p.names = n
	}
	return ofPod
}

// setNames gives i the names that keepNames stored; ofPod is its result.
func (p *packedTrack) setNames(i *metric.Instance, ofPod bool) {
	var n instanceNames
	switch {
	case ofPod:
		n.uid = p.pod.ReportedUID()
	case p.names != nil:
		n = *p.names
	}
	i.UID, i.ID, i.Path, i.Inode, i.Sandbox = n.uid, n.id, n.path, n.inode, n.sandbox
}

// codeGroup writes a group to c, or reads it; before is the time of the group before this one.
func (t *track) codeGroup(c *codec, id metric.Group, before int64) {
	g := &t.groups[id]
	sr := &g.series
	c.beginHead()
	g.reason = metric.Reason(c.bits(uint64(g.reason), 8))
	g.received, g.served = c.flag(g.received), c.flag(g.served)
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

// predictedEnd returns the probable end of the window: a rate ends at the last reading.
func (t *track) predictedEnd(g *group) int64 {
	if g.series.n < 2 {
		return 0
	}
	return g.time
}

// predictedLength returns the probable length of the window: it begins with the oldest entry.
func (s *series) predictedLength(end int64) time.Duration {
	if end == 0 || s.n == 0 {
		return 0
	}
	return time.Duration(end - s.entries[0].time)
}

// predictedCounter returns the probable value of a counter of the newest entry: the one that
// was last served.
func (t *track) predictedCounter(id metric.Group, k int) uint64 {
	value, ok := t.last.get(counters[id][k].counter)
	if !ok {
		return math.Float64bits(noCounters[k])
	}
	return math.Float64bits(value)
}

// columns returns which counters at least one entry has; bit k is counter k of the group.
func (s *series) columns(id metric.Group) (mask uint64) {
	for i := range s.n {
		e := &s.entries[i]
		for k := range counters[id] {
			if c := e.counters[k]; c == c { // not NaN
				mask |= 1 << k
			}
		}
	}
	return mask
}
