package push

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// feed is one source of one node: its entities, each with the round that last had it.
type feed[L any] struct {
	round uint32
	met   map[*entry[L]]uint32
}

// entry is an entity and the last times that were sent of it. Several sources may report one
// entity: a value is sent if it is newer than the last one.
type entry[L any] struct {
	entity   metric.Entity
	part     string
	labels   L
	selected *[metric.NumMetrics]bool // nil if the filter does not select the entity
	feeds    int                      // number of feeds that report it
	// sent are the times of the last values that were sent, in milliseconds since the Unix
	// epoch.
	sent times
	live [metric.NumMetrics]bool // metrics with a series that has not ended
}

// times has the times of each group's readings, and of its rates.
type times [2][metric.NumGroups]int64

// of returns a pointer to the time of a metric.
func (t *times) of(id metric.ID) *int64 {
	d := &metric.Catalogue[id]
	if d.Type == metric.Rate {
		return &t[1][d.Group]
	}
	return &t[0][d.Group]
}

// entryOf returns the entry of an entity. It makes one if there is none.
func (s *Sink[L]) entryOf(of *metric.Entity) *entry[L] {
	if e := s.mu.entries[*of]; e != nil {
		return e
	}
	own, part := series.LabelsOf(of)
	e := &entry[L]{entity: *of, part: part}
	if s.o.Level(of.Kind) && s.o.Entity(&own) {
		e.selected = s.selected(of.Kind, part)
	}
	s.mu.entries[*of] = e
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
