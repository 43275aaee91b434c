package remotewrite

import (
	"cmp"
	"slices"
	"sort"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// maxLabels is the largest number of labels of a series, including its name.
const maxLabels = 32

type label = series.Label

// feed is one source of one node: its entities, each with the round that last had it.
type feed struct {
	round uint32
	met   map[*entry]uint32
}

// entry is an entity and the last times that were sent of it. Several sources may report one
// entity: a value is sent if it is newer than the last one.
type entry struct {
	entity metric.Entity
	part   string
	labels []label
	before int  // number of labels before __name__
	wanted bool // its names pass the filter
	feeds  int  // number of feeds that report it
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
func (s *Sink) entryOf(of *metric.Entity) *entry {
	if e := s.mu.entries[*of]; e != nil {
		return e
	}
	own, part := series.LabelsOf(of)
	e := &entry{entity: *of, part: part, wanted: s.o.Level(of.Kind) && s.o.Entity(&own)}
	s.mu.entries[*of] = e
	if !e.wanted {
		return e
	}
	for _, l := range own.All() {
		if l.Value != "" { // an empty label is the same as no label
			e.labels = append(e.labels, l)
		}
	}
	for name, value := range s.o.ExternalLabels {
		if own.Get(name) == "" && value != "" && len(e.labels) < maxLabels-1 {
			e.labels = append(e.labels, label{Name: name, Value: value})
		}
	}
	slices.SortFunc(e.labels, func(a, b label) int { return cmp.Compare(a.Name, b.Name) })
	e.before = sort.Search(len(e.labels), func(i int) bool { return e.labels[i].Name > "__name__" })
	return e
}
