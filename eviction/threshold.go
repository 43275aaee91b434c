package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Threshold is the figure of a signal at which pods are evicted.
type Threshold struct {
	Signal Signal
	Value  ThresholdValue
	// Grace is how long it must be met before a pod is evicted for it. A threshold with a Grace of
	// zero is hard.
	Grace time.Duration
	// MinReclaim is what must be available beyond Value so that a threshold in force ends; nil means
	// nothing. For a pressure signal it is the stall at which the threshold ends.
	MinReclaim *ThresholdValue
}

// ThresholdValue is an amount, a fraction of the capacity, or a stall. Exactly one is set.
type ThresholdValue struct {
	// Quantity is an amount in the signal's unit. It is never changed.
	Quantity *resource.Quantity
	// Fraction is a share of the capacity: 0.1 for "10%". It is a 32-bit float as in the kubelet,
	// because the last bytes of a limit depend on it.
	Fraction float32
	// Stall is a share of the time in percent. It is set for a pressure signal.
	Stall float64
}

// Hard reports whether pods are evicted at once.
func (t *Threshold) Hard() bool { return t.Grace == 0 }

// Kind returns "hard" or "soft".
func (t *Threshold) Kind() string {
	if t.Hard() {
		return "hard"
	}
	return "soft"
}

// String returns the threshold as text: "memory.available<100Mi for 1m30s".
func (t Threshold) String() string {
	s := string(t.Signal)
	if t.Signal.Pressure() {
		s += ">" + formatNumber(t.Value.Stall)
	} else {
		s += "<" + t.Value.String()
	}
	if t.Grace != 0 {
		s += " for " + t.Grace.String()
	}
	switch m := t.MinReclaim; {
	case m == nil:
	case t.Signal.Pressure():
		s += " until " + formatNumber(m.Stall)
	default:
		s += " reclaim " + m.String()
	}
	return s
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// String returns an amount, or a percentage.
func (v ThresholdValue) String() string {
	switch {
	case v.Quantity != nil:
		q := *v.Quantity
		return q.String()
	case v.Stall != 0:
		return formatNumber(v.Stall)
	default:
		return fmt.Sprintf("%.6g%%", float64(v.Fraction)*100)
	}
}

// amountOf returns the value as an amount, for the given capacity. A fraction is always in binary
// format, even for inodes, as in the kubelet's messages.
func (v *ThresholdValue) amountOf(capacity int64) resource.Quantity {
	if v.Quantity != nil {
		return v.Quantity.DeepCopy()
	}
	return *resource.NewQuantity(int64(float64(capacity)*float64(v.Fraction)), resource.BinarySI)
}

func (v *ThresholdValue) equal(w *ThresholdValue) bool {
	if v.Quantity == nil || w.Quantity == nil {
		return v.Quantity == w.Quantity && v.Fraction == w.Fraction && v.Stall == w.Stall
	}
	q := *v.Quantity // Cmp may change its receiver, which other goroutines read
	return q.Cmp(*w.Quantity) == 0
}

// equal reports whether two thresholds are the same. The minimum reclaim is ignored, because it
// belongs to the signal.
func (t *Threshold) equal(u *Threshold) bool {
	return t.Signal == u.Signal && t.Grace == u.Grace && t.Value.equal(&u.Value)
}

// limitAndGoal returns the amount below which the threshold is met, and the amount that ends it.
func (t *Threshold) limitAndGoal(capacity int64) (limit, goal resource.Quantity) {
	limit = t.Value.amountOf(capacity)
	goal = limit
	if t.MinReclaim != nil {
		goal = limit.DeepCopy()
		goal.Add(t.MinReclaim.amountOf(capacity))
	}
	return limit, goal
}

// sortThresholds sorts thresholds in the order in which they are acted on: memory first, then hard
// before soft, then the order of Signals. The kubelet has only the first of these rules.
func sortThresholds(list []ThresholdState) {
	slices.SortStableFunc(list, func(a, b ThresholdState) int {
		s := a.Threshold.Signal.traits()
		t := b.Threshold.Signal.traits()
		return cmp.Or(
			cmp.Compare(s.rank/memoryFirst, t.rank/memoryFirst),
			trueFirst(a.Threshold.Hard(), b.Threshold.Hard()),
			cmp.Compare(s.rank, t.rank),
		)
	})
}

// trueFirst compares two values, true before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// DiskLayout shows which file systems images and containers are on.
type DiskLayout struct {
	// DedicatedImageFs is set if images have their own file system. DedicatedContainerFs is set if
	// containers are not on that file system but on nodefs (the kubelet calls this "split").
	// DedicatedContainerFs alone is not a real configuration: it counts as one file system, except
	// that no thresholds are derived for containerfs.
	DedicatedImageFs, DedicatedContainerFs bool
}

func (l DiskLayout) split() bool { return l.DedicatedImageFs && l.DedicatedContainerFs }

func (l DiskLayout) separate() bool { return l.DedicatedImageFs && !l.DedicatedContainerFs }

// withContainerFs returns the thresholds, including those of containerfs. Those are copies of the
// thresholds of the file system that containers are on, and replace thresholds that are configured
// for containerfs. The thresholds from index added on replace nothing.
func withContainerFs(thresholds []Threshold, l DiskLayout) (list []Threshold, added int) {
	list = slices.Clone(thresholds)
	bytes, inodes := NodeFsAvailable, NodeFsInodesFree
	switch {
	case l.separate():
		bytes, inodes = ImageFsAvailable, ImageFsInodesFree
	case l.DedicatedContainerFs && !l.DedicatedImageFs:
		return list, len(list)
	}
	added = len(list)
	var void []int
	for _, p := range [...]struct{ to, from Signal }{{ContainerFsAvailable, bytes}, {ContainerFsInodesFree, inodes}} {
		for _, hard := range [...]bool{true, false} {
			from, to := lastThreshold(thresholds, p.from, hard), lastThreshold(thresholds, p.to, hard)
			var t Threshold
			if from >= 0 {
				t = thresholds[from]
				t.Signal = p.to
			}
			switch {
			case to >= 0 && from >= 0:
				list[to] = t
			case to >= 0:
				void = append(void, to)
			case from >= 0:
				list = append(list, t)
			}
		}
	}
	slices.Sort(void)
	for _, i := range slices.Backward(void) {
		list = slices.Delete(list, i, i+1)
	}
	return list, added - len(void)
}

// lastThreshold returns the index of a signal's last hard or soft threshold, or -1.
func lastThreshold(list []Threshold, s Signal, hard bool) int {
	for i, t := range slices.Backward(list) {
		if t.Signal == s && t.Hard() == hard {
			return i
		}
	}
	return -1
}
