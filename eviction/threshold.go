package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Threshold is where a signal becomes a reason to act.
type Threshold struct {
	Signal Signal
	Value  Value
	// Grace is how long it must be met before pods are evicted for it. Zero makes
	// it a hard threshold, in every respect.
	Grace time.Duration
	// MinReclaim is what must be available beyond Value to end it once it is in
	// force; nil for nothing. Of a pressure signal it is the stall that ends it.
	MinReclaim *Value
}

// Value is an amount, a fraction of the capacity, or a stall; exactly one.
type Value struct {
	// Quantity is an amount in the signal's unit, with its fractions. It is not
	// changed by anyone.
	Quantity *resource.Quantity
	// Fraction is of the capacity: 0.1 for "10%". It is a 32-bit float because the
	// kubelet's is, and the last bytes of a limit come of it.
	Fraction float32
	// Stall is of a pressure signal: in percent of the time, as the kernel tells it.
	Stall float64
}

// Hard says that pods are evicted at once.
func (t *Threshold) Hard() bool { return t.Grace == 0 }

// String is the threshold as one would write it: memory.available<100Mi for 1m30s.
func (t Threshold) String() string {
	s := string(t.Signal)
	if t.Signal.Pressure() {
		s += ">" + number(t.Value.Stall)
	} else {
		s += "<" + t.Value.String()
	}
	if t.Grace != 0 {
		s += " for " + t.Grace.String()
	}
	switch m := t.MinReclaim; {
	case m == nil:
	case t.Signal.Pressure():
		s += " until " + number(m.Stall)
	default:
		s += " reclaim " + m.String()
	}
	return s
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// String is an amount, or a percentage.
func (v Value) String() string {
	switch {
	case v.Quantity != nil:
		q := *v.Quantity
		return q.String()
	case v.Stall != 0:
		return number(v.Stall)
	default:
		return fmt.Sprintf("%.6g%%", float64(v.Fraction)*100)
	}
}

// of is the value as an amount, given the capacity. A fraction is always in binary
// format, even of inodes: so the kubelet prints it.
func (v *Value) of(capacity int64) resource.Quantity {
	if v.Quantity != nil {
		return v.Quantity.DeepCopy()
	}
	return *resource.NewQuantity(int64(float64(capacity)*float64(v.Fraction)), resource.BinarySI)
}

func (v *Value) same(w *Value) bool {
	if v.Quantity == nil || w.Quantity == nil {
		return v.Quantity == w.Quantity && v.Fraction == w.Fraction && v.Stall == w.Stall
	}
	q := *v.Quantity // Cmp may rewrite its receiver, which others read
	return q.Cmp(*w.Quantity) == 0
}

// same says whether two thresholds are one. Their minimum reclaim belongs to the signal.
func (t *Threshold) same(u *Threshold) bool {
	return t.Signal == u.Signal && t.Grace == u.Grace && t.Value.same(&u.Value)
}

// limit is the amount below which the threshold is met, goal the one that ends it.
func (t *Threshold) limit(capacity int64) (limit, goal resource.Quantity) {
	limit = t.Value.of(capacity)
	goal = limit
	if t.MinReclaim != nil {
		goal = limit.DeepCopy()
		goal.Add(t.MinReclaim.of(capacity))
	}
	return limit, goal
}

// inOrder sorts thresholds as they are acted on: memory before all else, then hard before
// soft, then as Signals lists them. The kubelet has only the first of these rules.
func inOrder(list []ThresholdState) {
	slices.SortStableFunc(list, func(a, b ThresholdState) int {
		s := a.Threshold.Signal.trait()
		t := b.Threshold.Signal.trait()
		return cmp.Or(
			cmp.Compare(s.rank/memoryFirst, t.rank/memoryFirst),
			first(a.Threshold.Hard(), b.Threshold.Hard()),
			cmp.Compare(s.rank, t.rank),
		)
	})
}

// first places what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
