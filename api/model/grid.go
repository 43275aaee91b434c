package model

import "time"

// point is a value at a moment, in nanoseconds since the Unix epoch.
type point struct {
	at    int64
	value float64
}

// grid is the row of moments, one step apart, at which the model has points.
//
// Heapster read all nodes at once and gave all numbers of a round one
// timestamp, and its clients add up points of many pods by equal timestamps.
// weir reads each node at a moment of its own. Points are therefore put on a
// grid that all entities share: the point at T is the newest number from
// before T+step, if it is no older than reach.
type grid struct {
	step  int64 // nanoseconds
	reach int64
}

// newGrid returns the grid for numbers that are read once in a resolution.
// Points are never closer than a second, to which clients cut timestamps.
func newGrid(resolution time.Duration) grid {
	step := max(resolution.Truncate(time.Second), time.Second)
	// As long as weir lets a number stand in for one that was missed.
	return grid{step: int64(step), reach: int64(max(3*step, time.Minute))}
}

// floor returns the grid's last moment that is not after t.
func (g grid) floor(t int64) int64 {
	r := t % g.step
	if r < 0 {
		r += g.step
	}
	return t - r
}

// align puts measured points, oldest first, on the grid and appends those from
// one time to another, both included, to dst. Nothing is put after until. The
// last number is carried on until there, as far as reach allows, if live, which
// says that the entity is still measured.
func (g grid) align(dst, measured []point, from, to, until int64, live bool) []point {
	if len(measured) == 0 || from > until {
		return dst
	}
	last := g.floor(until)
	if !live {
		last = min(last, g.floor(measured[len(measured)-1].at))
	}
	first := g.floor(measured[0].at)
	if from > first {
		first = g.floor(from-1) + g.step // rounded up
	}
	i := 0
	for t := first; t <= min(last, to); t += g.step {
		for i+1 < len(measured) && measured[i+1].at < t+g.step {
			i++
		}
		switch {
		case measured[i].at >= t-g.reach:
			dst = append(dst, point{t, measured[i].value})
		case i+1 == len(measured):
			return dst
		default: // a hole, perhaps of years if a clock was wrong
			t = g.floor(measured[i+1].at) - g.step
		}
	}
	return dst
}
