package cluster

import (
	"iter"

	"github.com/weir-metrics/weir/metric"
)

// Requirements are the requests and limits of a pod or container, as Values. Many pods of one
// owner have the same, so copies share their values. The values are never changed, only
// replaced. The zero Requirements are empty.
type Requirements struct{ values *metric.Values }

// NewRequirements returns Requirements with the values v, which must not be changed afterwards.
func NewRequirements(v *metric.Values) Requirements {
	if v == nil || v.Len() == 0 {
		return Requirements{}
	}
	return Requirements{v}
}

// nothing is the result of Values for empty Requirements.
var nothing metric.Values

// Values returns the values. They must not be changed.
func (r Requirements) Values() *metric.Values {
	if r.values == nil {
		return &nothing
	}
	return r.values
}

// Get returns the value of id in the catalogue's unit, and whether it is present.
func (r Requirements) Get(id metric.ID) (float64, bool) { return r.Values().Get(id) }

// Len returns how many metrics are present.
func (r Requirements) Len() int { return r.Values().Len() }

// All yields each present metric and its value, in the catalogue's order.
func (r Requirements) All() iter.Seq2[metric.ID, float64] { return r.Values().All() }

// Set makes id present with the given value. Copies of r do not change.
func (r *Requirements) Set(id metric.ID, value float64) {
	var own metric.Values
	own.CopyFrom(r.Values())
	own.Set(id, value)
	r.values = &own
}
