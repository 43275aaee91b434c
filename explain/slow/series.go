package slow

import (
	"slices"
	"sort"
	"time"
)

// Point is a value at a moment. A rate is the mean of the time since the point before.
type Point struct {
	At    time.Time
	Value float64
}

// Series are the points of a metric, oldest first.
type Series []Point

// over returns the mean of the points after from and until to. If there are none, it returns the nearest
// point that is at most as far away as from and to are from each other: nodes read each cgroup at its own
// moments. ok is false if there is none.
func (s Series) over(from, to time.Time) (mean float64, ok bool) {
	first := sort.Search(len(s), func(i int) bool { return s[i].At.After(from) })
	n := 0
	for _, p := range s[first:] {
		if p.At.After(to) {
			break
		}
		mean += p.Value
		n++
	}
	reach := to.Sub(from)
	switch next := first + n; {
	case n > 0:
		return mean / float64(n), true
	case next < len(s) && s[next].At.Sub(to) <= reach: // a rate is that of the time before its point
		return s[next].Value, true
	case first > 0 && from.Sub(s[first-1].At) <= reach:
		return s[first-1].Value, true
	}
	return 0, false
}

// get is over, with 0 if there is no point.
func (s Series) get(from, to time.Time) float64 {
	v, _ := s.over(from, to)
	return v
}

// mean returns the mean since begin, by the time of each point.
func (s Series) mean(begin time.Time) (mean float64, ok bool) {
	total, seconds := 0.0, 0.0
	for _, rd := range s.readings(begin) {
		total += rd.value * rd.seconds()
		seconds += rd.seconds()
	}
	if seconds == 0 {
		return 0, false
	}
	return total / seconds, true
}

// reading is a point of a rate with the time that it is of.
type reading struct {
	from, to time.Time
	value    float64
}

func (r *reading) seconds() float64 { return r.to.Sub(r.from).Seconds() }

// readings returns the points of a rate with the time since the point before, cut at begin. A gap between
// two points is not measured: at most twice the usual time counts for the later one.
func (s Series) readings(begin time.Time) (all []reading) {
	if len(s) == 0 {
		return nil
	}
	var gaps []time.Duration
	for i := 1; i < len(s); i++ {
		gaps = append(gaps, s[i].At.Sub(s[i-1].At))
	}
	usual := min(s[0].At.Sub(begin), 30*time.Second)
	if len(gaps) > 0 {
		usual = slices.Sorted(slices.Values(gaps))[len(gaps)/2]
	}
	before := begin
	for _, p := range s {
		from := p.At.Add(-2 * usual)
		if from.Before(before) {
			from = before
		}
		if p.At.After(from) {
			all = append(all, reading{from, p.At, p.Value})
		}
		before = p.At
	}
	return all
}
