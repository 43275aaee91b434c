package chart

import (
	"math"
	"time"
)

// valueTicks are round values from zero to one that is no less than most: about five,
// one, two or five times a power of ten apart, and whole.
func valueTicks(most float64) []float64 {
	step := 1.0
	for next := []float64{2, 2.5, 2}; most/step > 6; {
		step *= next[0]
		next = append(next[1:], next[0])
	}
	var ticks []float64
	for i := 0.0; ; i++ {
		ticks = append(ticks, i*step)
		if i*step >= most && i > 0 {
			return ticks
		}
	}
}

// tick is a place on the time axis.
type tick struct {
	at    time.Time
	label string
}

// timeTicks are round times within the axis, ten at most.
func timeTicks(from, to time.Time) []tick {
	const day = 24 * time.Hour
	steps := []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day,
	}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if to.Sub(from) <= 10*s {
			step = s
			break
		}
	}
	step *= time.Duration(math.Ceil(float64(to.Sub(from)) / float64(10*step)))
	var ticks []tick
	for at := from.UTC().Truncate(step); !at.After(to); at = at.Add(step) {
		if at.Before(from) {
			continue
		}
		label := at.Format("15:04")
		switch midnight := at.Truncate(day).Equal(at); {
		case midnight:
			label = at.Format("Jan 2")
		case step < time.Minute:
			label = at.Format("15:04:05")
		}
		ticks = append(ticks, tick{at, label})
	}
	return ticks
}
