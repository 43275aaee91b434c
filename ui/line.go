package ui

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"
)

// A line shows the last fifteen minutes in as many columns as a small picture has
// room for. Its lowest edge is zero, its highest the highest number in it.
const (
	lineTime    = 15 * time.Minute
	lineColumns = 60
	lineStep    = 2 // from one column to the next
	lineHeight  = 80
)

// line is what is drawn of a metric over time. The zero line is none.
type line struct {
	Path  string // of an SVG image of 120 by 80; empty if there were no numbers
	Title string // the same in words
}

// draw draws the points of one metric up to now. Where they lie further apart than
// hold there was no number to be served between them, and the line breaks; format
// writes a number.
func draw(name string, points iter.Seq2[time.Time, float64], now time.Time, hold time.Duration, format func(float64) string) line {
	from := now.Add(-lineTime)
	type column struct {
		at, n int
		sum   float64
		moves bool // the first after a gap
	}
	var columns []column
	low, high, last := math.Inf(1), math.Inf(-1), 0.0
	var before time.Time
	var absent time.Duration
	for at, v := range points {
		if at.Before(from) || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		low, high, last = min(low, v), max(high, v), v
		gap := !before.IsZero() && at.Sub(before) > hold
		if gap {
			absent += at.Sub(before)
		}
		// A node's clock may be ahead of ours.
		i := min(int(at.Sub(from)*lineColumns/lineTime), lineColumns)
		if n := len(columns); n == 0 || gap || columns[n-1].at != i {
			columns = append(columns, column{at: i, moves: gap || n == 0})
		}
		c := &columns[len(columns)-1]
		c.sum += v
		c.n++
		before = at
	}
	if len(columns) == 0 {
		return line{Title: name + ": no number in the last " + lasting(lineTime)}
	}
	if tail := now.Sub(before); tail > hold {
		absent += tail
	}
	path := make([]byte, 0, 6*len(columns))
	for i, c := range columns {
		y := lineHeight - 2
		if high > 0 {
			// A line that lay on an edge would be cut in half.
			y = lineHeight - 2 - int(math.Round(c.sum/float64(c.n)/high*(lineHeight-4)))
		}
		command := byte('L')
		if c.moves {
			command = 'M'
		}
		path = append(path, command)
		path = strconv.AppendInt(path, int64(c.at*lineStep), 10)
		path = append(path, ' ')
		path = strconv.AppendInt(path, int64(y), 10)
		if c.moves && (i+1 == len(columns) || columns[i+1].moves) {
			path = append(path, "h0"...) // a dot
		}
	}
	title := fmt.Sprintf("%s in the last %s: lowest %s, highest %s, newest %s", name, lasting(lineTime), format(low), format(high), format(last))
	if absent > 0 {
		title += "; no number for " + lasting(absent)
	}
	return line{string(path), title}
}
