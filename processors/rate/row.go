package rate

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// row is a track at rest. Thousands of nodes have a hundred tracks each, nearly all
// of which are worked on once in an interval, so a track is kept as few words: those
// that the others foretell are left out. What a rate was last measured from and over,
// say, follows from the readings in store. The zero row is of an entity that was never
// seen.
//
//	head           line, groups in use, and which of these there are:
//	start, processes, seen, values: which, and each
//	for each group in use, its head, and which of these there are:
//	time, read, since, doubt, newest, least; readings in store: time and counters;
//	window: end, length
type row struct {
	words []uint64
	names *names // nil if the source names nothing
	pod   *metric.PodFacts
	run   *metric.ContainerFacts
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
	headStart     = 51 // of here on: the word is there
	headProcesses = 52
	headValues    = 53 // valueWords
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

// empty reports whether the entity was never seen.
func (r *row) empty() bool { return len(r.words) == 0 }

// line returns the line of the instance; 0 if it has none.
func (r *row) line() uint32 {
	if r.empty() {
		return 0
	}
	return uint32(r.words[0] >> headLine)
}

// writer appends words, and marks in a head which were needed.
type writer struct{ words []uint64 }

func (w *writer) put(head *uint64, bit uint, word, foretold uint64) {
	if word != foretold {
		*head |= 1 << bit
		w.words = append(w.words, word)
	}
}

// pack puts t to rest in r.
func (r *row) pack(t *track) {
	r.pod, r.run = t.pod, t.run
	i := &t.instance
	r.name(names{i.UID, i.ID, i.Path, i.Inode, i.Sandbox})

	w := writer{append(r.words[:0], 0)}
	head := uint64(i.Line)<<headLine | uint64(t.used)<<headUsed | uint64(t.absent)<<headAbsent |
		uint64(i.Origin)<<headOrigin | bit(t.steady)<<headSteady
	w.put(&head, headStart, uint64(i.Start), 0)
	w.put(&head, headProcesses, uint64(uint32(i.Processes)), math.MaxUint32)
	w.words = append(w.words, uint64(t.seen))
	for k, word := range t.last.present {
		w.put(&head, headValues+uint(k), word, 0)
	}
	for _, value := range t.last.dense[:t.last.n] {
		w.words = append(w.words, math.Float64bits(value))
	}
	before := int64(0)
	for used := t.used; used != 0; used &= used - 1 {
		g := bits.TrailingZeros8(used)
		t.packGroup(&w, metric.Group(g), before)
		before = t.groups[g].time
	}
	w.words[0] = head
	r.words = w.words
	if cap(r.words) > len(r.words)+spareWords { // it has just grown or shrunk
		r.words = slices.Clone(r.words)
	}
}

// spareWords is how much more room a row may have than it needs.
const spareWords = 4

func (r *row) name(n names) {
	switch {
	case n == names{}:
		r.names = nil
	case r.names == nil || *r.names != n:
		r.names = new(names)
		*r.names = n
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// packGroup writes group g; before is the time of the group before it.
func (t *track) packGroup(w *writer, id metric.Group, before int64) {
	g := &t.groups[id]
	sr := &g.series
	at := len(w.words)
	w.words = append(w.words, 0)
	head := uint64(g.reason)<<groupReason | bit(g.received)<<groupReceived | bit(sr.on)<<groupSeries
	w.put(&head, groupTime, uint64(g.time), uint64(before))
	w.put(&head, groupRead, uint64(g.read), uint64(t.seen))
	if sr.on {
		head |= uint64(sr.impossible)<<groupImpossible | uint64(sr.n)<<groupEntries | bit(sr.received)<<seriesReceived |
			bit(sr.reset)<<seriesReset | bit(sr.stepped)<<seriesStepped | bit(sr.unsure)<<seriesUnsure
		w.put(&head, groupSince, uint64(sr.since), uint64(g.read))
		w.put(&head, groupDoubt, uint64(sr.doubt), 0)
		w.put(&head, groupNewest, uint64(sr.newest), uint64(sr.last().time))
		w.put(&head, groupLeast, math.Float64bits(sr.least), 0)
		t.packEntries(w, &head, id)
	}
	end := t.foretoldEnd(g)
	w.put(&head, groupEnd, uint64(g.window.End), uint64(end))
	w.put(&head, groupLength, uint64(g.window.Length), uint64(sr.foretoldLength(g.window.End)))
	w.words[at] = head
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

func (t *track) packEntries(w *writer, head *uint64, id metric.Group) {
	g := &t.groups[id]
	sr := &g.series
	columns := sr.columns()
	*head |= columns << groupColumns
	for i := range sr.n {
		e := &sr.entries[i]
		newest := i == sr.n-1
		if newest {
			w.put(head, groupNewestTime, uint64(e.time), uint64(g.time))
		} else {
			w.words = append(w.words, uint64(e.time))
		}
		for k := range counters[id] {
			switch word := math.Float64bits(e.counters[k]); {
			case columns&(1<<k) == 0:
			case newest:
				w.put(head, groupNewestOf+uint(k), word, t.foretoldCounter(id, k))
			default:
				w.words = append(w.words, word)
			}
		}
	}
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
func (sr *series) columns() (mask uint64) {
	for i := range sr.n {
		for k, c := range sr.entries[i].counters {
			if c == c { // not NaN
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

// unpack spreads r out in t.
func (r *row) unpack(t *track) {
	if r.empty() {
		*t = track{fresh: true}
		return
	}
	in := reader{words: r.words}
	head := in.take()
	t.pod, t.run, t.fresh = r.pod, r.run, false
	i := &t.instance
	*i = metric.Instance{Line: uint32(head >> headLine), Origin: metric.StartOrigin(head >> headOrigin & 3)}
	if n := r.names; n != nil {
		i.UID, i.ID, i.Path, i.Inode, i.Sandbox = n.uid, n.id, n.path, n.inode, n.sandbox
	}
	t.absent, t.steady = uint8(head>>headAbsent), head&(1<<headSteady) != 0
	i.Start = int64(in.get(head, headStart, 0))
	i.Processes = int32(uint32(in.get(head, headProcesses, math.MaxUint32)))
	t.seen = time.Duration(in.take())
	t.last.n = 0
	for k := range t.last.present {
		word := in.get(head, headValues+uint(k), 0)
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
