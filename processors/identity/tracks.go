package identity

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// track is what is remembered of one entity.
type track struct {
	first   int32         // its first sample in the batch in hand
	answer  uint32        // that reported it last
	latest  int64         // its newest time then
	guessed bool          // no evidence chose the sample believed
	known   bool          // the API server knew the pod in an earlier round
	oldPod  metric.PodUID // of a pod: one whose containers are older than another's
	unknown time.Duration // since when the API server does not know the pod; negative if it does
	lines   []line
	chosen  uint32 // the line believed last; 0 if none
	moved   uint32 // the line that won by its counter's moving; 0 if none
}

// line is one instance of an entity as its reports show it.
type line struct {
	core
	path   metric.CgroupPath
	inode  uint64
	seen   time.Duration
	answer uint32        // it was last seen in
	lostTo uint32        // the line it was turned away for last
	since  int64         // when the answer before had its newest reading, if that did not have the line; else 0
	rule   string        // by which it was turned away last
	lost   metric.Reason // why; Measured if it was not
}

// core is what there is to remember of a line that nothing is wrong with.
type core struct {
	uid       metric.PodUID // this and the next as reported, or as learnt besides
	container metric.ContainerID
	start     int64
	time      int64   // of the last new report, by the node's clock
	cpu       float64 // nanoseconds; negative if not reported
	shift     int64   // by how much the node's clock was put forward since it began
	id        uint32
	first     uint32  // the answer it was first seen in
	rate      float32 // CPU nanoseconds per nanosecond, between the last two
	still     uint8   // new reports since the counter last moved, as far as stillness
	origin    metric.StartOrigin
	born      bool // it cannot have begun long before the answer before
	known     bool // of an entry only: track.known, where there is room for it
}

// lineOf returns a line that begins with sample.
func lineOf(id uint32, sample *metric.Sample, seen time.Duration, answer uint32) line {
	in := &sample.Instance
	return line{
		core: core{id: id, uid: in.UID, container: in.ID, start: in.Start, origin: in.Origin, cpu: -1, first: answer},
		path: in.Path, inode: in.Inode, seen: seen, lost: metric.Measured,
	}
}

// entry is a track as it is kept from round to round. Nearly every entity has one
// line, which was reported and believed in the last answer: of that the core says
// everything, and tracks lie close together. What more there is to tell of
// another is in full.
type entry struct {
	core
	full *track // nil where core says everything; its id is 0 for an entity without lines
}

// open returns track k whole, to be worked on until shut. An entry of which nothing is
// wrong was seen last at the given time, in the given answer.
func (m *memory) open(k int, seen time.Duration, answer uint32) *track {
	e := &m.tracks[k]
	if e.full != nil {
		return e.full
	}
	t := m.spare
	if m.spare = nil; t == nil {
		t = &track{}
	}
	*t = track{lines: t.lines[:0], known: e.known, unknown: -1}
	e.known = false
	if e.id != 0 {
		t.lines = append(t.lines, line{core: e.core, seen: seen, answer: answer, lost: metric.Measured})
		t.answer, t.latest, t.chosen = answer, e.time, e.id
	}
	e.core, e.full = core{}, t
	return t
}

// openJudged is open for a track of which the batch in hand is known already.
func (s *State) openJudged(k int) *track {
	if k >= s.placed() {
		gone := &s.absent[k-s.placed()]
		return s.open(k, gone.seen, gone.answer)
	}
	return s.open(k, s.clock, s.answers)
}

// shut keeps of track k no more than is needed after so many answers.
func (m *memory) shut(k int, answers uint32) {
	e := &m.tracks[k]
	t := e.full
	if m.keepFull || !t.plain(answers) {
		return
	}
	if e.full = nil; len(t.lines) > 0 {
		e.core = t.lines[0].core
	}
	e.known = t.known
	m.spare = t
}

// plain reports whether a core says everything about t: it has no lines, or one that is
// in the latest answer. When a line began matters only until its counter is read.
func (t *track) plain(answers uint32) bool {
	if t.guessed || t.oldPod != "" || t.unknown >= 0 || t.moved != 0 || len(t.lines) > 1 {
		return false
	}
	if len(t.lines) == 0 {
		return true
	}
	l := &t.lines[0]
	return t.chosen == l.id && t.answer == answers && l.answer == answers && t.latest == l.time && l.cpu >= 0 &&
		l.path == "" && l.inode == 0 && l.lost == metric.Measured && l.lostTo == 0 && l.rule == ""
}

// memory holds the tracks by the places of their entities in a Layout.
type memory struct {
	// layout is that of the last answer: the source's, or one of our own where the
	// source gives none.
	layout *metric.Layout
	// at is the track of each of its entities; nil where each has the track of its own
	// index, because they are whole and no two are the same.
	at []int32
	// tracks are those of the layout's entities, in the order in which they first
	// come there, and then those of gone.
	tracks []entry
	absent []absentEntity
	// podTracks finds the pods' tracks by name. It is made when first asked for.
	podTracks map[metric.Entity]int32
	spare     *track
	pods      cluster.PodCache
	merged    *mergedLayout // of batches that had limbs
	// keepFull is set by tests: tracks are all kept in full, and nothing is judged quickly.
	keepFull bool
}

// absentEntity is an entity that the last answer did not report.
type absentEntity struct {
	entity metric.Entity
	seen   time.Duration
	answer uint32
}

// placed returns how many tracks the layout's entities have.
func (m *memory) placed() int { return len(m.tracks) - len(m.absent) }

// trackOf returns the track of sample i of the batch in hand.
func (m *memory) trackOf(i int) int {
	if m.at == nil {
		return i
	}
	return int(m.at[i])
}

// assignTracks gives each sample of b a track: those of the last answer, as long as the
// samples are of the same entities. What was reported then and is not now was seen
// last at the given time, in the given answer.
func (m *memory) assignTracks(b *metric.Batch, seen time.Duration, answer uint32) {
	if m.layout != nil && len(m.layout.Entities) == len(b.Samples) && m.layout == b.Layout {
		return // Fast path
	}
	l := b.Layout
	if l != nil && len(l.Entities) != len(b.Samples) {
		l = nil // its samples are not all of them
	}
	if layoutMatches(m.layout, b) {
		if l != nil {
			m.layout = l
		}
		return
	}
	if l == nil {
		l = metric.LayoutOf(b.Samples)
	}
	m.moveTracks(l, seen, answer)
}

// moveTracks brings the tracks to their entities' places in another layout.
func (m *memory) moveTracks(l *metric.Layout, seen time.Duration, answer uint32) {
	were := m.trackEntities(seen, answer)
	places := make(map[metric.Entity]int32, len(were)+len(l.Entities))
	for k := range were {
		places[were[k].entity] = int32(k)
	}
	at, simple := make([]int32, len(l.Entities)), true
	tracks := make([]entry, 0, len(l.Entities)+len(were))
	for i := range l.Entities {
		name := l.Entities[i].Whole()
		k, known := places[name]
		if known && k < 0 { // -1-k is its new place
			at[i], simple = -1-k, false
			continue
		}
		at[i] = int32(len(tracks))
		places[name] = -1 - at[i]
		simple = simple && l.Entities[i].Part == ""
		if !known {
			tracks = append(tracks, entry{})
			continue
		}
		if int(k) >= m.placed() { // it is back: what it is not, is seen in the last answer
			m.open(int(k), were[k].seen, were[k].answer)
		}
		tracks = append(tracks, m.tracks[k])
	}
	m.absent = nil
	for k := range were {
		if places[were[k].entity] >= 0 {
			m.absent, tracks = append(m.absent, were[k]), append(tracks, m.tracks[k])
		}
	}
	if m.at = at; simple {
		m.at = nil
	}
	m.layout, m.tracks, m.podTracks = l, slices.Clip(append([]entry(nil), tracks...)), nil
}

// trackEntities returns what each track is of, and when it was reported last.
func (m *memory) trackEntities(seen time.Duration, answer uint32) []absentEntity {
	names := make([]absentEntity, 0, len(m.tracks))
	if m.layout != nil {
		for i := range m.layout.Entities {
			if m.trackOf(i) == len(names) {
				names = append(names, absentEntity{m.layout.Entities[i].Whole(), seen, answer})
			}
		}
	}
	return append(names, m.absent...)
}

// forget drops the tracks of what was not reported since.
func (m *memory) forget(since time.Duration) {
	for j := len(m.absent) - 1; j >= 0; j-- {
		if m.absent[j].seen < since {
			k := m.placed() + j
			m.absent, m.tracks = slices.Delete(m.absent, j, j+1), slices.Delete(m.tracks, k, k+1)
			m.podTracks = nil
		}
	}
}

// podTrack returns the track of the pod that e is or is of; -1 if it has none.
func (m *memory) podTrack(e *metric.Entity) int {
	if m.podTracks == nil {
		m.podTracks = map[metric.Entity]int32{}
		for k, n := range m.trackEntities(0, 0) {
			if n.entity.Kind == metric.Pod {
				m.podTracks[n.entity] = int32(k)
			}
		}
	}
	if k, ok := m.podTracks[e.OfPod()]; ok {
		return int(k)
	}
	return -1
}

// layoutMatches reports whether l, which may be nil, is of exactly b's samples.
func layoutMatches(l *metric.Layout, b *metric.Batch) bool {
	if l == nil || len(l.Entities) != len(b.Samples) {
		return false
	}
	for i := range b.Samples {
		if b.Samples[i].Entity != l.Entities[i] {
			return false
		}
	}
	return true
}
