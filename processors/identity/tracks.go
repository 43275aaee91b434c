package identity

import (
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// track is what identity remembers of one entity.
type track struct {
	firstSample int32           // its first sample in the current batch
	answer      uint32          // number of the last answer that reported it
	seen        time.Duration   // when it was reported last; only valid if the last answer does not report it
	latest      int64           // newest time of its samples in that answer
	unread      bool            // that answer had a line whose counter was never read
	guessed     bool            // the choice had no evidence
	oldPods     []metric.PodUID // for a pod: UIDs of earlier pods of this name, recognised by an older container
	unknown     time.Duration   // clock since when the API server does not know the pod; negative if it does
	lines       []line
	chosen      uint32 // the line that was chosen last; 0 if none
	moved       uint32 // the line that won because its counter moved; 0 if none
}

// chosenLine returns the line that was chosen last; nil if it is not remembered.
func (t *track) chosenLine() *line {
	for i := range t.lines {
		if t.lines[i].id == t.chosen {
			return &t.lines[i]
		}
	}
	return nil
}

// line is one instance of an entity, as its reports show it.
type line struct {
	core
	path   metric.CgroupPath
	class  string // the QoS class in whose directory path lies; "" if in none
	joined uint32 // the number that it shares with another path of the same cgroup; 0 if none
	inode  uint64
	seen   time.Duration
	answer uint32 // number of the last answer that reported it
	lostTo uint32 // the line that was preferred when it was last rejected
	// appearedAfter is when the answer before the line's first one came, by our clock. It is 0 if
	// there was none, if the line has a start, or if the API server knows the pod or would.
	appearedAfter int64
	rule          string        // the rule that rejected it last
	lost          metric.Reason // the reason; Measured if it was not rejected
}

// isNew reports whether the line begins in this answer: it has no report yet.
func (l *line) isNew() bool { return l.answer == 0 }

// core is what must be remembered of a line that has no problem.
type core struct {
	uid         metric.PodUID // as reported, or as a second read or the API server says; also the next field
	container   metric.ContainerID
	start       int64
	time        int64   // of the last new report, by the node's clock
	cpu         float64 // nanoseconds; negative if not reported
	shift       int64   // by how much the node's clock was put forward since the line began
	id          uint32
	firstAnswer uint32  // number of the first answer that reported it
	rate        float32 // CPU nanoseconds per nanosecond, between the last two reports
	still       uint8   // new reports since the counter last moved, at most stillness
	origin      metric.StartOrigin
	born        bool // its counter shows that it began after the previous answer
	podKnown    bool // the API server knew its pod in an earlier round
}

// lineOf returns a new line that begins with sample.
func lineOf(id uint32, sample *metric.Sample, seen time.Duration, answer uint32) line {
	in := &sample.Instance
	return line{
		core: core{id: id, uid: in.UID, container: in.ID, start: in.Start, origin: in.Origin, cpu: -1, firstAnswer: answer},
		path: in.Path, class: classOf(in.Path), inode: in.Inode, seen: seen, lost: metric.Measured,
	}
}

// entry is a track between two rounds. Nearly every entity has one line, which the last answer
// reported and identity chose. For these the core is enough, and the entries are contiguous in
// memory. All others need full.
type entry struct {
	core
	full *track // nil if core is enough; the id of core is 0 for an entity without lines
}

// open returns track k in full, for use until shut. seen and answer hold when an entry that has
// only a core was reported last.
func (m *memory) open(k int, seen time.Duration, answer uint32) *track {
	e := &m.tracks[k]
	if e.full != nil {
		return e.full
	}
	t := m.spare
	if m.spare = nil; t == nil {
		t = &track{}
	}
	*t = track{lines: t.lines[:0], unknown: -1}
	if e.id != 0 {
		t.lines = append(t.lines, line{core: e.core, seen: seen, answer: answer, lost: metric.Measured})
		t.answer, t.latest, t.chosen = answer, e.time, e.id
	}
	e.core, e.full = core{}, t
	return t
}

// openJudged is open for a track that the current batch reports and that was judged already.
func (identifier *Identifier) openJudged(k int) *track {
	return identifier.open(k, identifier.clock, identifier.answers)
}

// shut reduces track k to its core if that is enough after the given answer.
func (m *memory) shut(k int, answers uint32) {
	e := &m.tracks[k]
	t := e.full
	if !t.plain(answers) {
		return
	}
	if e.full = nil; len(t.lines) > 0 {
		e.core = t.lines[0].core
	}
	m.spare = t
}

// plain reports whether a core is enough for t: it has no lines, or one line that the latest
// answer reported, with a counter that was read.
func (t *track) plain(answers uint32) bool {
	if t.guessed || t.unread || len(t.oldPods) > 0 || t.unknown >= 0 || t.moved != 0 || len(t.lines) > 1 {
		return false
	}
	if len(t.lines) == 0 {
		return true
	}
	l := &t.lines[0]
	fresh := line{core: l.core, seen: l.seen, answer: answers, lost: metric.Measured}
	return *l == fresh && l.cpu >= 0 && t.chosen == l.id && t.answer == answers && t.latest == l.time
}

// memory holds the tracks by the slots of their entities. A part has no track of its own.
type memory struct {
	slots  metric.SlotTable // of the source; all steps use it
	tracks []entry
	// reported is the last answer that reported each entity or a part of it; 0 if the entity is
	// not remembered.
	reported []uint32
	spare    *track
	pods     cluster.PodCache
}

// trackOf returns the track of a sample, which for a part is that of its owner.
func trackOf(b *metric.Batch, i int) int {
	s := &b.Samples[i]
	if s.Entity.Part != "" {
		return int(b.Slots.Owner(s.Slot))
	}
	return int(s.Slot)
}

// assignTracks records which entities b reports. An entity that only the previous answer
// reported, at seen, gets a full track. It returns whether an entity has several samples, a
// part or a partial sample.
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

// forget drops the tracks of entities that were last reported before since. It keeps the slots
// of the other entities that are not in the given answer.
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

// anyLine reports whether matches is true of a line of the pod in the given slot, or of one of its
// containers.
func (m *memory) anyLine(b *metric.Batch, pod uint32, matches func(*core) bool) bool {
	for k := range m.tracks {
		e := &m.tracks[k]
		switch {
		case m.reported[k] == 0 || pod == 0 || b.Slots.PodOf(uint32(k)) != pod:
		case e.full == nil && e.id != 0 && matches(&e.core):
			return true
		case e.full != nil && slices.ContainsFunc(e.full.lines, func(l line) bool { return matches(&l.core) }):
			return true
		}
	}
	return false
}

// podTrack returns the track of the pod that sample i is or belongs to; -1 if none is
// remembered.
func (m *memory) podTrack(b *metric.Batch, i int32) int {
	if k := b.Slots.PodOf(b.Samples[i].Slot); k != 0 && m.reported[k] != 0 {
		return int(k)
	}
	return -1
}
