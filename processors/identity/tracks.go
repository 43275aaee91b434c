package identity

import (
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// track is what is remembered of one entity.
type track struct {
	first   int32         // its first sample in the batch in hand
	answer  uint32        // that reported it last
	seen    time.Duration // when it was reported last, if the last answer does not report it
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
func (s *Identifier) openJudged(k int) *track { return s.open(k, s.clock, s.answers) }

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

// memory holds the tracks by the slots of their entities. A part has no track of its own.
type memory struct {
	slots  metric.SlotTable // of the source: all steps use it
	tracks []entry
	// reported is the answer that reported each entity last, or a part of it; 0 if none is
	// remembered.
	reported []uint32
	spare    *track
	pods     cluster.PodCache
	// keepFull is set by tests: tracks are all kept in full, and nothing is judged quickly.
	keepFull bool
}

// trackOf returns the track of a sample.
func trackOf(b *metric.Batch, i int) int {
	s := &b.Samples[i]
	if s.Entity.Part != "" {
		return int(b.Slots.Owner(s.Slot))
	}
	return int(s.Slot)
}

// assignTracks gives each sample of b a track. What the answer before reported, at the given
// time, and this one does not, is kept in full. It returns whether some entity has several
// samples, or one that does not speak for it.
func (m *memory) assignTracks(b *metric.Batch, seen time.Duration, answer uint32) (chained bool) {
	m.tracks, m.reported = metric.BySlot(b.Slots, m.tracks), metric.BySlot(b.Slots, m.reported)
	for i := range b.Samples {
		last := &m.reported[trackOf(b, i)]
		chained = chained || *last == answer || followsAnother(&b.Samples[i])
		*last = answer
	}
	for k, last := range m.reported {
		if last != 0 && last == answer-1 {
			m.open(k, seen, last).seen = seen
		}
	}
	return chained
}

// forget drops the tracks of what was not reported since, and keeps the slots of what was
// but is not in the given answer.
func (m *memory) forget(b *metric.Batch, since time.Duration, answer uint32) {
	for k, last := range m.reported {
		switch {
		case last == 0 || last == answer:
		case m.tracks[k].full.seen < since:
			m.tracks[k], m.reported[k] = entry{}, 0
		default:
			b.Slots.Keep(uint32(k))
		}
	}
}

// podTrack returns the track of the pod that sample i is of or in; -1 if none is remembered.
func (m *memory) podTrack(b *metric.Batch, i int32) int {
	if k := b.Slots.PodOf(b.Samples[i].Slot); k != 0 && m.reported[k] != 0 {
		return int(k)
	}
	return -1
}
