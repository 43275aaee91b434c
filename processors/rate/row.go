package rate

import (
	"math"
	"math/bits"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// row is a track at rest. Thousands of nodes have a hundred tracks each, nearly all
// of which are worked on once in an interval, so a track is kept as few words: those
// that the others foretell are left out. What a rate was last measured from and over,
// say, follows from the readings in store. The zero row is of an entity that was never
// seen. Its words, which lie with those of the others in rows, are
//
//	head           line, groups in use, and which of these there are:
//	start, processes, seen, values: which, and each
//	for each group in use, its head, and which of these there are:
//	time, read, since, doubt, newest, least; readings in store: time and counters;
//	window: end, length
type row struct {
	at    uint32 // where its words may lie
	room  uint16 // a row of everything there is has some hundred words
	n     uint16 // how many there are
	names *names // nil if the source names nothing, or no more than pod does
	pod   *cluster.Pod
	run   *cluster.Container
}

// names are what an instance goes by where the source tells.
type names struct {
	uid     metric.PodUID
	id      metric.ContainerID
	path    metric.CgroupPath
	inode   uint64
	sandbox metric.ContainerID
}

// The bits of a row's first word.
const (
	headLine      = 0  // 32 bits
	headUsed      = 32 // 8
	headAbsent    = 40 // 8
	headOrigin    = 48 // 2
	headSteady    = 50
	headOfPod     = 51 // it goes by the UID of its pod
	headStart     = 52 // of here on: the word is there
	headProcesses = 53
	headValues    = 54 // valueWords
)

// The bits of a group's first word.
const (
	groupReason     = 0  // 8
	groupImpossible = 8  // 8
	groupEntries    = 16 // 8
	groupColumns    = 24 // slots: the counters that any entry has
	groupReceived   = 28
	groupSeries     = 29
	seriesReceived  = 30
	seriesReset     = 31
	seriesStepped   = 32
	seriesUnsure    = 33
	groupTime       = 34 // of here on: the word is there
	groupRead       = 35
	groupSince      = 36
	groupDoubt      = 37
	groupNewest     = 38
	groupLeast      = 39
	groupEnd        = 40
	groupLength     = 41
	groupNewestTime = 42 // of the newest entry
	groupNewestOf   = 43 // slots: the newest entry's counters
)

// usual has a bit for each value that most rows hold: those of /metrics/resource.
var usual = func() (present [valueWords]uint64) {
	for _, id := range [...]metric.ID{metric.CPUUsage, metric.CPUUsageRate, metric.MemoryWorkingSet, metric.MemorySwap} {
		present[id/64] |= 1 << (id % 64)
	}
	return present
}()

// empty reports whether the entity was never seen.
func (r *row) empty() bool { return r.n == 0 }

// put appends a word, and marks it in a head, unless it is the one foretold.
func put(words []uint64, head uint64, bit uint, word, foretold uint64) ([]uint64, uint64) {
	if word == foretold {
		return words, head
	}
	return append(words, word), head | 1<<bit
}

// pack appends the words of t, and keeps the rest of it in r.
func (r *row) pack(words []uint64, t *track) []uint64 {
	r.pod, r.run = t.pod, t.run
	i := &t.instance

	at := len(words)
	words = append(words, 0)
	head := uint64(i.Line)<<headLine | uint64(t.used)<<headUsed | uint64(t.absent)<<headAbsent |
		uint64(i.Origin)<<headOrigin | bit(t.steady)<<headSteady | bit(r.name(i))<<headOfPod
	words, head = put(words, head, headStart, uint64(i.Start), 0)
	words, head = put(words, head, headProcesses, uint64(uint32(i.Processes)), math.MaxUint32)
	words = append(words, uint64(t.seen))
	for k, word := range t.last.present {
		words, head = put(words, head, headValues+uint(k), word, usual[k])
	}
	for _, value := range t.last.dense[:t.last.n] {
		words = append(words, math.Float64bits(value))
	}
	before := int64(0)
	for used := t.used; used != 0; used &= used - 1 {
		g := bits.TrailingZeros8(used)
		words = t.packGroup(words, metric.Group(g), before)
		before = t.groups[g].time
	}
	words[at] = head
	return words
}

// name keeps what an instance goes by, and reports whether that is the UID of its pod and
// nothing else, as of most containers: then nothing need be kept.
func (r *row) name(i *metric.Instance) (ofPod bool) {
	n := names{i.UID, i.ID, i.Path, i.Inode, i.Sandbox}
	ofPod = r.pod != nil && n == names{uid: r.pod.ReportedUID()}
	switch {
	case ofPod || n == names{}:
		r.names = nil
	case r.names == nil || *r.names != n:
		r.names = new(names)
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
	words, head = put(words, head, groupTime, uint64(g.time), uint64(before))
	words, head = put(words, head, groupRead, uint64(g.read), uint64(t.seen))
	if sr.on {
		head |= uint64(sr.impossible)<<groupImpossible | uint64(sr.n)<<groupEntries | bit(sr.received)<<seriesReceived |
			bit(sr.reset)<<seriesReset | bit(sr.stepped)<<seriesStepped | bit(sr.unsure)<<seriesUnsure
		words, head = put(words, head, groupSince, uint64(sr.since), uint64(g.read))
		words, head = put(words, head, groupDoubt, uint64(sr.doubt), 0)
		words, head = put(words, head, groupNewest, uint64(sr.newest), uint64(sr.last().time))
		words, head = put(words, head, groupLeast, math.Float64bits(sr.least), 0)
		words, head = t.packEntries(words, head, id)
	}
	end := t.foretoldEnd(g)
	words, head = put(words, head, groupEnd, uint64(g.window.End), uint64(end))
	words, head = put(words, head, groupLength, uint64(g.window.Length), uint64(sr.foretoldLength(g.window.End)))
	words[at] = head
	return words
}

// foretoldEnd is the end of the window, most likely: a rate is of the last reading.
func (t *track) foretoldEnd(g *group) int64 {
	if g.series.n < 2 {
		return 0
	}
	return g.time
}

// foretoldLength is the length of the window, most likely: it began with the oldest
// entry.
func (sr *series) foretoldLength(end int64) time.Duration {
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
			words, head = put(words, head, groupNewestTime, uint64(e.time), uint64(g.time))
		} else {
			words = append(words, uint64(e.time))
		}
		for k := range counters[id] {
			switch word := math.Float64bits(e.counters[k]); {
			case columns&(1<<k) == 0:
			case newest:
				words, head = put(words, head, groupNewestOf+uint(k), word, t.foretoldCounter(id, k))
			default:
				words = append(words, word)
			}
		}
	}
	return words, head
}

// foretoldCounter is a counter of the newest entry, most likely: as it was last
// served.
func (t *track) foretoldCounter(id metric.Group, k int) uint64 {
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

// reader takes words in the order they were written.
type reader struct {
	words []uint64
	next  int
}

func (r *reader) take() uint64 {
	word := r.words[r.next]
	r.next++
	return word
}

func (r *reader) get(head uint64, bit uint, foretold uint64) uint64 {
	if head&(1<<bit) == 0 {
		return foretold
	}
	return r.take()
}

// unpack spreads r, whose words these are, out in t.
func (r *row) unpack(words []uint64, t *track) {
	if len(words) == 0 {
		*t = track{fresh: true}
		return
	}
	in := reader{words: words}
	head := in.take()
	t.pod, t.run, t.fresh = r.pod, r.run, false
	i := &t.instance
	*i = metric.Instance{Line: uint32(head >> headLine), Origin: metric.StartOrigin(head >> headOrigin & 3)}
	if head&(1<<headOfPod) != 0 {
		i.UID = r.pod.ReportedUID()
	} else if n := r.names; n != nil {
		i.UID, i.ID, i.Path, i.Inode, i.Sandbox = n.uid, n.id, n.path, n.inode, n.sandbox
	}
	t.absent, t.steady = uint8(head>>headAbsent), head&(1<<headSteady) != 0
	i.Start = int64(in.get(head, headStart, 0))
	i.Processes = int32(uint32(in.get(head, headProcesses, math.MaxUint32)))
	t.seen = time.Duration(in.take())
	t.last.n = 0
	for k := range t.last.present {
		word := in.get(head, headValues+uint(k), usual[k])
		t.last.present[k] = word
		t.last.n += bits.OnesCount64(word)
	}
	for k := range t.last.n {
		t.last.dense[k] = math.Float64frombits(in.take())
	}
	was := t.used
	t.used = uint8(head >> headUsed)
	for unused := was &^ t.used; unused != 0; unused &= unused - 1 {
		t.groups[bits.TrailingZeros8(unused)] = group{}
	}
	before := int64(0)
	for used := t.used; used != 0; used &= used - 1 {
		g := bits.TrailingZeros8(used)
		t.unpackGroup(&in, metric.Group(g), before)
		before = t.groups[g].time
	}
}

func (t *track) unpackGroup(in *reader, id metric.Group, before int64) {
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
	g.window.End = int64(in.get(head, groupEnd, uint64(t.foretoldEnd(g))))
	g.window.Length = time.Duration(in.get(head, groupLength, uint64(sr.foretoldLength(g.window.End))))
}

func (t *track) unpackEntries(in *reader, head uint64, id metric.Group) {
	g := &t.groups[id]
	sr := &g.series
	sr.n = int(uint8(head >> groupEntries))
	columns := head >> groupColumns
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
				e.counters[k] = math.Float64frombits(t.foretoldCounter(id, k))
			default:
				e.counters[k] = math.Float64frombits(in.take())
			}
		}
	}
}
