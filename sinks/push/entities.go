package push

import (
	"hash/maphash"
	"math"
	"math/bits"
	"slices"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// sourceState is one source of one node. Its entities are those of the samples of its last round, in their
// order; nil for a sample that was rejected. A source reports the same ones again in the same order, mostly, so an
// entity is looked for at its place before it is looked up: `go test -bench Send ./sinks`.
type sourceState[L any] struct {
	phase    int64 // in milliseconds, which spreads what is due at an interval over the sources
	round    uint32
	entities []*entityState[L]
	reported int               // of entities, in this round
	left     []*entityState[L] // no longer at their places: in other ones, or not in this round
}

// begin begins a round, or the last one, which has no samples.
func (s *sourceState[L]) begin() { s.round, s.reported = s.round+1, 0 }

// next returns the entity of the next sample if it is that of the last round; nil otherwise.
func (s *sourceState[L]) next(entity *metric.Entity) *entityState[L] {
	if s.reported == len(s.entities) {
		return nil
	}
	if e := s.entities[s.reported]; e != nil && e.entity == *entity {
		return e
	}
	return nil
}

// add adds the entity of the next sample.
func (s *sourceState[L]) add(e *entityState[L]) {
	switch {
	case s.reported == len(s.entities):
		s.entities = append(s.entities, e)
	case s.entities[s.reported] != e:
		s.left = append(s.left, s.entities[s.reported])
		s.entities[s.reported] = e
	}
	s.reported++
	if e != nil {
		e.report(s)
	}
}

// end ends a round. It returns the entities that may not be in it.
func (s *sourceState[L]) end() (left []*entityState[L]) {
	left = slices.Concat(s.left, s.entities[s.reported:])
	clear(s.entities[s.reported:])
	s.entities, s.left = s.entities[:s.reported], nil
	return left
}

// entityState is an entity and the last times that were sent of it. Several sources may report one
// entity: a value is sent if it is newer than the last one.
type entityState[L any] struct {
	entity   metric.Entity
	labels   L
	selected *[metric.NumMetrics]bool // nil if the filter does not select the entity
	reports  []report[L]              // the sources that report it
	sent     []int64                  // packed times
	live     metric.IDSet             // metrics with a series that has not ended
	declared declaration
	next     *entityState[L] // another one with the same hash

	// What reports and sent have room for: most entities need no more, and one object costs the garbage
	// collector less than three.
	oneReport [1]report[L]
	twoTimes  [2]int64
}

// report is a source that reports an entity, and the last round in which it did.
type report[L any] struct {
	source *sourceState[L]
	round  uint32
}

// report records that a source reports the entity in its round.
func (e *entityState[L]) report(source *sourceState[L]) {
	for i := range e.reports {
		if r := &e.reports[i]; r.source == source {
			r.round = source.round
			return
		}
	}
	e.reports = append(e.reports, report[L]{source, source.round})
}

// isGone removes a source that does not report the entity in its round. It reports whether no other one does.
func (e *entityState[L]) isGone(source *sourceState[L]) bool {
	before := len(e.reports)
	e.reports = slices.DeleteFunc(e.reports, func(r report[L]) bool { return r.source == source && r.round != source.round })
	return len(e.reports) < before && len(e.reports) == 0
}

// point is a value in the catalogue's unit, and its time in milliseconds since the Unix epoch.
type point struct {
	id    metric.ID
	value float64
	time  int64
}

// declaration is what was last sent of an entity's requests, limits and capacities.
type declaration struct {
	hash uint64 // of the IDs and values
	sent int64  // in milliseconds since the Unix epoch
}

// hashFactor spreads the bits of a value: it is 2^64 divided by the golden ratio, and odd.
const hashFactor = 0x9E3779B97F4A7C15

// declares reports whether the declared values of an entity are to be sent at a time: they changed, a
// series of them ended, or an interval ended since they were sent. Of all samples that an entity has in
// each round, they are three in five.
func (e *entityState[L]) declares(points []point, at, interval, phase int64) bool {
	if len(points) == 0 {
		return false
	}
	due := (at+phase)/interval != (e.declared.sent+phase)/interval
	hash := uint64(0) // no maphash: a collision only delays a value to the next interval
	for i := range points {
		p := &points[i]
		hash = (hash ^ uint64(p.id) ^ math.Float64bits(p.value)) * hashFactor
		hash ^= hash >> 32
		due = due || !e.live.Has(p.id)
	}
	if due = due || hash != e.declared.hash; due {
		e.declared = declaration{hash, at}
	}
	return due
}

// times has the times of each group's readings, and of its rates, in milliseconds since the Unix epoch.
type times [2][metric.NumGroups]int64

// at returns a pointer to the time of a metric.
func (t *times) at(id metric.ID) *int64 {
	d := &metric.Catalogue[id]
	if d.Type == metric.Rate {
		return &t[1][d.Group]
	}
	return &t[0][d.Group]
}

// timeShift is how many bits of a packed time come before the time itself. Each stands for a group: the even ones for
// its readings, the odd ones for its rates. Most entities have one or two different times.
const timeShift = 2 * metric.NumGroups

// This does not compile if the groups leave less than 43 bits, up to the year 2248, for a time.
const _ = uint(20 - timeShift)

// lastSent returns the last times that were sent.
func (e *entityState[L]) lastSent() (t times) {
	for _, packed := range e.sent {
		for set := uint64(packed) & (1<<timeShift - 1); set != 0; set &= set - 1 {
			bit := bits.TrailingZeros64(set)
			t[bit%2][bit/2] = packed >> timeShift
		}
	}
	return t
}

// setLastSent keeps the last times that were sent.
func (e *entityState[L]) setLastSent(t *times) {
	e.sent = e.sent[:0]
	for rate := range t {
		for g, at := range t[rate] {
			if at == 0 {
				continue
			}
			i := slices.IndexFunc(e.sent, func(packed int64) bool { return packed>>timeShift == at })
			if i < 0 {
				i = len(e.sent)
				e.sent = append(e.sent, at<<timeShift)
			}
			e.sent[i] |= 1 << (2*g + rate)
		}
	}
}

// entityTable finds entities by their hash. A map with entities as keys would keep their names twice: 126 bytes more
// of each. The seed is set before use.
type entityTable[L any] struct {
	seed   maphash.Seed
	byHash map[uint64]*entityState[L]
	n      int
}

func (t *entityTable[L]) get(entity *metric.Entity) *entityState[L] {
	e := t.byHash[maphash.Comparable(t.seed, *entity)]
	for e != nil && e.entity != *entity {
		e = e.next
	}
	return e
}

// add adds an entity that is not there.
func (t *entityTable[L]) add(e *entityState[L]) {
	hash := maphash.Comparable(t.seed, e.entity)
	e.next = t.byHash[hash]
	t.byHash[hash] = e
	t.n++
}

// remove removes an entity that is there.
func (t *entityTable[L]) remove(e *entityState[L]) {
	hash := maphash.Comparable(t.seed, e.entity)
	first := t.byHash[hash]
	at := &first
	for *at != e {
		at = &(*at).next
	}
	*at = e.next
	if t.n--; first == nil {
		delete(t.byHash, hash)
	} else {
		t.byHash[hash] = first
	}
}

func (t *entityTable[L]) clear() {
	clear(t.byHash)
	t.n = 0
}

// state returns the state of an entity. It makes one if there is none.
func (s *Sink[L]) state(entity *metric.Entity) *entityState[L] {
	if e := s.mu.entities.get(entity); e != nil {
		return e
	}
	labels, part := series.LabelsOf(entity)
	e := &entityState[L]{entity: *entity}
	e.reports, e.sent = e.oneReport[:0], e.twoTimes[:0]
	if s.o.Level(entity.Kind) && s.o.Entity(&labels) {
		e.selected = s.selected(entity.Kind, part)
	}
	s.mu.entities.add(e)
	return e
}

// selected returns which metrics of a kind of entity, or of a kind of its parts, are sent.
func (s *Sink[L]) selected(k metric.Kind, part string) *[metric.NumMetrics]bool {
	all := s.mu.selected[k][part]
	if all == nil {
		all = new([metric.NumMetrics]bool)
		for id := range all {
			all[id] = s.o.Metric(k, part, &metric.Catalogue[id])
		}
		s.mu.selected[k][part] = all
	}
	return all
}
