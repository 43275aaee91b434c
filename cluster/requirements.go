package cluster

import (
	"iter"

	"github.com/weir-metrics/weir/metric"
)

// Requirements are the requests and limits of a pod or container, as Values. The
// pods of one owner ask for the same, so whoever makes many can let them share:
// what a copy of Requirements holds is never changed, only replaced. The zero
// Requirements hold nothing.
type Requirements struct{ values *metric.Values }

// NewRequirements returns Requirements that hold v, which must not be changed any
// more.
func NewRequirements(v *metric.Values) Requirements {
	if v == nil || v.Len() == 0 {
		return Requirements{}
	}
	return Requirements{v}
}

// nothing is what Requirements without values hold.
var nothing metric.Values

// Values returns what is held. It must not be changed.
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

// Set makes id present with the given value. Those who shared what was held keep it.
func (r *Requirements) Set(id metric.ID, value float64) {
	var own metric.Values
	own.CopyFrom(r.Values())
	own.Set(id, value)
	r.values = &own
}
