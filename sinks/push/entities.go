package push

import (
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// sourceState is one source of one node: its entities, each with the round that last had it.
type sourceState[L any] struct {
	round    uint32
	lastSeen map[*entityState[L]]uint32
}

// entityState is an entity and the last times that were sent of it. Several sources may report one
// entity: a value is sent if it is newer than the last one.
type entityState[L any] struct {
	entity   metric.Entity
	part     string
	labels   L
	selected *[metric.NumMetrics]bool // nil if the filter does not select the entity
	sources  int                      // how many sources report it
	lastSent times                    // in milliseconds since the Unix epoch
	live     [metric.NumMetrics]bool  // metrics with a series that has not ended
}

// times has the times of each group's readings, and of its rates.
type times [2][metric.NumGroups]int64

// at returns a pointer to the time of a metric.
func (t *times) at(id metric.ID) *int64 {
	d := &metric.Catalogue[id]
	if d.Type == metric.Rate {
		return &t[1][d.Group]
	}
	return &t[0][d.Group]
}

// state returns the state of an entity. It makes one if there is none.
func (s *Sink[L]) state(entity *metric.Entity) *entityState[L] {
	if e := s.mu.entities[*entity]; e != nil {
		return e
	}
	labels, part := series.LabelsOf(entity)
	e := &entityState[L]{entity: *entity, part: part}
	if s.o.Level(entity.Kind) && s.o.Entity(&labels) {
		e.selected = s.selected(entity.Kind, part)
	}
	s.mu.entities[*entity] = e
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
