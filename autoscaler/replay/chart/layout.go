package chart

import (
	"math"
	"strings"
	"time"
)

// valueTicks returns about five round values from zero to at least most: steps of one, two or
// five times a power of ten, at least 1.
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

// timeTick is a mark on the time axis.
type timeTick struct {
	at    time.Time
	label string
}

// timeTicks returns at most ten round times within the axis.
func timeTicks(from, to time.Time) []timeTick {
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
	var ticks []timeTick
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
		ticks = append(ticks, timeTick{at, label})
	}
	return ticks
}

// maxLetters is how many letters fit into a line.
const maxLetters = int((width - left - right - 5) / letter)

// breakLines breaks a text at " · ", so that each line fits if possible.
func breakLines(text string) []string {
	const dot = " · "
	parts := strings.Split(text, dot)
	list := parts[:1]
	for _, part := range parts[1:] {
		last := &list[len(list)-1]
		if longer := *last + dot + part; letters(longer) <= maxLetters {
			*last = longer
		} else {
			list = append(list, part)
		}
	}
	return list
}

// legendEntry is one name in the legend, with its position.
type legendEntry struct {
	text string
	x    float64
	row  int
}

// legend places the names from left to right, in as many rows as needed.
func (c *Chart) legend() (names []legendEntry, rows int) {
	x, row := left, 0
	for i := range c.Series {
		n := legendEntry{text: c.Series[i].Name}
		wide := 44 + letter*float64(letters(n.text))
		if x > left && x+wide > width {
			x, row = left, row+1
		}
		n.x, n.row = x, row
		names = append(names, n)
		x += wide
	}
	return names, row + 1
}

func letters(s string) int { return len([]rune(s)) }
