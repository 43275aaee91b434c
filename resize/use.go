package resize

import (
	"math"
	"slices"
	"time"
)

// Point is what a container used at a time: cores, or bytes of working set.
type Point struct {
	At    time.Time
	Value float64
}

// quantile returns the value that a share of the points, in percent, do not exceed: the
// nearest rank, so it is always one that was measured. 100 gives the highest. Points must
// not be empty.
func quantile(points []Point, percent float64) float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	slices.Sort(values)
	rank := int(math.Ceil(percent / 100 * float64(len(values))))
	return values[min(max(rank, 1), len(values))-1]
}

// sane returns the points that can be: what is negative, endless or no number was never
// used.
func sane(points []Point) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		return !(p.Value >= 0) || p.Value > most
	})
}

// most is more than any container uses, of cores or of bytes: it keeps sums within int64.
const most = 1 << 53

// span returns the time from the first of the points to the last.
func span(points []Point) (from, to time.Time) {
	for i, p := range points {
		if i == 0 || p.At.Before(from) {
			from = p.At
		}
		if i == 0 || p.At.After(to) {
			to = p.At
		}
	}
	return from, to
}
