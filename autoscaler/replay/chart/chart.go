// Package chart draws values over time as an SVG without scripts, fonts or style sheets of
// others. It is readable on a light page and on a dark one.
//
// It is weir's own because it is small, needs no dependency, and draws steps, tinted areas and
// gaps in one file for light and dark pages.
package chart

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Chart describes a chart.
type Chart struct {
	Title string
	// Subtitle is broken at " · " if it is too long for a line.
	Subtitle string
	// From and To are the ends of the time axis, in UTC.
	From, To time.Time
	// Unit is the unit of the value axis: "pods". The axis begins at zero.
	Unit   string
	Series []Series
}

// Series is one line.
type Series struct {
	Name  string
	Style Style
	// Points are in order of time. The line breaks at a NaN.
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Style is how a series is drawn.
type Style uint8

// The styles.
const (
	Step     Style = iota // a value is valid until the next; each series has its own colour
	Recorded              // as Step, in grey
	Area                  // a thin line with a tinted area below it
	Bound                 // dashed and thin: a limit
)

// The picture's size and margins, in pixels.
const (
	width, area = 960.0, 276.0 // area is how high the plot itself is
	left, right = 52.0, 28.0
	bottom      = 40.0
	firstLine   = 44.0 // of the subtitle
	lineHeight  = 18.0
	// Nothing here measures text: seven pixels a letter is wide enough.
	letter = 7.0
)

const style = `
  svg { --ink: #24292f; --soft: #6e7781; --grid: #d8dee4; --back: #ffffff; --a: #0b63ce; --b: #c2410c; --c: #7c3aed; --area: #2da44e; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #8d96a0; --grid: #30363d; --back: #0d1117; --a: #58a6ff; --b: #ff9248; --c: #bc8cff; --area: #3fb950; }
  }
  text { font: 12px system-ui, sans-serif; fill: var(--soft); }
  .title { font-size: 15px; font-weight: 600; fill: var(--ink); }
  .legend { fill: var(--ink); }
  .back { fill: var(--back); }
  .grid { stroke: var(--grid); stroke-width: 1; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .past { stroke: var(--soft); }
  .bound { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 5 4; }
  .area { stroke: var(--area); stroke-width: 1; }
  .under { fill: var(--area); fill-opacity: 0.15; }
  .step0 { stroke: var(--a); }
  .step1 { stroke: var(--b); }
  .step2 { stroke: var(--c); }
`

// WriteSVG draws c.
func (c *Chart) WriteSVG(w io.Writer) error {
	if !c.To.After(c.From) {
		return fmt.Errorf("draw chart: it ends (%s) no later than it begins", c.To.UTC().Format(time.RFC3339))
	}
	out := bufio.NewWriter(w)
	p := &plot{chart: c, out: out, ticks: valueTicks(c.largest())}
	subtitle := breakLines(c.Subtitle)
	names, rows := c.legend()
	p.top = firstLine + lineHeight*float64(len(subtitle)+rows-1) + 22
	height := p.top + area + bottom
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(out, "<title>%s</title>\n<style>%s</style>\n", escapeXML(c.Title), style)
	fmt.Fprintf(out, `<rect class="back" width="%.0f" height="%.0f"/>`+"\n", width, height)
	fmt.Fprintf(out, `<text class="title" x="%.0f" y="24">%s</text>`+"\n", left, escapeXML(c.Title))
	for i, line := range subtitle {
		fmt.Fprintf(out, `<text x="%.0f" y="%.0f">%s</text>`+"\n", left, firstLine+lineHeight*float64(i), escapeXML(line))
	}
	p.axes()
	p.legend(names, firstLine+lineHeight*float64(len(subtitle)))
	// The areas lie below, and the bounds below the lines.
	for _, layer := range []Style{Area, Bound, Recorded, Step} {
		for i := range c.Series {
			if c.Series[i].Style == layer {
				p.draw(&c.Series[i], p.class(i))
			}
		}
	}
	fmt.Fprintln(out, "</svg>")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write chart: %w", err)
	}
	return nil
}

// largest returns the largest value on the axis. A bound more than twice above everything else is
// left out, because it would flatten the rest.
func (c *Chart) largest() float64 {
	of := func(in func(Style) bool, limit float64) (largest float64) {
		for i := range c.Series {
			for _, p := range c.Series[i].Points {
				if in(c.Series[i].Style) && p.Value > largest && p.Value <= limit {
					largest = p.Value
				}
			}
		}
		return largest
	}
	largest := of(func(s Style) bool { return s != Bound }, math.MaxFloat64)
	return max(largest, of(func(s Style) bool { return s == Bound }, max(2*largest, 1)))
}

// plot is a chart while it is drawn.
type plot struct {
	chart *Chart
	out   io.Writer
	ticks []float64
	top   float64 // of the plot itself
}

func (p *plot) x(t time.Time) float64 {
	share := t.Sub(p.chart.From).Seconds() / p.chart.To.Sub(p.chart.From).Seconds()
	return left + (width-left-right)*min(max(share, 0), 1)
}

func (p *plot) y(v float64) float64 {
	most := p.ticks[len(p.ticks)-1]
	return p.top + area*(1-min(max(v/most, 0), 1))
}

// class returns the style of the i-th series.
func (p *plot) class(i int) string {
	switch p.chart.Series[i].Style {
	case Recorded:
		return "past"
	case Area:
		return "area"
	case Bound:
		return "bound"
	}
	n := 0
	for _, s := range p.chart.Series[:i] {
		if s.Style == Step {
			n++
		}
	}
	return fmt.Sprintf("step%d", n%3)
}

func (p *plot) axes() {
	for _, v := range p.ticks {
		fmt.Fprintf(p.out, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/>`+"\n", left, width-right, p.y(v), p.y(v))
		fmt.Fprintf(p.out, `<text x="%.0f" y="%.1f" text-anchor="end">%g</text>`+"\n", left-8, p.y(v)+4, v)
	}
	fmt.Fprintf(p.out, `<text x="%.0f" y="%.0f" text-anchor="end">%s</text>`+"\n", left-8, p.top-14, escapeXML(p.chart.Unit))
	for _, t := range timeTicks(p.chart.From, p.chart.To) {
		x := p.x(t.at)
		fmt.Fprintf(p.out, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.0f" y2="%.0f"/>`+"\n", x, x, p.top+area, p.top+area+5)
		fmt.Fprintf(p.out, `<text x="%.1f" y="%.0f" text-anchor="middle">%s</text>`+"\n", x, p.top+area+20, t.label)
	}
}

// legend writes the names; the first row is at y.
func (p *plot) legend(names []legendEntry, y float64) {
	for i, n := range names {
		y := y + lineHeight*float64(n.row)
		fmt.Fprintf(p.out, `<line class="line %s" x1="%.0f" x2="%.0f" y1="%.0f" y2="%.0f"/>`+"\n", p.class(i), n.x, n.x+18, y-2, y-2)
		fmt.Fprintf(p.out, `<text class="legend" x="%.0f" y="%.0f">%s</text>`+"\n", n.x+24, y+2, escapeXML(n.text))
	}
}

// draw draws each part of s without a break.
func (p *plot) draw(s *Series, class string) {
	if s.Style == Bound && len(s.Points) > 0 && s.Points[0].Value > p.ticks[len(p.ticks)-1] {
		return // see largest
	}
	for from := 0; from < len(s.Points); {
		if math.IsNaN(s.Points[from].Value) {
			from++
			continue
		}
		to := from
		for to < len(s.Points) && !math.IsNaN(s.Points[to].Value) {
			to++
		}
		end := p.chart.To
		if to < len(s.Points) {
			end = s.Points[to].At
		}
		if s.Style == Area {
			p.area(s.Points[from:to])
		} else {
			p.steps(s.Points[from:to], end, class)
		}
		from = to
	}
}

// steps draws values that are valid until the next, the last one until end.
func (p *plot) steps(points []Point, end time.Time, class string) {
	var d strings.Builder
	fmt.Fprintf(&d, "M%.1f %.1f", p.x(points[0].At), p.y(points[0].Value))
	for i, pt := range points[1:] {
		if pt.Value != points[i].Value {
			fmt.Fprintf(&d, "H%.1fV%.1f", p.x(pt.At), p.y(pt.Value))
		}
	}
	fmt.Fprintf(&d, "H%.1f", p.x(end))
	fmt.Fprintf(p.out, `<path class="line %s" d="%s"/>`+"\n", class, d.String())
}

// area draws a line from point to point, and the area below. Of several points in one pixel it
// keeps the lowest and the highest.
func (p *plot) area(points []Point) {
	var d strings.Builder
	first, last := p.x(points[0].At), p.x(points[len(points)-1].At)
	for i := 0; i < len(points); {
		x := math.Floor(p.x(points[i].At))
		low, high := i, i
		for ; i < len(points) && math.Floor(p.x(points[i].At)) == x; i++ {
			if points[i].Value < points[low].Value {
				low = i
			}
			if points[i].Value > points[high].Value {
				high = i
			}
		}
		for _, at := range sortedPair(low, high) {
			fmt.Fprintf(&d, "L%.1f %.1f", p.x(points[at].At), p.y(points[at].Value))
		}
	}
	line := "M" + d.String()[1:]
	fmt.Fprintf(p.out, `<path class="under" d="%sL%.1f %.1fL%.1f %.1fZ"/>`+"\n", line, last, p.y(0), first, p.y(0))
	fmt.Fprintf(p.out, `<path class="line area" d="%s"/>`+"\n", line)
}

// sortedPair returns a and b in order, once if they are the same.
func sortedPair(a, b int) []int {
	if a == b {
		return []int{a}
	}
	return []int{min(a, b), max(a, b)}
}

// escapeXML escapes s for XML.
func escapeXML(s string) string {
	var b strings.Builder
	// A strings.Builder takes everything; what XML cannot hold is replaced.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
